"""Natural-gradient stochastic gradient descent (Povey, Zhang and Khudanpur, 2015).

Open online.py first, then updater.py.
"""

from acoustic.network.network import Network
from acoustic.training.natural_gradient.updater import NaturalGradientUpdater
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import NaturalGradient
from acoustic.training.update import Updater


def make_updater(network: Network, options: TrainingOptions) -> Updater:
    """Return the updater for the rule of the options."""
    return (NaturalGradientUpdater if isinstance(options.rule, NaturalGradient) else Updater)(network, options)
