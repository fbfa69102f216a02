"""Recognition results: n-best lists, transcripts, words with times."""
