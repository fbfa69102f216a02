"""Automatic control of learning rate and minibatch size (CNTK book, section 3.3.1.2, `autoAdjust`).

A control is told what an epoch gave and says what the next one takes; whatever it remembers is in the checkpoint.  It
trains nothing itself: a search is handed a function that does.
"""

from acoustic.training.control.after_epoch import AdjustAfterEpoch
from acoustic.training.control.base import Control, Decision
from acoustic.training.control.minibatch_size import AdaptiveMinibatch
from acoustic.training.control.options import AutoAdjust
from acoustic.training.control.search import SearchBeforeEpoch

__all__ = ["AdaptiveMinibatch", "AdjustAfterEpoch", "AutoAdjust", "Control", "Decision", "SearchBeforeEpoch"]
