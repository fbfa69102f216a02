# From the table in __init__.py, by `python -m tests.structure.test_faces`
from features.augmentation.job import AugmentOptions as AugmentOptions
from features.augmentation.job import AugmentResult as AugmentResult
from features.augmentation.job import augment as augment
from features.augmentation.labels import stretch_labels as stretch_labels
from features.augmentation.mixing import add_noise as add_noise
from features.augmentation.mixing import babble as babble
from features.augmentation.mixing import change_speed as change_speed
from features.augmentation.mixing import fit_length as fit_length
from features.augmentation.mixing import limit_peak as limit_peak
from features.augmentation.mixing import mean_power as mean_power
from features.augmentation.mixing import reverberate as reverberate
from features.augmentation.parallel import Made as Made
from features.augmentation.parallel import augment_recordings as augment_recordings
from features.augmentation.settings import Augmentation as Augmentation
from features.augmentation.settings import Copy as Copy
from features.augmentation.settings import CopyOptions as CopyOptions
from features.augmentation.settings import Recording as Recording
