"""Automatic control of the learning rate and the minibatch size (CNTK book, section 3.3.1.2, `autoAdjust`).

After each epoch a control receives the criterion and decides on the next epoch. Its state is saved in the checkpoint.
A control does not train: a search receives a function that runs a short training. Open base.py first.
"""

from acoustic.training.control.after_epoch import AdjustAfterEpoch
from acoustic.training.control.base import Control, Decision
from acoustic.training.control.minibatch_size import AdaptiveMinibatch
from acoustic.training.control.options import AutoAdjust
from acoustic.training.control.search import SearchBeforeEpoch

__all__ = ["AdaptiveMinibatch", "AdjustAfterEpoch", "AutoAdjust", "Control", "Decision", "SearchBeforeEpoch"]
