"""Feed-forward networks as benchmark cases: layers of one activation, trained by a rule that both sides have."""

from functools import partial
from itertools import pairwise
from typing import Any

from benchmarks import training

RATE_PER_FRAME, MOMENTUM = 0.8 / 1024, 0.9


def layers_case(
    name: str, sizes: tuple[int, ...], kind: str, frames: int, dropout: float = 0.0, adagrad: bool = False
) -> training.Case:
    """sizes: input, hidden layers, output; kind: Sigmoid or RectifiedLinear; trained with momentum or AdaGrad."""
    pairs = list(pairwise(sizes))
    rule = "AdaGrad" if adagrad else "momentum"
    title = f"{'-'.join(map(str, sizes))} {kind}{f', dropout {dropout:g}' if dropout else ''}, {rule}"
    return training.Case(
        name=name,
        title=title,
        frames=frames,
        shapes=[shape for a, b in pairs for shape in ((b, a), (b, 1))],
        operations=layer_operations(sizes, frames),
        values=frames * sum(sizes[1:]),
        data=partial(training.make_data, sizes[0], sizes[-1], frames),
        ours=partial(ours, sizes, kind, adagrad),
        theirs=partial(theirs, kind, adagrad),
        dropout=dropout,
    )


def layer_operations(sizes: tuple[int, ...], frames: int) -> int:
    """2 per weight and frame forward and for the weights' gradients, and for the layers' gradients but the first."""
    pairs = list(pairwise(sizes))
    return frames * (6 * sum(a * b for a, b in pairs) - 2 * pairs[0][0] * pairs[0][1])


def ours(sizes: tuple[int, ...], kind: str, adagrad: bool, weights: list, features: Any, labels: Any, dropout: float):
    from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network

    options = SimpleNetworkOptions(layer_sizes=sizes, layer_types=(kind,), with_dropout=dropout > 0)
    network = build_simple_network(options, device=training.device)
    return training.our_side(network, our_options(features.shape[1], adagrad), weights, features, labels, dropout)


def our_options(frames: int, adagrad: bool = False) -> Any:
    """The same training for either side's network."""
    from acoustic.training.options import TrainingOptions

    settings = {"max_epochs": 1, "minibatch_size": frames}
    if not adagrad:
        return TrainingOptions(learning_rates_per_sample=RATE_PER_FRAME, momentum_per_minibatch=MOMENTUM, **settings)
    from acoustic.training.rules.adagrad import AdaGrad

    return TrainingOptions(learning_rates_per_sample=ADAGRAD_RATE, rule=AdaGrad(normalise=False), **settings)


ADAGRAD_RATE = 1e-3


def theirs(kind: str, adagrad: bool, torch: Any, weights: list, features: Any, labels: Any, dropout: float, way: str):
    activation = {"Sigmoid": torch.nn.Sigmoid, "RectifiedLinear": torch.nn.ReLU}[kind]
    network = training.torch_layers(torch, weights, activation, dropout)
    if adagrad:
        optimiser = torch.optim.Adagrad(network.parameters(), lr=ADAGRAD_RATE, **training.loop_settings(way))
    else:
        optimiser = training.momentum_optimiser(torch, network.parameters(), RATE_PER_FRAME, MOMENTUM, way)
    x = torch.from_numpy(features.T.copy())
    return training.their_side(torch, network, optimiser, x, labels, training.current_values(network))
