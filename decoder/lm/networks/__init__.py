"""Recurrent networks as language models: the probabilities of sentences, and their training."""
