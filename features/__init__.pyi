# From the table in __init__.py, by `python -m tests.structure.test_faces`
from features.config import FeatureConfig as FeatureConfig
from features.copying.files import extract_files as extract_files
from features.copying.job import HcopyOptions as HcopyOptions
from features.copying.job import HcopyResult as HcopyResult
from features.copying.job import hcopy as hcopy
from features.extraction import extract as extract
from features.extraction import frame_period as frame_period
from features.record import config_of as config_of
from features.record import feature_record as feature_record
from features.streaming import FeatureStream as FeatureStream
from features.streaming import RunningMean as RunningMean
