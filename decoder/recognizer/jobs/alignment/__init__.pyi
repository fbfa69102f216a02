from decoder.recognizer.jobs.alignment.job import AlignResult as AlignResult
from decoder.recognizer.jobs.alignment.job import align as align
from decoder.recognizer.jobs.alignment.options import AlignOptions as AlignOptions
from decoder.recognizer.jobs.alignment.results import AlignedRecording as AlignedRecording
from decoder.recognizer.jobs.alignment.results import AlignedUtterance as AlignedUtterance
from decoder.recognizer.jobs.alignment.results import Damage as Damage
from decoder.recognizer.jobs.alignment.results import DoubtfulStretch as DoubtfulStretch
