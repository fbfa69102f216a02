"""Layer-wise training: a network is trained with one hidden layer, then with two, up to all.

Sources: F. Seide, G. Li, X. Chen, D. Yu, "Feature engineering in context-dependent deep neural networks for
conversational speech transcription", 2011; D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural
gradient and parameter averaging", 2015, appendix C.7.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from acoustic.descriptions.builders.feed_forward import SimpleNetworkOptions
from acoustic.network.network import Network
from acoustic.training.control.options import AutoAdjust
from acoustic.training.options import TrainingOptions
from readers.common.report import Log
from readers.config.config import Config
from readers.config.options import Options, option


@dataclass(frozen=True)
class LayerwiseOptions(Options):
    """Options of layer-wise training.

    The smaller networks are trained with the first epoch's learning rate, minibatch size and momentum.

    Raises
    ------
    OptionFault
        If a value is negative.
    """

    epochs: int = option(
        0, "epochs of each smaller network; 0: no layer-wise training", unit="epochs", least=0, cntk="layerwiseEpochs"
    )
    epoch_size: int = option(
        0,
        "frames of these epochs; 0: as in the main training",
        unit="frames",
        least=0,
        most=math.inf,
        cntk="layerwiseEpochSize",
    )

    def stage(self, options: TrainingOptions) -> TrainingOptions:
        """Return the options for training a smaller network before a training with the given options."""
        first: dict[str, Any] = {
            name: getattr(options, name)[:1]
            for name in (
                *("learning_rates_per_minibatch", "learning_rates_per_sample", "minibatch_size", "dropout_rate"),
                *("momentum_per_minibatch", "momentum_per_sample", "momentum_time_constant"),
            )
        }
        size = self.epoch_size or options.epoch_size
        first |= {"epoch_size": size, "auto_adjust": AutoAdjust(), "final_learning_rate": 0.0}
        return replace(options, **first, max_epochs=self.epochs)


def layerwise_options(sgd: Config) -> LayerwiseOptions:
    """Read the options of layer-wise training from an SGD block. Raises ConfigError."""
    return LayerwiseOptions.from_block(sgd)


def smaller_networks(options: SimpleNetworkOptions) -> Iterator[SimpleNetworkOptions]:
    """Yield the options with 1, 2, ... of the hidden layers, without the full network.

    A look-up table counts with the layer above it. Only sizes differ, so corresponding layers have equal names and,
    with equal seeds, equal initial values.
    """
    fewest = 2 if options.words > 1 else 1
    for hidden in range(fewest, options.num_hidden):
        yield replace(options, layer_sizes=(*options.layer_sizes[: hidden + 1], options.layer_sizes[-1]))


def carry_over(below: Network, hidden: int, network: Network) -> None:
    """Copy the first `hidden` layers and the statistics of a smaller network into a larger one.

    The output layer is not copied: it and the hidden layers above keep their initial values.
    """
    layers = {name for layer in range(hidden) for name in (f"W{layer}", f"B{layer}", "E0")}
    for node in network.stored():
        source = below.nodes.get(node.name)
        if source is not None and source.value is not None and (node.is_precomputed or node.name in layers):
            network.set_value(node, source.value.copy(order="F"))


def grow(
    options: SimpleNetworkOptions,
    build: Callable[[SimpleNetworkOptions], Network],
    train_stage: Callable[[int, Network], Network],
    log: Log = lambda line: None,
) -> Network:
    """Build a network whose hidden layers, except the last, have been trained in smaller networks.

    Parameters
    ----------
    options : SimpleNetworkOptions
        The full network.
    build : callable
        Makes a network with initial values from options.
    train_stage : callable
        train_stage(hidden layers, network) trains a smaller network and returns it.
    log : callable
        Receives a line per smaller network.

    Returns
    -------
    Network
    """
    previous: Network | None = None
    before = 0
    for smaller in smaller_networks(options):
        network = build(smaller)
        if previous is not None:
            carry_over(previous, before, network)
        log(f"layer-wise: {smaller.num_hidden} of {options.num_hidden} hidden layers, layerSizes {smaller.sizes}")
        previous = train_stage(smaller.num_hidden, network)
        before = smaller.num_hidden
    network = build(options)
    if previous is not None:
        carry_over(previous, before, network)
    return network
