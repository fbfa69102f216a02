from decoder.recognizer.jobs.adaptation.job import AdaptResult as AdaptResult
from decoder.recognizer.jobs.adaptation.job import adapt as adapt
from decoder.recognizer.jobs.adaptation.language import TextFit as TextFit
from decoder.recognizer.jobs.adaptation.options import AdaptDictionary as AdaptDictionary
from decoder.recognizer.jobs.adaptation.options import AdaptOptions as AdaptOptions
from decoder.recognizer.jobs.adaptation.text import AdaptationText as AdaptationText
