"""Lattice-free MMI: its criterion, and the cross entropy of its numerator posteriors."""

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import WORK, PassContext, register_node
from acoustic.nodes.criteria import CriterionNode
from acoustic.nodes.option import Option
from acoustic.nodes.sequence_criterion import SupervisedCriterion
from readers.errors import ModelError, SequenceWarning
from readers.minibatches.supervision import ChainSupervision

if TYPE_CHECKING:
    from acoustic.kernels.lattice_free.objective import LatticeFree

NO_PATH_COST = 10.0  # of a frame in a sequence whose numerator has no path, as in Kaldi


class ChainCriterion(SupervisedCriterion):
    """Base of the criteria on the numerator and denominator graphs that come with the sequences of a minibatch."""

    supervision_type = ChainSupervision
    supervised_by = "chain=[denominator=FILE, numerators=FILE]"

    def sequences(self, context: PassContext, prediction: Any) -> "LatticeFree":
        """Return the sequences of the minibatch with their graphs; raise ModelError if there are none."""
        from acoustic.kernels.lattice_free.objective import LatticeFree  # loads numba

        placed = self.supervisions(context)
        with self.located():
            return LatticeFree(placed, self.utterances(context).num_slots, prediction.shape[0])

    @contextlib.contextmanager
    def located(self) -> Iterator[None]:
        """Put the node into the message of a ModelError."""
        try:
            yield
        except ModelError as error:
            raise ModelError(f"{self.where}: {error}") from error

    def warn(self, batch: "LatticeFree", has_path: np.ndarray) -> None:
        """Warn of each sequence whose numerator has no path."""
        for k in np.flatnonzero(~has_path):
            name = batch.names[k]
            count = batch.counts[k]
            text = f"no path of {count} frames in the numerator graph; the sequence does not train the network"
            warnings.warn(f"{self.where}: {name}: {text}", SequenceWarning, stacklevel=2)


