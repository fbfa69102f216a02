from decoder.recognizer.jobs.alignment.job import AlignResult as AlignResult
from decoder.recognizer.jobs.alignment.job import align as align
from decoder.recognizer.jobs.alignment.options import AlignOptions as AlignOptions
