"""A network that learns to tell a circle from the plane around it, and a reader that dies on the way, for tests."""

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions


def ring_network(seed: int = 0, dropout: bool = False, precision: str = "float", **options) -> Network:
    return build_simple_network(
        SimpleNetworkOptions(
            (2, 16, 2),
            layer_types=("Tanh",),
            eval_criterion="ErrorPrediction",
            init_scale=10.0,
            normalise_features=True,
            with_prior=True,
            with_dropout=dropout,
            **options,
        ),
        precision,
        seed=seed,
    )


def ring_options(max_epochs: int = 3, **changes) -> TrainingOptions:
    values = {
        "learning_rates_per_minibatch": 0.5,
        "minibatch_size": (32, 48),
        "momentum_per_minibatch": 0.8,
        "dropout_rate": (0.0, 0.2),  # acts in networks with dropout nodes
    }
    return TrainingOptions(max_epochs, **(values | changes))


class Killed(BaseException):
    """Stands for the death of the process: nothing in training may catch it."""


def dying(reader, epoch: int, minibatch: int):
    """The reader, until that minibatch of that epoch, both from 0."""

    class Dying:
        dims, num_frames = reader.dims, reader.num_frames

        @staticmethod
        def minibatches(epoch, minibatch_size, epoch_size, last=(epoch, minibatch)):
            for index, item in enumerate(reader.minibatches(epoch, minibatch_size, epoch_size)):
                if (epoch, index) == last and minibatch_size != 4096:
                    raise Killed
                yield item

    return Dying()


def dying_at_once(reader):
    def minibatches(epoch, minibatch_size, epoch_size):
        raise Killed

    reader.minibatches = minibatches
    return reader
