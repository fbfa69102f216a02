"""The 5-layer p-norm network that benchmarks train, of the size that Povey, Zhang and Khudanpur (2015) call typical.

360 inputs (9 frames of 40), hidden layers of 300 p-norms of 10 linear units each, 2000 classes: 5.3 million parameters.
"""

from typing import Any

GROUP_SIZE, NUM_HIDDEN = 10, 5
SIZES = (360, *[300] * NUM_HIDDEN, 2000)


def p_norm_network(seed: int = 0) -> Any:
    """The network as it starts: weights of deviation 1 / sqrt(fan-in), the output layer at zero."""
    from acoustic.descriptions.builders.feed_forward import SimpleNetworkOptions
    from acoustic.descriptions.builders.simple import build_simple_network

    options = SimpleNetworkOptions(
        SIZES, ("PNorm",), group_size=GROUP_SIZE, fan_in_init=True, zero_output=True, eval_criterion="ErrorPrediction"
    )
    return build_simple_network(options, seed=seed)
