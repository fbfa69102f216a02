"""Criteria and error counts of a network over a data set; sums over frames, as criterion nodes give them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.nodes.crf import PathNode
from readers.errors import ModelError, ShapeError


@dataclass
class Totals:
    """Sums of figures over the frames of some minibatches."""

    names: Sequence[str]
    figures: dict[str, float] = field(init=False)  # node name: sum
    num_frames: int = 0
    num_minibatches: int = 0

    def __post_init__(self):
        self.figures = dict.fromkeys(self.names, 0.0)

    def add(self, values: dict[str, float], num_frames: int) -> None:
        for name, value in values.items():
            self.figures[name] += value
        self.num_frames += num_frames
        self.num_minibatches += 1

    def averages(self) -> dict[str, float]:
        """Figures per frame."""
        return {name: total / max(self.num_frames, 1) for name, total in self.figures.items()}


def scalar(engine: Engine, name: str) -> float:
    """The value of a criterion or evaluation node after a forward pass."""
    return float(engine.value(name).item())


def check_inputs(engine: Engine, reader: Any, title: str = "reader") -> None:
    """Raise ShapeError unless the reader's streams feed every input of the engine, ModelError for a network that looks
    at other frames of a sequence, when the reader says (`in_sequence`) that it gives frames on their own, and for one
    that needs whole sequences when it says (`cuts`) that it gives pieces.

    title: what the message calls the reader; if the reader has a method `places`, as readers.minibatches.base.Reader,
    it begins with the stream's place in the configuration.
    """
    delays = engine.network.delays()
    if delays and getattr(reader, "in_sequence", None) is False:
        raise ModelError(
            f"{delays[0].where}: {title} gives frames on their own; expected sequences, "
            "for HTKMLFReader by frameMode=false"
        )
    whole = [node for node in delays if node.along_sequences]
    if whole and getattr(reader, "cuts", False):
        raise ModelError(
            f"{whole[0].where}: {title} gives pieces of sequences; expected whole ones, "
            "for HTKMLFReader by truncated=false"
        )
    dims = reader.dims()
    places = reader.places() if hasattr(reader, "places") else {}
    for name in engine.inputs:
        rows = engine.network.shapes[name].rows
        if name not in dims:
            found = ", ".join(f"{stream} ({dim})" for stream, dim in dims.items()) or "nothing"
            raise ShapeError(f"{title}: gives {found}; expected {name} ({rows}), an input of the network")
        if dims[name] != rows:
            place = f"{places[name]}: " if name in places else ""
            raise ShapeError(
                f"{place}{title}: {name} has dimension {dims[name]}; expected {rows}, as the network's input"
            )
    _check_classes(engine, reader, title)


def _check_classes(engine: Engine, reader: Any, title: str) -> None:
    """Raise ShapeError for a class-based criterion with fewer words or classes than the reader's vocabulary has."""
    wanted = dict(zip(("words", "classes"), getattr(reader, "num_words_and_classes", None) or ()))
    shapes = engine.network.shapes
    for node in engine.network.nodes.values():
        if node.type_name == "ClassBasedCrossEntropyWithSoftmax" and node.operands[0].name in engine.inputs:
            has = {"words": shapes[node.operands[2].name].cols, "classes": shapes[node.operands[3].name].rows}
            for what, count in wanted.items():
                if has[what] < count:
                    raise ShapeError(
                        f"{node.where}: {has[what]} {what}; expected at least {count}, as the {title}'s vocabulary has"
                    )


def cut_warnings(network: Network, reader: Any, minibatch_size: int, title: str = "reader") -> list[str]:
    """What to tell the user of networks that look ahead, or at paths through sequences, where the reader cuts them."""
    found = []
    cuts = getattr(reader, "cuts", False)
    future = [node for node in network.delays() if node.delay < 0]
    if future and cuts and not reader.ahead:
        found.append(
            f"{future[0].where}: {title} has truncated=true, so it sees nothing beyond a minibatch; lookAheadFrames "
            "shows it what follows, truncated=false whole utterances"
        )
    paths = [node for node in network.nodes.values() if isinstance(node, PathNode)]
    if paths and cuts:
        found.append(
            f"{paths[0].where}: {title} has truncated=true, and each piece of an utterance counts as a sequence of its "
            "own; expected truncated=false"
        )
    count = reader.num_cut(minibatch_size) if paths and hasattr(reader, "num_cut") else 0
    if count:
        found.append(
            f"{paths[0].where}: {count} of {reader.num_utterances} sentences of {title} are longer than minibatchSize "
            f"{minibatch_size}, and each piece of them counts as one; expected minibatches of the longest sentence"
        )
    return found


def evaluation_nodes(network: Network, names: Sequence[str] = ()) -> list[str]:
    """The nodes to evaluate: those named, else all evaluation nodes, then all criteria.  Each must be a scalar."""
    names = list(names) or [*network.evaluations, *network.criteria]
    if not names:
        raise ModelError("the network has no evaluation or criterion node; expected evalNodeNames")
    for name in names:
        node = network[name]
        if network.shapes[name] != (1, 1):
            raise ModelError(f"{node.where}: {network.shapes[name]}; expected a scalar, such as a criterion")
    return list(dict.fromkeys(names))


def evaluate(
    engine: Engine,
    minibatches: Iterable,
    names: Sequence[str],
    each: Callable[[dict[str, float], int], None] = lambda figures, num_frames: None,
) -> Totals:
    """Run the minibatches forward, dropout off, and add up the scalars `names`; `each` gets every minibatch's.

    Raises ModelError if there is no frame: an error of 0 would be the best of all.
    """
    totals = Totals(names)
    for minibatch in minibatches:
        engine.forward(minibatch.matrices, layout=getattr(minibatch, "layout", None))
        figures = {name: scalar(engine, name) for name in names}
        totals.add(figures, minibatch.num_frames)
        each(figures, minibatch.num_frames)
    if not totals.num_frames:
        raise ModelError("the reader gave no frame to evaluate; expected at least one")
    return totals
