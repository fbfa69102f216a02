"""Criteria of whole sequences that are computed from lattices: MMI, boosted MMI, MPE and sMBR."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from acoustic.kernels.arrays.lattice import (
    COUNTED,
    IGNORED,
    MMI,
    MPE,
    ONE_CLASS,
    SMBR,
    LatticeArrays,
    LatticeScaling,
    plain_value,
)
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import WORK, Node, PassContext, register_node
from acoustic.nodes.criteria import label_rows, scalar
from acoustic.nodes.option import Option
from acoustic.nodes.sequence_state import Sequences
from readers.config.options import Options, option
from readers.errors import ModelError, SequenceWarning
from readers.minibatches.supervision import LatticeSupervision, PlacedSupervision

CRITERIA = {"mmi": MMI, "mpe": MPE, "smbr": SMBR}
SILENCE = {"ignored": IGNORED, "oneClass": ONE_CLASS, "counted": COUNTED}
STEP = 1e-30  # of the derivative by complex numbers, which has no rounding error


@dataclass(frozen=True, kw_only=True)
class SequenceOptions(Options):
    """Options of SequenceWithSoftmax, which an SGD block may set, too."""

    smoothing: float = option(
        0.95, "weight of the sequence criterion against the cross entropy", least=0, most=1, cntk="hSmoothingWeight"
    )
    frame_drop: float = option(
        1e-10,
        "posterior probability of the reference below which a frame has no gradient; 0: use all frames",
        least=0,
        most=1,
        cntk="frameDropThresh",
    )
    reference_align: bool = option(
        False,
        "not built",
        check=lambda wanted: not wanted,
        expected="false: the reference is the alignment that was stored with the lattices; make the lattices again to "
        "align it with the present model",
        cntk="doReferenceAlign",
    )
    uses_mbr: bool = option(
        False, "whether the criterion is sMBR, unless sequenceCriterion is mpe", cntk="seqGammarUsesMBR"
    )
    divisor: float = option(14.0, "divisor of the scores", above=0, cntk="seqGammarAMF")
    lm_factor: float = option(14.0, "factor of the language model", least=0, cntk="seqGammarLMF")
    word_penalty: float = option(0.0, "added to the score of a path for each word", cntk="seqGammarWordPen")
    boost: float = option(0.0, "added to the score of a path for each wrong frame", least=0, cntk="seqGammarBMMIFactor")
    criterion: Literal["mmi", "mpe", "smbr"] = option("mmi", "sequence criterion", cntk="sequenceCriterion")
    silence: Literal["oneClass", "ignored", "counted"] = option(
        "oneClass",
        "whether a frame in a silence phone is correct if the reference has any silence phone there, never, or like "
        "any other frame; only with counted can it be wrong for seqGammarBMMIFactor",
        cntk="silenceFrames",
    )
    by_senone: bool = option(False, "compare senones instead of phones for seqGammarBMMIFactor", cntk="boostBySenone")


class SupervisedCriterion(Node):
    """Base of criteria that compare a sequence with a supervision, which the reader attaches to the layout.

    The gradient is 0 in columns without supervision: gaps and context.

    Attributes
    ----------
    supervision_type : type
        Class of the supervisions.
    supervised_by : str
        The reader's block that provides them, for messages.
    """

    supervision_type: ClassVar[type]
    supervised_by: ClassVar[str]
    sums_frames = True

    def splits_frames(self, *shapes: Shape) -> bool:
        return False

    @property
    def _block(self) -> str:
        return f"{self.supervised_by} in the reader"

    def utterances(self, context: PassContext) -> Sequences:
        """Return the sequences of a minibatch; raise ModelError for independent frames."""
        if context.sequences is None:
            raise ModelError(f"{self.where}: independent frames; expected whole utterances, with {self._block}")
        return context.sequences

    def supervisions(self, context: PassContext) -> list[PlacedSupervision]:
        """Return the supervisions of a minibatch that are of the right type.

        Raises ModelError if there are none, or one does not fit the layout.
        """
        layout = self.utterances(context).layout
        supervisions = [
            placed for placed in layout.supervisions if isinstance(placed.supervision, self.supervision_type)
        ]
        if not supervisions:
            raise ModelError(f"{self.where}: nothing to compare the utterances with; expected {self._block}")
        covered = np.zeros((layout.num_steps, layout.num_sequences), bool)
        for slot, step, num_frames, supervision in supervisions:
            name = f"{self.where}: supervision of {supervision.name}"
            if supervision.num_frames != num_frames:
                raise ModelError(f"{name} has {supervision.num_frames} frames; expected {num_frames}, as the utterance")
            last = step + num_frames
            if not (0 <= slot < layout.num_sequences and 0 <= step < last <= layout.num_kept):
                raise ModelError(
                    f"{name} is in slot {slot}, steps {step} to {last - 1}; expected a place of the layout"
                )
            if layout.gaps[step:last, slot].any():
                raise ModelError(f"{name} covers columns without a frame; expected those of an utterance")
            if covered[step:last, slot].any():
                raise ModelError(f"{name} covers columns of another one; expected one for each frame")
            covered[step:last, slot] = True
        return supervisions


@register_node("SequenceWithSoftmax", "SEWithSM")
class SequenceWithSoftmax(SupervisedCriterion):
    """Sequence criterion of lattices, smoothed with the cross entropy of frames, a scalar.

    The value is ``H S + (1 - H) C``, summed over the frames: C is the cross entropy of the labels and the softmax of
    the prediction, and S is computed from the lattice of each utterance. The score of a path is ``(log-likelihoods +
    transitions + LMF * language model + WordPen * words) / AMF``, plus BMMIFactor for each of its wrong frames (boosted
    MMI). With MMI, S is AMF times the negative log posterior probability of the reference. With MPE or sMBR, S is AMF
    times the expected number of frames whose phone or senone is wrong. The factor AMF makes the gradient independent of
    it, as in CNTK and Kaldi.

    The gradient is ``G (H (p - r) + (1 - H) (softmax - labels))`` with MMI, where p are the posterior probabilities of
    the senones in the lattice and r is the reference. All of it goes to the prediction: the log-likelihoods are the
    prediction minus constants. It is 0 in frames whose reference senone has a posterior probability below
    frameDropThresh, and in gaps. Labels may be given as `Indicators`.

    Parameters
    ----------
    labels : (rows, T)
        One-hot.
    prediction : (rows, T)
        The input of the softmax.
    scaledLogLikelihood : (rows, T)
        The prediction minus the log priors.
    others
        Options, those of `SequenceOptions` by their names in a configuration.

    Raises
    ------
    ModelError
        During a pass, if the reader delivers no lattices, or one that does not fit.

    References
    ----------
    SequenceWithSoftmax of CNTK in 2015, whose gradient it has. K. Vesely, A. Ghoshal, L. Burget, D. Povey:
    Sequence-discriminative training of deep neural networks. Interspeech 2013.
    """

    supervision_type = LatticeSupervision
    supervised_by = "lattices=[denLatTocFile=..., numLatTocFile=...]"
    operand_names = ("labels", "prediction", "scaledLogLikelihood")
    options = tuple(
        Option(declared.key, declared.type, declared.default, choices=declared.choices)
        for declared in SequenceOptions.declared()
    )
    backward_reads = (None, (WORK,), ())

    def _check_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        checked = super()._check_settings(settings)
        for declared in SequenceOptions.declared():
            if fault := declared.fault_of(checked[declared.key]):
                raise ModelError(f"{self.where}: {declared.key} {fault}")
        return checked

    def infer_shape(self, labels: Shape, prediction: Shape, likelihood: Shape) -> Shape:
        if not labels == prediction == likelihood:
            raise self.shape_error((labels, prediction, likelihood), "equal shapes")
        return Shape(1, 1)

    def work_shape(self, labels: Shape, prediction: Shape, likelihood: Shape) -> Shape:
        return prediction

    @property
    def criterion(self) -> int:
        """MMI, MPE or SMBR."""
        chosen = CRITERIA[self.settings["sequenceCriterion"]]
        return SMBR if chosen == MMI and self.settings["seqGammarUsesMBR"] else chosen

    @property
    def summary(self) -> str:
        """The criterion with the options that matter to it, for the log."""
        names = ["hSmoothingWeight", "frameDropThresh", "seqGammarAMF", "seqGammarLMF", "seqGammarWordPen"]
        names += ["seqGammarBMMIFactor", "silenceFrames"]
        name = next(name for name, number in CRITERIA.items() if number == self.criterion)
        return ", ".join([name, *(f"{option}={self.settings[option]}" for option in names)])

    @property
    def scaling(self) -> LatticeScaling:
        """How the paths of a lattice are scored."""
        settings = self.settings
        return LatticeScaling(
            self.criterion,
            SILENCE[settings["silenceFrames"]],
            settings["seqGammarAMF"],
            settings["seqGammarLMF"],
            settings["seqGammarWordPen"],
            settings["seqGammarBMMIFactor"],
            settings["boostBySenone"],
        )

    def forward(
        self, context: PassContext, labels: Any, prediction: Any, likelihood: Any, *, out: Any, work: Any = None
    ) -> None:
        placed = self.supervisions(context)
        weight = self.settings["hSmoothingWeight"]
        stride = self.utterances(context).num_slots
        team = context.backend.host_team
        scores = context.backend.to_host(likelihood).T
        firsts = [sequence.step * stride + sequence.slot for sequence in placed]
        frames = self._cross_entropy(context, _columns(placed, firsts, stride), labels, prediction, work)
        target = work if work is None or context.xp is np else context.backend.to_host(work)
        values, dropped = np.zeros((2, len(placed)))
        workers = min(team.size, len(placed))

        def compute(worker: int) -> None:
            for k in range(worker, len(placed), workers):
                gradient = None if target is None else target.T
                lattice = placed[k].supervision
                assert isinstance(lattice, LatticeSupervision)  # as `supervisions` has checked
                values[k], dropped[k] = self._sequence(lattice, scores, firsts[k], stride, gradient)

        team.run(compute, workers)
        for k in np.flatnonzero(dropped > [sequence.num_frames / 2 for sequence in placed]):
            self._warn(placed[k])
        if target is not work:
            work[...] = context.xp.asarray(target)
        out[...] = weight * values.sum() + (1 - weight) * frames

    def _cross_entropy(
        self, context: PassContext, columns: np.ndarray, labels: Any, prediction: Any, work: Any
    ) -> float:
        """Return the cross entropy of some columns; fill `work`, unless it is None, with 1 - H times its gradient."""
        weight = 1 - self.settings["hSmoothingWeight"]
        xp = context.xp
        backend = context.backend
        all_columns = len(columns) == prediction.shape[1]
        if work is not None and (weight == 0 or not all_columns):
            work.fill(0)
        if weight == 0:
            return 0.0
        which = xp.asarray(columns)
        z = prediction if all_columns else xp.asfortranarray(prediction[:, which])
        error = work if work is None or all_columns else backend.empty(*z.shape)
        out = backend.empty(1, 1)
        numbers = label_rows(labels)
        if numbers is not None:
            context.kernels.cross_entropy_numbers(numbers if all_columns else numbers[columns], z, out, error)
        else:
            dense = backend.asarray(labels)
            context.kernels.cross_entropy_softmax(
                dense if all_columns else backend.asarray(dense[:, which]), z, out, error
            )
        if work is not None:
            xp.multiply(error, weight, out=error)
            if not all_columns:
                work[:, which] = error
        return float(out.item())

    def _sequence(
        self, lattice: LatticeSupervision, scores: np.ndarray, first: int, stride: int, gradient: np.ndarray | None
    ) -> tuple[float, int]:
        """Return S of an utterance and the number of dropped frames; 0 if `gradient` (N, rows) is None.

        Otherwise, H times the derivative of S is added there.
        """
        from acoustic.kernels.compiled import lattice_loops as loops  # numba: only a job that computes loads it

        arrays = self._checked(lattice, scores.shape[1])
        scaling = self.scaling
        arguments = (scores, first, stride, arrays, int(lattice.num_nodes), scaling)
        if gradient is None:
            return self._summed(lattice, arrays, scores[first::stride], *loops.value(*arguments)), 0
        numbers, reference_numbers, senones = loops.number_senones(arrays, scores.shape[1])
        derivative = np.empty((lattice.num_frames, len(senones)))
        reference = np.empty(lattice.num_frames)
        result = loops.value_and_derivative(*arguments, numbers, derivative, reference)
        weight = self.settings["hSmoothingWeight"]
        if scaling.criterion == MMI:
            derivative[np.arange(lattice.num_frames), reference_numbers] -= 1
        else:
            weight = -weight
        loops.add_derivative(derivative, senones, first, stride, weight, gradient)
        dropped = np.flatnonzero(reference < self.settings["frameDropThresh"])
        gradient[first + dropped * stride] = 0
        return self._summed(lattice, arrays, scores[first::stride], *result), len(dropped)

    def _warn(self, placed: PlacedSupervision) -> None:
        """Warn of an utterance; equal texts in later epochs are not shown again."""
        why = "because the posterior probability of their reference is below frameDropThresh"
        text = f"more than half of its {placed.num_frames} frames do not train the network, {why}"
        warnings.warn(f"{self.where}: {placed.supervision.name}: {text}", SequenceWarning, stacklevel=2)

    def _summed(self, lattice: LatticeSupervision, arrays: LatticeArrays, scores: Any, total: Any, correct: Any) -> Any:
        """Return S, given the ln of the sum over all paths and the expected number of correct frames."""
        if total == -np.inf:
            raise ModelError(f"{self.where}: lattice of {lattice.name}: no path has a probability above 0")
        factor = self.settings["seqGammarAMF"]
        if self.criterion != MMI:
            return factor * (lattice.num_frames - correct)
        right = scores[np.arange(lattice.num_frames), arrays.reference_senones]
        right = right.sum(dtype=np.result_type(right, np.float64)) + lattice.reference_transition_score
        right += self.settings["seqGammarLMF"] * lattice.reference_score
        return factor * total - right - self.settings["seqGammarWordPen"] * lattice.num_reference_words

    def _checked(self, lattice: LatticeSupervision, rows: int) -> LatticeArrays:
        """Return the arrays of a lattice, after a check of all indices that loops follow. Raises ModelError."""
        from acoustic.kernels.compiled import lattice_loops as loops

        arrays = LatticeArrays.of(lattice)
        fault, index = loops.check(arrays, int(lattice.num_nodes), int(lattice.num_frames), rows)
        if fault == loops.FINE:
            return arrays
        phones = len(arrays.silence)
        detail, expected = {
            loops.BAD_NODE: ("its nodes", f"two of {lattice.num_nodes} nodes in topological order"),
            loops.BAD_TIME: ("its frames", f"paths of {lattice.num_frames} frames, from the first to the last node"),
            loops.BAD_SENONE: ("its senone", f"one of the {rows} outputs of the network"),
            loops.BAD_PHONE: ("its phone", f"one of {phones} phones"),
            loops.BAD_REFERENCE: ("its reference", f"one of {rows} senones and one of {phones} phones in each frame"),
        }[fault]
        what = "frame" if fault == loops.BAD_REFERENCE else "arc"
        raise ModelError(f"{self.where}: lattice of {lattice.name}, {what} {index}: {detail}; expected {expected}")

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any, work: Any = None
    ) -> None:
        grads.add(1, lambda out: context.kernels.scale(work, grad, out))
        if grads.needs(2) and grads.take_fresh(2):
            grads.targets[2].fill(0)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Evaluate the plain recursion at complex numbers; dropped frames count here as others do."""
        labels, z, likelihood = inputs
        _, dz, dlikelihood = tangents
        xp = context.xp
        weight = self.settings["hSmoothingWeight"]
        stride = self.utterances(context).num_slots
        total = 0.0
        for slot, step, num_frames, lattice in self.supervisions(context):
            assert isinstance(lattice, LatticeSupervision)
            columns = (step + np.arange(num_frames)) * stride + slot
            arrays = LatticeArrays.of(lattice)
            moved = likelihood[:, columns] + 1j * STEP * dlikelihood[:, columns]
            moved = context.backend.to_host(moved)
            values = plain_value(moved, arrays, lattice.num_nodes, self.scaling)
            total += weight * self._summed(lattice, arrays, moved.T, *values).imag / STEP
            x = z[:, columns]
            dx = dz[:, columns]
            targets = labels[:, columns]
            share = xp.exp(x - x.max(axis=0))
            total -= (1 - weight) * float((targets * (dx - (share * dx).sum(axis=0) / share.sum(axis=0))).sum())
        return scalar(xp.asarray([[total]]))


def _columns(placed: Sequence[PlacedSupervision], firsts: Sequence[int], stride: int) -> np.ndarray:
    """Return the columns of all supervised frames."""
    return np.concatenate([first + stride * np.arange(sequence.num_frames) for sequence, first in zip(placed, firsts)])


def configure_sequence_criteria(nodes: Iterable[Node], settings: Iterable[tuple[str, Any]]) -> list[str]:
    """Set options of the SequenceWithSoftmax among some nodes; return a line for each of them, or a warning.

    Parameters
    ----------
    nodes : iterable of Node
        The nodes that a training computes.
    settings : iterable of (str, value)
        Options by name.

    Raises
    ------
    ModelError
        For a value that is out of range.
    """
    changes = dict(settings)
    criteria = [node for node in nodes if isinstance(node, SequenceWithSoftmax)]
    for node in criteria:
        node.settings = node._check_settings(node.settings | changes)
    if changes and not criteria:
        return [f"warning: {', '.join(changes)}: the network has no criterion SequenceWithSoftmax; no effect"]
    return [f"{node.where}: {node.summary}" for node in criteria]
