# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.alignment.long_recordings.audio_scores import AudioScores as AudioScores
from decoder.alignment.long_recordings.long_alignment import align_long as align_long
from decoder.alignment.long_recordings.options import LongOptions as LongOptions
from decoder.alignment.long_recordings.results import DamagedStretch as DamagedStretch
from decoder.alignment.long_recordings.results import LongAlignment as LongAlignment
from decoder.alignment.long_recordings.results import SpokenPhone as SpokenPhone
from decoder.alignment.long_recordings.results import SpokenWord as SpokenWord
from decoder.alignment.long_recordings.sources import ArrayScores as ArrayScores
from decoder.alignment.long_recordings.sources import ScoreSource as ScoreSource
from decoder.alignment.long_recordings.sources import divide as divide
