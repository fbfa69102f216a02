"""Network outputs for utterances and sentences."""
