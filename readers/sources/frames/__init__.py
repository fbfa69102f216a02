"""Frames of utterances: HTKMLFReader and KaldiReader."""
