"""The stress test of the decoder: vocabularies of 5,000 and 60,000 words with simulated speech."""
