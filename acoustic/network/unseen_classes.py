"""Classes that do not occur in the training data.

Their prior, the mean of the labels, is 0, so a score divided by the prior would exceed all others. Wherever scores are
passed to a search, a file or another program, these classes get the score UNSEEN, as in Kaldi's nnet-forward.
"""

from collections.abc import Sequence

import numpy as np

from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.properties import MEAN

UNSEEN = -1e10


def unseen_outputs(network: Network, output: str) -> np.ndarray:
    """Return the rows of node `output` whose class has a prior of 0, for a node that depends on a prior of its classes.

    Nodes without one column per frame, such as the prior and its logarithm, have none.
    """
    shape = network.shapes[output]
    if shape.cols is not None:
        return np.zeros(0, np.int64)
    priors = [
        network.backend.to_host(node.value).ravel()
        for node in forward_order([network[output]])
        if node.has(MEAN) and node.operands[0].name in network.labels and node.value is not None
    ]
    return np.flatnonzero(np.any([prior == 0 for prior in priors if prior.size == shape.rows], axis=0))


def unseen_text(network: Network, outputs: Sequence[str]) -> str:
    """Return a line for the log about the classes that the outputs never give, an empty string if there are none."""
    for output in outputs:
        count = len(unseen_outputs(network, output))
        total = network.shapes[output].rows
        if count:
            have = "class has" if count == 1 else "classes have"
            return f"{count} of {total} {have} no frame in the training data: they will never be recognised"
    return ""
