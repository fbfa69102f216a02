"""Sentences: LMSequenceReader, LUSequenceReader and pairs of them."""