@register_node("LFMMI")
class LFMMI(ChainCriterion):
    """Lattice-free maximum mutual information, a scalar: ``sum over sequences of ln D - ln N``, with regularisation.

    N is the sum over the paths of a sequence's numerator graph, D that over the paths of the denominator graph. Each
    arc of a path emits the output y_t(i) of its frame, as a logarithm without softmax. In the denominator a path may
    also leave any state, before the first frame and after each frame, and go on from another with probability `leaky`
    times its initial probability. The gradient is ``dJ/dy = G (posterior in D - posterior in N + l2 y + penalty e)``,
    where e is the excess of y over +-limit, and the criterion contains ``l2 y^2 / 2 + penalty e^2 / 2``.

    Columns without supervision have no gradient. A sequence whose numerator has no path has none either; it counts 10
    per frame, and a warning names it.

    Parameters
    ----------
    y : (rows, T)
        Outputs of the network before any softmax.
    leaky : float
        1e-5.
    l2 : float
        5e-5.
    limit : float
        30.
    penalty : float
        0.01.

    Raises
    ------
    ModelError
        During a pass, if the reader gives no chain supervision, or graphs of another number of outputs.

    References
    ----------
    Povey et al., Purely sequence-trained neural networks for ASR based on lattice-free MMI, Interspeech 2016. Kaldi
    limits outputs in the denominator and applies twice the penalty to every other minibatch; here the sum over the
    paths is exact and the penalty always applies.
    """

    operand_names = ("y",)
    options = (
        Option("leaky", float, 1e-5),
        Option("l2", float, 5e-5),
        Option("limit", float, 30.0),
        Option("penalty", float, 0.01),
    )
    backward_reads = ((WORK,),)

    def _check_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        checked = super()._check_settings(settings)
        for name, most in (("leaky", 1.0), ("l2", np.inf), ("limit", np.inf), ("penalty", np.inf)):
            if not 0 <= checked[name] < most:
                raise ModelError(f"{self.where}: {name} {checked[name]:g}; expected at least 0, below {most:g}")
        return checked

    def infer_shape(self, y: Shape) -> Shape:
        return Shape(1, 1)

    def work_shape(self, y: Shape) -> Shape:
        return y

    def forward(self, context: PassContext, y: Any, *, out: Any, work: Any = None) -> None:
        team = context.backend.host_team
        settings = self.settings
        outputs = context.backend.to_host(y)
        gradient = work if work is None or context.xp is np else np.empty_like(outputs)
        batch = self.sequences(context, y)
        with self.located():
            terms = batch.compute(outputs, settings["leaky"], team, gradient)
        costs = batch.regularise(outputs, settings, terms.has_path, team, gradient)
        costs += np.where(terms.has_path, terms.denominator - terms.numerator, NO_PATH_COST * batch.counts)
        lost = np.isnan(terms.denominator)  # of an output that is not finite: training has diverged
        out[...] = np.where(lost, np.nan, costs).sum()
        self.warn(batch, terms.has_path | lost)
        if gradient is not work:
            work[...] = context.xp.asarray(gradient)

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any, work: Any = None
    ) -> None:
        grads.add(0, lambda out: context.kernels.scale(work, grad, out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        from acoustic.kernels.lattice_free.forward_mode import denominator_slope, numerator_slope

        y, dy = (context.backend.to_host(matrix) for matrix in (*inputs, *tangents))
        batch = self.sequences(context, y)
        settings = self.settings
        total = 0.0
        for k, placed in enumerate(batch.placed):
            chain = placed.supervision
            assert isinstance(chain, ChainSupervision)  # as `supervisions` has checked
            dual = y[:, batch.slice_of(k)], dy[:, batch.slice_of(k)]
            logarithm, slope = numerator_slope(chain.numerator, *dual)
            if logarithm > -np.inf:
                excess = dual[0] - dual[0].clip(-settings["limit"], settings["limit"])
                total += denominator_slope(batch.graph, *dual, settings["leaky"])[1] - slope
                total += ((settings["l2"] * dual[0] + settings["penalty"] * excess) * dual[1]).sum()
        return context.xp.asarray([[total]])


@register_node("LFMMICrossEntropy")
class LFMMICrossEntropy(ChainCriterion, CriterionNode):
    """Cross entropy of the numerator posteriors and the softmax of z, ``-sum of p * ln softmax(z)``, a scalar.

    The posteriors p are those of the numerator graphs for the outputs y of LFMMI. It regularises LF-MMI: a second
    output layer z above the same hidden layers, and a criterion ``LFMMI(y) + 0.1 LFMMICrossEntropy(y, z)``. The
    gradient is ``dJ/dz = G (softmax(z) - p)``; y has none. Columns without supervision, and sequences whose numerator
    has no path, count nothing.

    Parameters
    ----------
    y : (rows, T)
        Outputs of the network, the operand of LFMMI.
    z : (rows, T)
        The input of the softmax.

    Raises
    ------
    ModelError
        During a pass, if the reader gives no chain supervision, or graphs of another number of outputs.

    References
    ----------
    Povey et al., Purely sequence-trained neural networks for ASR based on lattice-free MMI, Interspeech 2016, section
    2.7.
    """

    operand_names = ("y", "z")
    backward_reads = ((), (WORK,))

    def work_shape(self, y: Shape, z: Shape) -> Shape:
        return z

    def forward(self, context: PassContext, y: Any, z: Any, *, out: Any, work: Any = None) -> None:
        outputs = context.backend.to_host(y)
        second = context.backend.to_host(z)
        gradient = work if work is None or context.xp is np else np.empty_like(second)
        batch = self.sequences(context, y)
        with self.located():
            costs, has_path = batch.cross_entropy(outputs, second, context.backend.host_team, gradient)
        out[...] = costs.sum()
        self.warn(batch, has_path)
        if gradient is not work:
            work[...] = context.xp.asarray(gradient)

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any, work: Any = None
    ) -> None:
        if grads.needs(0) and grads.take_fresh(0):
            grads.targets[0].fill(0)  # the posteriors are constants
        grads.add(1, lambda out: context.kernels.scale(work, grad, out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        y, z, dz = (context.backend.to_host(matrix) for matrix in (*inputs, tangents[1]))
        batch = self.sequences(context, y)
        posteriors = np.zeros_like(y)
        has_path = batch.numerators(y, context.backend.host_team, posteriors.T) > -np.inf
        columns = batch.columns_of(has_path)
        weight = np.exp(z[:, columns] - z[:, columns].max(axis=0))
        mean = (weight * dz[:, columns]).sum(axis=0) / weight.sum(axis=0)
        return context.xp.asarray([[(posteriors[:, columns] * (dz[:, columns] - mean)).sum()]])
