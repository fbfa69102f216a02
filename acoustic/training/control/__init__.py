"""Automatic control of the learning rate and the minibatch size (CNTK book, section 3.3.1.2, `autoAdjust`).

After each epoch a control receives the criterion and decides on the next epoch. Its state is saved in the checkpoint.
A control does not train: a search receives a function that runs a short training. Open base.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
