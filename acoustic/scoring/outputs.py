"""Values of output nodes for whole utterances, from a reader or from arrays.

Scores of classes without training data are set to UNSEEN (acoustic/network/unseen_classes.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acoustic.descriptions.opening import NetworkSource, open_network
from acoustic.engine.engine import Engine
from acoustic.engine.inputs import check_inputs
from acoustic.network.network import Network
from acoustic.network.unseen_classes import UNSEEN, unseen_outputs
from acoustic.nodes.properties import OF_SOFTMAX
from acoustic.scoring.chunked_forward import forward_in_chunks, forward_in_pieces
from readers.errors import ModelError
from readers.minibatches.base import Reader, Utterance
from readers.sources.arrays import ArrayFeatures, ArrayReader
from readers.sources.arrays.array_reader import Utterances

BLOCK = 2048  # frames computed at a time
CRITERION = "CrossEntropyWithSoftmax"


def forward(
    network: NetworkSource, data: Reader | Mapping[str, Utterances], output: str = ""
) -> dict[str, npt.NDArray[np.floating[Any]]]:
    """Return the values of an output node for whole utterances.

    Parameters
    ----------
    network : Network, str or Path
        The network, or its model file.
    data : Reader, or mapping of str to arrays
        A reader, or for each input arrays (num_frames, dim) as `ArrayReader` takes them, to which the context is added
        that the network was trained with.
    output : str
        A node with a column per frame, such as ``PosteriorProb``; by default the first output of the network, for a
        decoder: the scaled log-likelihoods or what the softmax gets, in ln.

    Returns
    -------
    dict of str to array (num_frames, rows)
        By the name of the utterance, or its number in a list as text; float32, or float64 with a network in double
        precision. Utterances that cannot be read are missing; `Reader.skipped` has them.

    Raises
    ------
    ModelError
        For an unknown node, or one without a column per frame.
    ShapeError
        If the data do not match the inputs of the network.

    Examples
    --------
    >>> forward("exp/dnn", {"features": [frames]}, "PosteriorProb")["0"].shape
    (274, 130)
    """
    network = open_network(network)
    (name,) = output_nodes(network, [output] if output else network.outputs[:1])
    engine = Engine(network, [name])
    reader = data if isinstance(data, Reader) else _reader_of(data, network, engine.inputs)
    check_inputs(engine, reader)
    return {utterance.key: values[name].T for utterance, values in utterance_outputs(engine, reader, [name])}


def log_posteriors(
    network: NetworkSource, data: Reader | Mapping[str, Utterances]
) -> dict[str, npt.NDArray[np.floating[Any]]]:
    """Return the log-posteriors of the classes of a network that was trained by CrossEntropyWithSoftmax.

    Parameters
    ----------
    network, data
        See `forward`.

    Returns
    -------
    dict of str to array (num_frames, classes)
        Natural logarithms, exact also where the posterior is smaller than a float32 can be.

    Raises
    ------
    ModelError
        Also for a network without that criterion.
    ShapeError
    """
    network = open_network(network)
    kinds = [network[name] for name in network.criteria if network[name].has(OF_SOFTMAX)]
    if not kinds:
        raise ModelError(f"{network.source}: no criterion {CRITERION}; expected one, for log-posteriors")
    logarithms = {}
    for key, scores in forward(network, data, kinds[0].operands[1].name).items():
        shifted = scores - scores.max(axis=1, keepdims=True)
        logarithms[key] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logarithms


def _reader_of(data: Mapping[str, Utterances], network: Network, inputs: Sequence[str]) -> ArrayReader:
    records = {name: network.feature_records[name] for name in inputs if name in network.feature_records}
    contexts = {name: record.context for name, record in records.items() if record.context is not None}
    streams = {name: ArrayFeatures(context=context) for name, context in contexts.items() if name in data}
    return ArrayReader(data, streams=streams, write=True)


def output_nodes(network: Network, names: Sequence[str]) -> list[str]:
    """Return the names of the nodes that are called so. Raises ModelError for none, and nodes without frames."""
    if not names:
        raise ModelError(f"{network.source}: no output nodes; expected outputNodeNames=...")
    nodes = [network[name] for name in names]
    for node in nodes:
        if (shape := network.shapes[node.name]).cols is not None:
            raise ModelError(f"{node.where}: {shape}; expected a node with a column per frame")
    return [node.name for node in nodes]


def utterance_outputs(
    engine: Engine, reader: Any, names: Sequence[str], minibatch_size: int = BLOCK, epoch_size: int = 0
) -> Iterator[tuple[Utterance, dict[str, np.ndarray]]]:
    """Yield the utterances of a reader with the values of some nodes, name to array (rows, T).

    Parameters
    ----------
    engine : Engine
    reader : Reader
    names : sequence of str
    minibatch_size : int
        Frames computed at a time.
    epoch_size : int
        Limit of the frames, in whole utterances; 0: all.
    """
    recurrent = bool(engine.network.delays())
    ahead = getattr(reader, "ahead", 0)
    cuttable = engine.graph.mixing_node() is None and not recurrent
    unseen = {name: unseen_outputs(engine.network, name) for name in names}
    num_frames = 0
    for utterance in reader.utterances():
        matrices = {name: utterance.matrices[name] for name in engine.inputs}
        if epoch_size and utterance.records:
            matrices = {name: matrix[:, : epoch_size - num_frames] for name, matrix in matrices.items()}
        if recurrent:
            values = forward_in_chunks(engine, matrices, names, minibatch_size if ahead else 0, ahead)
        else:
            size = minibatch_size if utterance.records or cuttable else next(iter(matrices.values())).shape[1]
            values = forward_in_pieces(engine, matrices, names, size)
        first, last = utterance.edges
        values = {name: matrix[:, first : matrix.shape[1] - last] for name, matrix in values.items()}
        for name, rows in unseen.items():
            values[name][rows] = UNSEEN
        yield utterance, values
        num_frames += next(iter(values.values())).shape[1]
        if epoch_size and num_frames >= epoch_size:
            break
