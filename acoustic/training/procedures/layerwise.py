"""Layer-wise back-propagation: a network is trained for a while with one hidden layer, then with two, up to all.

Sources: F. Seide, G. Li, X. Chen, D. Yu, "Feature engineering in context-dependent deep neural networks for
conversational speech transcription", 2011; D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural
gradient and parameter averaging", 2015, appendix C.7.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from acoustic.descriptions.builders.feed_forward import SimpleNetworkOptions
from acoustic.network.network import Network
from acoustic.training.control.options import AutoAdjust
from acoustic.training.options import TrainingOptions
from readers.common.report import Log
from readers.config.config import Config
from readers.config.option_check import KeyedOptions, located_faults


@dataclass(frozen=True)
class LayerwiseOptions(KeyedOptions):
    """epochs: that each smaller network is trained for; 0: there are none.  epoch_size: their frames, 0: as the others.

    The smaller networks learn with the first epoch's learning rate, minibatch size and momentum.  Raises OptionFault.
    """

    keys: ClassVar = {"epochs": ("layerwiseEpochs", "int"), "epoch_size": ("layerwiseEpochSize", "int")}

    epochs: int = 0
    epoch_size: int = 0

    def __post_init__(self) -> None:
        for name in self.keys:
            self.require(name, getattr(self, name) >= 0, "a number >= 0")

    def stage(self, options: TrainingOptions) -> TrainingOptions:
        """How a smaller network is trained that comes before a training with these options."""
        first = {
            name: getattr(options, name)[:1]
            for name in (
                *("learning_rates_per_minibatch", "learning_rates_per_sample", "minibatch_size", "dropout_rate"),
                *("momentum_per_minibatch", "momentum_per_sample", "momentum_time_constant"),
            )
        }
        size = self.epoch_size or options.epoch_size
        more = {"epoch_size": size, "auto_adjust": AutoAdjust(), "final_learning_rate": 0.0}
        return replace(options, **first, **more, max_epochs=self.epochs)


def layerwise_options(sgd: Config) -> LayerwiseOptions:
    """Read the options of layer-wise training from an SGD block. Raises ConfigError."""
    with located_faults(sgd):
        return LayerwiseOptions(**LayerwiseOptions.values_in(sgd))


def smaller_networks(options: SimpleNetworkOptions) -> Iterator[SimpleNetworkOptions]:
    """The same with 1, 2, ... of its hidden layers, all of them left out; a table that is looked up goes with the next.

    Only sizes differ, so that layers of equal numbers have equal names and, with one seed, equal initial values.
    """
    fewest = 2 if options.words > 1 else 1
    for hidden in range(fewest, options.num_hidden):
        yield replace(options, layer_sizes=(*options.layer_sizes[: hidden + 1], options.layer_sizes[-1]))


def carry_over(below: Network, hidden: int, network: Network) -> None:
    """Give a network the first `hidden` layers of a smaller one, and its statistics; all else stays as it was made.

    What was the output layer is left out: a hidden layer above must begin anew, and so must the output layer.
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
    """The network of the options, all its hidden layers but the last trained in the smaller networks.

    build: makes a network with its initial values; train_stage(hidden layers, network): trains one and returns it.
    """
    below: Network | None = None
    before = 0
    for smaller in smaller_networks(options):
        network = build(smaller)
        if below is not None:
            carry_over(below, before, network)
        log(f"layer-wise: {smaller.num_hidden} of {options.num_hidden} hidden layers, layerSizes {smaller.sizes}")
        below, before = train_stage(smaller.num_hidden, network), smaller.num_hidden
    network = build(options)
    if below is not None:
        carry_over(below, before, network)
    return network
