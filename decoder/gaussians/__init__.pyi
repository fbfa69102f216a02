from decoder.gaussians.job import FlatStartResult as FlatStartResult
from decoder.gaussians.job import flat_start as flat_start
from decoder.gaussians.models import GaussianModels as GaussianModels
from decoder.gaussians.options import FlatStartOptions as FlatStartOptions
from decoder.gaussians.options import FlatStartSettings as FlatStartSettings
from decoder.gaussians.options import SpokenDictionary as SpokenDictionary
