"""Classes that training never saw.

Their prior, the mean of the labels, is 0, so that a score divided by it would be above all others.  All that hands such
scores on, to a search, a file or another program, gives them UNSEEN instead; Kaldi's nnet-forward disables them too.
"""

from collections.abc import Sequence

import numpy as np

from acoustic.network.network import Network
from acoustic.network.traversal import forward_order

UNSEEN = -1e10


def unseen_outputs(network: Network, output: str) -> np.ndarray:
    """Rows of a node that follows from a prior, a row for each of its classes, whose class has a prior of 0.

    There are none in a node without a column per frame, such as the prior and its logarithm.
    """
    shape = network.shapes[output]
    if shape.cols is not None:
        return np.zeros(0, np.int64)
    priors = [
        network.backend.to_host(node.value).ravel()
        for node in forward_order([network[output]])
        if node.type_name == "Mean" and node.operands[0].name in network.labels and node.value is not None
    ]
    return np.flatnonzero(np.any([prior == 0 for prior in priors if prior.size == shape.rows], axis=0))


def unseen_text(network: Network, outputs: Sequence[str]) -> str:
    """What the log says of the classes that the outputs never give; "" if there are none."""
    for output in outputs:
        count, total = len(unseen_outputs(network, output)), network.shapes[output].rows
        if count:
            have = "class has" if count == 1 else "classes have"
            return f"{count} of {total} {have} no frame in the training data: they will never be recognised"
    return ""
