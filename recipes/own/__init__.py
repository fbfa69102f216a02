"""A recogniser for a corpus of recordings and transcripts; open run.py first."""
