"""Training: gradient descent, update rules, control of learning rates, natural gradient, several jobs, checkpoints.

Open sgd.py first, then trainer.py (epochs) and learner.py (minibatches).
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
