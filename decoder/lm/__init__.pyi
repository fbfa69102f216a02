# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.lm.collection import open_collection as open_collection
from decoder.lm.estimation import estimate as estimate
from decoder.lm.estimation import uniform as uniform
from decoder.lm.estimation_job import estimate_from_texts as estimate_from_texts
from decoder.lm.evaluation import Perplexity as Perplexity
from decoder.lm.evaluation import perplexity as perplexity
from decoder.lm.language_model import LMArrays as LMArrays
from decoder.lm.language_model import LanguageModel as LanguageModel
from decoder.lm.mapped_model import load_language_model as load_language_model
from decoder.lm.mapped_model import open_language_model as open_language_model
from decoder.lm.mixture import estimate_with_classes as estimate_with_classes
from decoder.lm.network import perplexity_of_texts as perplexity_of_texts
from decoder.lm.options import EstimationOptions as EstimationOptions
from decoder.lm.options import NetworkOptions as NetworkOptions
from decoder.lm.options import PerplexityOptions as PerplexityOptions
from decoder.lm.options import TextOptions as TextOptions
from decoder.lm.options import VocabularyDictionary as VocabularyDictionary
