"""Natural-gradient stochastic gradient descent (Povey, Zhang and Khudanpur, 2015)."""

from acoustic.network.network import Network
from acoustic.training.natural_gradient.updater import NaturalGradientUpdater
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import NaturalGradient
from acoustic.training.update import Updater


def make_updater(network: Network, options: TrainingOptions) -> Updater:
    """What changes a network's parameters by the rule of the options."""
    return (NaturalGradientUpdater if isinstance(options.rule, NaturalGradient) else Updater)(network, options)
