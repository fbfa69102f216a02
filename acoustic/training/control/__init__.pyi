from acoustic.training.control.after_epoch import AdjustAfterEpoch as AdjustAfterEpoch
from acoustic.training.control.base import Control as Control
from acoustic.training.control.base import Decision as Decision
from acoustic.training.control.minibatch_size import AdaptiveMinibatch as AdaptiveMinibatch
from acoustic.training.control.options import AutoAdjust as AutoAdjust
from acoustic.training.control.search import SearchBeforeEpoch as SearchBeforeEpoch
