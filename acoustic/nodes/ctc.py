"""Connectionist temporal classification: its criterion, the labels that it trains towards, and its error rate."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from acoustic.kernels.arrays.sequence import SequenceMarks
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import WORK, PassContext, register_node
from acoustic.nodes.crf import PathNode
from acoustic.nodes.lattice_free import NO_PATH_COST
from acoustic.nodes.option import Option
from acoustic.nodes.properties import ERROR_COUNT
from readers.errors import ModelError, SequenceWarning
from readers.minibatches.supervision import NumeratorGraph

BEGINS = 2  # value of a label in its first frame


class ColumnPathNode(PathNode):
    """Base of nodes that go through the sequences of a minibatch one by one."""

    def sequences(self, context: PassContext, columns: int) -> Iterator[slice]:
        """Yield the columns of each sequence, or of the part of it that the minibatch holds."""
        marks = self.marks(context, columns)
        for first, stride, num_frames in _places(marks):
            yield slice(first, first + (num_frames - 1) * stride + 1, stride)


def _places(marks: SequenceMarks) -> list[tuple[int, int, int]]:
    """Return the first column of every sequence, the columns from a frame to the next, and the number of frames."""
    num_slots = marks.starts.shape[1]
    slots, starts = marks.starts.T.nonzero()
    ends = marks.ends.T.nonzero()[1]
    return [
        (start * num_slots + slot, num_slots, end - start + 1)
        for slot, start, end in zip(slots.tolist(), starts.tolist(), ends.tolist())
    ]


@register_node("LabelsToGraph")
class LabelsToGraph(ColumnPathNode):
    """Labels of ForwardBackward, (labels, T): the labels, with the value 2 in the first frame of each.

    Labels in which a sequence has a 2 are copied: only those columns begin a label, so that a label may follow itself.
    In a sequence without a 2, a label begins wherever the row of the 1 changes. There is no gradient.

    Parameters
    ----------
    labels : (labels, T)
        One-hot, with 1 or, in the first frame of a label, 2.

    References
    ----------
    LabelsToGraph of CNTK 2, where a sequence without a 2 has no labels.
    """

    operand_names = ("labels",)

    def infer_shape(self, labels: Shape) -> Shape:
        return labels

    def forward(self, context: PassContext, labels: Any, *, out: Any) -> None:
        out[...] = labels
        largest = context.backend.to_host(out.max(axis=0))
        rows = context.backend.to_host(out.argmax(axis=0))
        begins = np.zeros(len(rows), bool)
        for columns in self.sequences(context, len(rows)):
            if not (largest[columns] == BEGINS).any():
                begins[columns] = np.diff(rows[columns], prepend=-1) != 0
        which = context.xp.asarray(begins.nonzero()[0])
        out[:, which] *= BEGINS


@register_node("ForwardBackward")
class ForwardBackward(ColumnPathNode):
    """Connectionist temporal classification (CTC), a scalar: ``-sum over the sequences of ln P(labels)``.

    P is the sum over the paths of a sequence of the product of their frames' softmax(z). A path is the labels of the
    sequence in their order, each in one frame or more, with any number of frames of the blank before, between and after
    them; between two equal labels there is at least one. The gradient is ``dJ/dz = G (softmax(z) - posterior)``.

    A sequence without a path, with more labels than frames, counts 10 per frame and has no gradient, and a warning
    tells its place. Rows of the blank in the labels, such as those of an utterance without speech, are no labels.

    Parameters
    ----------
    graph : (labels, T)
        The value of LabelsToGraph: a column with a 2 begins the label of its row.
    z : (labels, T)
        The input of the softmax.
    blankTokenId : int
        Row of the blank; by default -1, the last one.
    delayConstraint : int
        Frames by which a label may be late: it ends at most so many frames after the first frame of the next label in
        `graph`. By default -1, no limit.

    Raises
    ------
    ModelError
        For a blank that is not a row, or a delayConstraint below -1.

    References
    ----------
    A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber: Connectionist temporal classification, ICML 2006. ForwardBackward
    of CNTK 2, where the last blank has an undefined limit with delayConstraint; here it has none.
    """

    operand_names = ("graph", "z")
    options = (Option("blankTokenId", int, -1), Option("delayConstraint", int, -1))
    backward_reads = (None, (WORK,))
    sums_frames = True

    def _check_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        checked = super()._check_settings(settings)
        for name, value in checked.items():
            if value < -1:
                raise ModelError(f"{self.where}: {name} {value}; expected -1 or more")
        return checked

    def infer_shape(self, graph: Shape, z: Shape) -> Shape:
        if graph != z:
            raise self.shape_error((graph, z), "equal shapes")
        if self.settings["blankTokenId"] >= z.rows:
            raise self.shape_error((graph, z), f"more than {self.settings['blankTokenId']} rows, with the blank")
        return Shape(1, 1)

    def work_shape(self, graph: Shape, z: Shape) -> Shape:
        return z

    def forward(self, context: PassContext, graph: Any, z: Any, *, out: Any, work: Any = None) -> None:
        from acoustic.kernels.lattice_free import numerator_loops  # loads numba
        from acoustic.kernels.lattice_free.objective import graph_arrays

        outputs = context.backend.to_host(z)
        gradient = np.empty((len(outputs), 0), outputs.dtype, "F") if work is None else np.zeros_like(outputs)
        places = _places(self.marks(context, outputs.shape[1]))
        sequences = list(self._graphs(context, graph))
        costs = np.zeros(len(places))
        team = context.backend.host_team
        num_workers = max(1, min(team.size, len(places)))

        def compute(worker: int) -> None:
            for k in range(worker, len(places), num_workers):
                columns, paths = sequences[k]
                status, total = numerator_loops.forward_backward(
                    outputs.T, places[k], *graph_arrays(paths), -1.0, gradient.T, places[k]
                )
                costs[k] = np.inf  # without a path
                if status == numerator_loops.FINE:
                    costs[k] = self._softmax(outputs[:, columns], gradient[:, columns]) - total

        team.run(compute, num_workers)
        for k in np.flatnonzero(costs == np.inf).tolist():
            costs[k] = self._cost_without_path(outputs, sequences[k][0])
        out[...] = costs.sum()
        if work is not None:
            work[...] = context.xp.asarray(gradient)

    def _softmax(self, z: np.ndarray, gradient: np.ndarray) -> float:
        """Return the sum of the logarithms of the sums of exp(z) over the frames; add softmax(z) to the gradient."""
        top = z.max(axis=0)
        weights = np.exp(z - top)
        mass = weights.sum(axis=0)
        if gradient.size:
            gradient += weights / mass
        return float((top + np.log(mass)).sum(dtype=np.float64))

    def _cost_without_path(self, z: np.ndarray, columns: slice) -> float:
        """Return the cost of a sequence without a path, with a warning."""
        num_frames = z[:, columns].shape[1]
        if not np.isfinite(z[:, columns]).all():
            return np.nan  # training has diverged
        place = f"the sequence of {num_frames} frames from column {columns.start} on"
        text = "has no path, because it has too few frames for its labels; it does not train the network"
        warnings.warn(f"{self.where}: {place} {text}", SequenceWarning, stacklevel=2)
        return NO_PATH_COST * num_frames

    def _graphs(self, context: PassContext, graph: Any) -> Iterator[tuple[slice, NumeratorGraph]]:
        """Yield the columns of each sequence and its paths."""
        marks = context.backend.asarray(graph)
        largest = context.backend.to_host(marks.max(axis=0))
        rows = context.backend.to_host(marks.argmax(axis=0))
        blank = self.settings["blankTokenId"] % marks.shape[0]
        for columns in self.sequences(context, len(rows)):
            begins = np.flatnonzero((largest[columns] == BEGINS) & (rows[columns] != blank))
            num_frames = len(rows[columns])
            yield columns, ctc_graph(rows[columns][begins], begins, num_frames, blank, self.settings["delayConstraint"])

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any, work: Any = None
    ) -> None:
        grads.add(1, lambda out: context.kernels.scale(work, grad, out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        from acoustic.kernels.lattice_free.forward_mode import numerator_slope

        z, dz = (context.backend.to_host(matrix) for matrix in (inputs[1], tangents[1]))
        slope = 0.0
        for columns, graph in self._graphs(context, inputs[0]):
            logarithm, numerator = numerator_slope(graph, z[:, columns], dz[:, columns])
            if logarithm > -np.inf:
                weights = np.exp(z[:, columns] - z[:, columns].max(axis=0))
                slope += ((weights * dz[:, columns]).sum(axis=0) / weights.sum(axis=0)).sum() - numerator
        return context.xp.asarray([[slope]])


def ctc_graph(labels: np.ndarray, begins: np.ndarray, num_frames: int, blank: int, delay: int = -1) -> NumeratorGraph:
    """Return the paths of a sequence of labels, with probability 1 each.

    Parameters
    ----------
    labels : (n,) int
        Rows of the network's output.
    begins : (n,) int
        First frame of each label, for the limit.
    num_frames : int
    blank : int
        Row of the blank.
    delay : int
        Frames by which a label may be late; -1 for no limit.

    Returns
    -------
    NumeratorGraph
        State 0 comes before the first frame, state s > 0 is symbol s - 1 of blank, label, blank, ..., label, blank.
    """
    num_symbols = 2 * len(labels) + 1
    symbols = np.full(num_symbols, blank, np.int32)
    symbols[1::2] = labels
    states = np.arange(1, num_symbols + 1, dtype=np.int32)
    skips = np.zeros(num_symbols, bool)  # whether a path may go on from the label before, without a blank
    skips[1::2] = True
    skips[3::2] = symbols[3::2] != symbols[1:-2:2]
    from_state = np.concatenate([states, states - 1, states[skips] - 2])
    to_state = np.concatenate([states, states, states[skips]])
    initial = np.full(num_symbols + 1, -np.inf, np.float32)
    initial[0] = 0
    final = np.full(num_symbols + 1, -np.inf, np.float32)
    final[-2 if len(labels) else -1 :] = 0
    frame_arcs = None
    if delay >= 0:
        # A path that is too late in the blank is not in time for the label after it, so that labels alone have a limit.
        last = np.full(num_symbols, num_frames)
        last[1:-2:2] = begins[1:] + delay
        frames, arcs = np.nonzero(np.arange(num_frames)[:, np.newaxis] <= last[to_state - 1])
        frame_arcs = np.searchsorted(frames, np.arange(num_frames + 1)).astype(np.int32)
        from_state = from_state[arcs]
        to_state = to_state[arcs]
    return NumeratorGraph(
        num_states=num_symbols + 1,
        from_state=from_state,
        to_state=to_state,
        output=symbols[to_state - 1],
        log_probability=np.zeros(len(from_state), np.float32),
        initial=initial,
        final=final,
        frame_arcs=frame_arcs,
    )


@register_node("EditDistanceError")
class EditDistanceError(ColumnPathNode):
    """Errors between the label sequences of two operands, a scalar: ``errors * frames / labels``.

    Of each column counts the row of the largest element. The errors of a sequence are those of the cheapest way to
    turn the labels into the prediction; of equally cheap ways, one that ends with a substitution, then one that ends
    with an insertion. Since criteria are divided by the number of frames, it is shown as errors per label. There is no
    gradient.

    Parameters
    ----------
    labels, prediction : (labels, T)
    subPen, delPen, insPen : float
        Costs of a substitution, a deletion (a label that the prediction lacks) and an insertion; 1.
    squashInputs : bool
        Whether a run of equal rows counts once; false. Necessary for CTC.
    tokensToIgnore : str
        Rows that are left out after that, such as the blank, separated by ``:``.

    Raises
    ------
    ModelError
        For a token that is not a row, and a cost below 0.

    References
    ----------
    EditDistanceError of CNTK 2.
    """

    properties = frozenset({ERROR_COUNT})
    operand_names = ("labels", "prediction")
    options = (
        Option("subPen", float, 1.0),
        Option("delPen", float, 1.0),
        Option("insPen", float, 1.0),
        Option("squashInputs", bool, False),
        Option("tokensToIgnore", str, ""),
    )
    sums_frames = True

    def _check_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        checked = super()._check_settings(settings)
        for name in ("subPen", "delPen", "insPen"):
            if not checked[name] >= 0:
                raise ModelError(f"{self.where}: {name} {checked[name]:g}; expected at least 0")
        for token in _tokens(checked["tokensToIgnore"]):
            if not token.isdecimal():
                raise ModelError(f"{self.where}: tokensToIgnore has {token!r}; expected rows, separated by ':'")
        return checked

    def infer_shape(self, labels: Shape, prediction: Shape) -> Shape:
        if labels != prediction:
            raise self.shape_error((labels, prediction), "equal shapes")
        for token in _tokens(self.settings["tokensToIgnore"]):
            if int(token) >= labels.rows:
                raise self.shape_error((labels, prediction), f"more than {token} rows, with all tokensToIgnore")
        return Shape(1, 1)

    def forward(self, context: PassContext, labels: Any, prediction: Any, *, out: Any) -> None:
        from acoustic.kernels.compiled.sequence_loops import count_errors

        settings = self.settings
        penalties = settings["subPen"], settings["delPen"], settings["insPen"]
        rows = [
            context.backend.to_host(context.backend.asarray(operand).argmax(axis=0)) for operand in (labels, prediction)
        ]
        num_errors = num_labels = num_frames = 0
        for columns in self.sequences(context, len(rows[0])):
            reference, hypothesis = (self._extract(operand[columns]) for operand in rows)
            num_errors += count_errors(reference, hypothesis, *penalties)
            num_labels += len(reference)
            num_frames += len(rows[0][columns])
        out[...] = num_errors * num_frames / max(num_labels, 1)

    def _extract(self, rows: np.ndarray) -> np.ndarray:
        """Return the tokens of the frames of a sequence, (n,) int64."""
        if self.settings["squashInputs"]:
            rows = rows[np.diff(rows, prepend=-1) != 0]
        ignored = [int(token) for token in _tokens(self.settings["tokensToIgnore"])]
        return rows[~np.isin(rows, ignored)].astype(np.int64)


def _tokens(text: str) -> list[str]:
    return text.split(":") if text else []
