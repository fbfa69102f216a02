# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.recognizer.jobs.calibration_job import CalibrateResult as CalibrateResult
from decoder.recognizer.jobs.calibration_job import calibrate as calibrate
from decoder.recognizer.jobs.live import LiveResult as LiveResult
from decoder.recognizer.jobs.live import transcribe_live as transcribe_live
from decoder.recognizer.jobs.options import CalibrateOptions as CalibrateOptions
from decoder.recognizer.jobs.options import TranscribeOptions as TranscribeOptions
from decoder.recognizer.jobs.recordings import RecordingFile as RecordingFile
from decoder.recognizer.jobs.recordings import find_recordings as find_recordings
from decoder.recognizer.jobs.transcription import TranscribeResult as TranscribeResult
from decoder.recognizer.jobs.transcription import TranscribedFile as TranscribedFile
from decoder.recognizer.jobs.transcription import transcribe as transcribe
