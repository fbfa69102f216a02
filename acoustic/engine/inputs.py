"""What a network needs of a reader: the streams, their dimensions, sequences, features and words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.crf import PathNode
from acoustic.nodes.properties import OF_WORD_CLASSES
from acoustic.nodes.sequence_criterion import SupervisedCriterion
from readers.config.feature_record import IGNORE_HINT, FeatureRecord
from readers.errors import ModelError, ShapeError
from readers.language.vocabulary_record import VocabularyRecord

BY_UTTERANCE = "for HTKMLFReader by frameMode=false, for ArrayReader by frame_mode=False"


class HasInputs(Protocol):
    """What the checks need of an engine: its network, and the names of its inputs and roots."""

    @property
    def network(self) -> Network:
        """The network that is evaluated."""

    @property
    def inputs(self) -> Sequence[str]:
        """Names of the inputs that a reader must provide."""

    @property
    def roots(self) -> Sequence[str]:
        """Names of the nodes that are evaluated."""


@dataclass(frozen=True)
class NetworkInputs:
    """Some inputs of a network, for checks without an engine."""

    network: Network
    inputs: Sequence[str]
    roots: Sequence[str] = ()


def check_inputs(engine: HasInputs, reader: Any, title: str = "reader") -> None:
    """Check that a reader provides what the network needs.

    Parameters
    ----------
    engine : Engine, PairEngine or NetworkInputs
        The network and its inputs.
    reader : readers.minibatches.base.Reader
        The reader to check.
    title : str
        Name of the reader in messages.

    Raises
    ------
    ShapeError
        If a stream is missing or has another dimension than the network's input.
    ModelError
        If the network has delays and the reader gives single frames, it needs whole sequences and the reader
        gives pieces of them, or it was trained on other features.
    """
    delays = engine.network.delays()
    if delays and getattr(reader, "in_sequence", None) is False:
        raise ModelError(f"{delays[0].where}: {title} gives frames on their own; expected sequences, {BY_UTTERANCE}")
    along_sequences = [node for node in delays if node.along_sequences]
    if along_sequences and getattr(reader, "cuts", False):
        raise ModelError(
            f"{along_sequences[0].where}: {title} gives pieces of sequences; expected whole ones, "
            "for HTKMLFReader by truncated=false"
        )
    _check_supervision(engine, reader, title)
    _check_features(engine, reader, title)
    dims = reader.dims()
    places = reader.places() if hasattr(reader, "places") else {}
    for name in engine.inputs:
        rows = engine.network.shapes[name].rows
        if name not in dims:
            streams = ", ".join(f"{stream} ({dim})" for stream, dim in dims.items()) or "nothing"
            raise ShapeError(f"{title}: gives {streams}; expected {name} ({rows}), an input of the network")
        if dims[name] != rows:
            prefix = f"{places[name]}: " if name in places else ""
            raise ShapeError(
                f"{prefix}{title}: {name} has dimension {dims[name]}; expected {rows}, as the network's input"
            )
    _check_classes(engine, reader, title)
    check_vocabularies(engine, reader, title)


def _check_supervision(engine: HasInputs, reader: Any, title: str) -> None:
    """Raise ModelError if a criterion of whole sequences gets single frames, pieces, or nothing to compare with."""
    order = forward_order([engine.network[name] for name in engine.roots])
    criterion = next((node for node in order if isinstance(node, SupervisedCriterion)), None)
    if criterion is None:
        return
    if getattr(reader, "in_sequence", None) is False:
        fault = f"single frames; expected whole utterances, {BY_UTTERANCE}"
    elif getattr(reader, "cuts", False):
        fault = "pieces of utterances; expected whole ones, for HTKMLFReader by truncated=false"
    elif getattr(reader, "is_supervised", None) is False:
        fault = f"nothing to compare utterances with; expected {criterion.supervised_by} in it"
    elif (graphs := getattr(reader, "num_supervised_outputs", None)) is not None:
        prediction = criterion.operands[0]
        rows = engine.network.shapes[prediction.name].rows
        if graphs == rows:
            return
        fault = f"graphs of {graphs} outputs; expected {rows}, as {prediction.name} has"
    else:
        return
    raise ModelError(f"{criterion.where}: {title} gives {fault}")


def _check_features(engine: HasInputs, reader: Any, title: str) -> None:
    """Raise ModelError if the network was trained on other features than those of the reader."""
    if getattr(reader, "ignores_feature_mismatch", False):
        return
    network, dims = engine.network, reader.dims()
    for name, record in feature_records(engine, reader).items():
        if name in network.feature_records:
            if dims.get(name) != network.shapes[name].rows:  # says more about a wrong `dim` than the context
                record = replace(record, context=None)
            why = f"with which {network.source} was trained"
            fault = record.mismatch(f"{title}: {name}", network.feature_records[name], why)
            if fault:
                raise ModelError(f"{fault}; {IGNORE_HINT}")


def feature_records(engine: HasInputs, reader: Any) -> dict[str, FeatureRecord]:
    """Return how the features that a reader gives to each input were computed, as far as it is known."""
    records = reader.feature_records() if hasattr(reader, "feature_records") else {}
    return {name: record for name, record in records.items() if name in engine.inputs}


def add_feature_records(engine: HasInputs, reader: Any) -> None:
    """Record in the network how the features that it is trained on were computed."""
    network = engine.network
    for name, record in feature_records(engine, reader).items():
        network.feature_records[name] = network.feature_records.get(name, record).updated(record)


def vocabularies(engine: HasInputs, reader: Any) -> dict[str, VocabularyRecord]:
    """Return the vocabulary that a reader uses for each input, for inputs of text."""
    records = reader.vocabularies() if hasattr(reader, "vocabularies") else {}
    return {name: record for name, record in records.items() if name in engine.inputs}


def add_vocabularies(engine: HasInputs, reader: Any) -> None:
    """Record in the network the words that it is trained on."""
    for name, record in vocabularies(engine, reader).items():
        engine.network.vocabularies.setdefault(name, record)


def check_vocabularies(engine: HasInputs, reader: Any, title: str = "reader") -> None:
    """Raise ModelError if the network was trained with other words, or word classes, than those of the reader."""
    network, places = engine.network, reader.places() if hasattr(reader, "places") else {}
    for name, record in vocabularies(engine, reader).items():
        if name in network.vocabularies:
            where = f"{places[name]}: {title}: {name}" if name in places else f"{title}: {name}"
            fault = record.mismatch(where, network.vocabularies[name], f"with which {network.source} was trained")
            if fault:
                raise ModelError(fault)


def _check_classes(engine: HasInputs, reader: Any, title: str) -> None:
    """Raise ShapeError if a class-based criterion has fewer words or classes than the reader's vocabulary."""
    counts = dict(zip(("words", "classes"), getattr(reader, "num_words_and_classes", None) or ()))
    shapes = engine.network.shapes
    for node in engine.network.nodes.values():
        if node.has(OF_WORD_CLASSES) and node.operands[0].name in engine.inputs:
            has = {"words": shapes[node.operands[2].name].cols, "classes": shapes[node.operands[3].name].rows}
            for what, count in counts.items():
                if has[what] < count:
                    raise ShapeError(
                        f"{node.where}: {has[what]} {what}; expected at least {count}, as the {title}'s vocabulary has"
                    )


def cut_warnings(network: Network, reader: Any, minibatch_size: int) -> list[str]:
    """Return warnings for networks with look-ahead or sequence criteria when the reader cuts sequences."""
    warnings = []
    cuts = getattr(reader, "cuts", False)
    future = [node for node in network.delays() if node.delay < 0]
    if future and cuts and not reader.ahead:
        warnings.append(
            f"{future[0].where}: reader has truncated=true, so it sees nothing beyond a minibatch; lookAheadFrames "
            "shows it what follows, truncated=false whole utterances"
        )
    paths = [node for node in network.nodes.values() if isinstance(node, PathNode)]
    if paths and cuts:
        warnings.append(
            f"{paths[0].where}: reader has truncated=true, and each piece of an utterance counts as a sequence of its "
            "own; expected truncated=false"
        )
    count = reader.num_cut(minibatch_size) if paths and hasattr(reader, "num_cut") else 0
    if count:
        warnings.append(
            f"{paths[0].where}: {count} of {reader.num_utterances} sentences of reader are longer than minibatchSize "
            f"{minibatch_size}, and each piece of them counts as one; expected minibatches of the longest sentence"
        )
    return warnings
