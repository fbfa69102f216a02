"""Jobs of a recogniser: transcribe files or audio while it arrives, calibrate confidences, list installed bundles.

Open transcription.py first; options.py declares the options, recordings.py finds the audio, delivery.py hands over the
results, transcript_files.py writes transcripts.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
