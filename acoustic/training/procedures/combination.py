"""Generalised model combination: a weighted sum of the parameters of several models, with weights per layer.

Source: D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging",
2015, appendix C.4.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acoustic.engine.engine import Engine
from acoustic.network.editing import clone
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.properties import SUM
from acoustic.training.evaluation import scalar
from acoustic.training.procedures.lbfgs import minimise
from readers.common.report import Log
from readers.errors import ModelError
from readers.minibatches.base import Minibatch

REGULARISATION = 1e-10  # of the squared weights, because p-norm networks are invariant to their scale
SMOOTHING = 0.01  # of the preconditioner, relative to the mean of its diagonal
FISHER_MINIBATCH, FISHER_FRAMES = 64, 20_000  # frames of each gradient, and of all, in the preconditioner


@dataclass
class CombinationResult:
    """Result of a combination.

    Attributes
    ----------
    network : Network
        The network with the combined parameters.
    weights : array, shape (models, layers), float64
        The weights found.
    layers : list of list of str
        Names of the parameters of each layer.
    objectives : list of float
        Criterion per frame of each model and, last, of their average.
    objective : float
        Criterion per frame of the combined network.
    evaluations : int
        Number of function evaluations.
    """

    network: Network
    weights: np.ndarray
    layers: list[list[str]]
    objectives: list[float]
    objective: float
    evaluations: int = field(default=0)

    @property
    def start(self) -> int:
        """Index of the lowest objective, from which the search started."""
        return int(np.where(np.isfinite(self.objectives), self.objectives, np.inf).argmin())


def layers_of(network: Network) -> list[list[str]]:
    """Return the learnable parameters by layer: a matrix with the columns added to its product, or a column alone."""
    learnable = {node.name: node for node in network.parameters() if node.needs_gradient}
    layers = {name: [name] for name, node in learnable.items() if node.value.shape[1] > 1}
    for name, node in learnable.items():
        if name not in layers:
            layers.setdefault(_matrix_beside(network, node, layers), []).append(name)
    return list(layers.values())


def _matrix_beside(network: Network, column: Node, matrices: dict[str, list[str]]) -> str:
    """Return the name of the matrix to whose product a column is added, or of the column if there is none."""
    for user in network.nodes.values():
        if user.has(SUM) and column in user.operands:
            for addend in user.operands:
                for operand in addend.operands:
                    if operand.name in matrices:
                        return operand.name
    return column.name


def combine(
    models: Sequence[Network],
    minibatches: Iterable[Any],
    criterion: str = "",
    max_evaluations: int = 50,
    log: Log = lambda line: None,
    progress: Callable[..., None] = lambda *done, **figures: None,
) -> CombinationResult:
    """Find, for each layer, the weighted sum of the models' parameters with the lowest criterion.

    The search is L-BFGS in coordinates preconditioned by the Fisher matrix of the weights, starting from the best of
    the models and their average; if it finds nothing better, the start is returned. Learnable parameters that the
    criterion does not reach are averaged, other stored values are those of the last model, and running statistics of
    batch normalisation are computed anew.

    Parameters
    ----------
    models : sequence of Network
        Models of the last epochs or outer iterations.
    minibatches : iterable of Minibatch
        Part of the training data, kept in memory.
    criterion : str
        Criterion node; "" for the first of the network.
    max_evaluations : int
        Limit of function evaluations.
    log : callable
        Receives lines of text.
    progress : callable
        Called as progress(evaluations, limit, loss=objective).

    Returns
    -------
    CombinationResult

    Raises
    ------
    ModelError
        If the models differ in structure, or the criterion of none of them is finite.
    """
    if not models:
        raise ModelError("no models; expected at least one to combine")
    _check_alike(models)
    space = _WeightSpace(models, list(minibatches), criterion)
    starts = [*np.eye(len(models)), np.full(len(models), 1 / len(models))]
    points = [np.repeat(start[:, None], len(space.layers), axis=1) for start in starts]
    objectives = [space.objective(point) for point in points]
    for name, value in zip([*map(str, range(1, len(models) + 1)), "average"], objectives):
        log(f"combination: model {name}: {value:.6f}")
    finite = np.where(np.isfinite(objectives), objectives, np.inf)
    if not np.isfinite(finite).any():
        raise ModelError(f"the criterion of all {len(models)} models is not finite; expected one to start from")
    start = points[int(finite.argmin())]
    factor = space.preconditioner(start)

    done = 0

    def in_space(y: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal done
        value, gradient = space.objective_and_gradient(np.linalg.solve(factor.T, y).reshape(start.shape))
        progress(done := done + 1, max_evaluations, epoch="combining", loss=value)
        return value, np.linalg.solve(factor, gradient.ravel())

    minimum = minimise(in_space, factor.T @ start.ravel(), max_evaluations)
    weights = np.linalg.solve(factor.T, minimum.point).reshape(start.shape)
    best = float(finite.min())
    objective = space.objective(weights)
    log(f"combination: {minimum.evaluations} evaluations: {objective:.6f}, from {best:.6f}")
    if not objective <= best:  # the search sees statistics of minibatches, which may differ
        log("combination: no improvement; the best start is kept")
        weights = start
        objective = space.objective(start)
    return CombinationResult(space.network, weights, space.layers, objectives, objective, minimum.evaluations)


def average(models: Sequence[Network]) -> Network:
    """Return the network with the mean of parameters and running statistics. Raises ModelError as `combine`."""
    if len(models) == 1:
        return models[0]
    _check_alike(models)
    network = _own_copy(models)
    _average_into(network, models)
    return network


def _average_into(network: Network, models: Sequence[Network], but: Collection[str] = ()) -> None:
    """Set the learnable parameters of a network, except some, to the mean over the models."""
    for node in network.parameters():
        if node.needs_gradient and node.name not in but:
            node.assign(sum(model[node.name].value.astype("float64") for model in models) / len(models))


def criterion_of(network: Network, name: str = "") -> str:
    """Return the criterion of a name, or the first one. Raises ModelError if there is none."""
    if name:
        return network[name].name
    if not network.criteria:
        raise ModelError("the network has no training criterion; expected one to combine models by")
    return network.criteria[0]


def _check_alike(models: Sequence[Network]) -> None:
    shapes = [{name: tuple(value.shape) for name, value in model.stored_values().items()} for model in models]
    for number, (model, model_shapes) in enumerate(zip(models, shapes), 1):
        odd = sorted(name for name in model_shapes | shapes[0] if model_shapes.get(name) != shapes[0].get(name))
        if odd:
            raise ModelError(
                f"model {number} of {len(models)}: parameters {', '.join(odd[:3])} are not those of model 1; expected "
                "models of one structure"
            )
        for name, value in ((node.name, node.value) for node in model.parameters()):
            if not bool(model.backend.xp.isfinite(value).all()):
                raise ModelError(f"model {number} of {len(models)}: parameter {name} is not finite; expected numbers")
        if model.backend.precision != models[0].backend.precision:
            raise ModelError(f"model {number}: precision {model.backend.precision}; expected that of model 1")


class _WeightSpace:
    """The regularised criterion as a function of the weights (models, layers)."""

    def __init__(self, models: Sequence[Network], minibatches: list[Any], criterion: str) -> None:
        self.network = _own_copy(models)
        self.minibatches = minibatches
        self.num_frames = sum(minibatch.num_frames for minibatch in minibatches)
        if not self.num_frames:
            raise ModelError("no frames; expected some of the training data to combine models on")
        self.criterion = criterion_of(self.network, criterion)
        self.running = _running_statistics(self.network)
        self.engine = Engine(self.network, [self.criterion])
        reached = {node.name for node in self.engine.learnable()}
        layers = ([name for name in layer if name in reached] for layer in layers_of(self.network))
        self.layers = [layer for layer in layers if layer]
        _average_into(self.network, models, but={name for layer in self.layers for name in layer})
        xp = self.network.backend.xp
        # Values of all models, (size, models), per parameter: both directions are then one product.
        self.values = {
            name: xp.stack([model[name].value.reshape(-1, order="F") for model in models], axis=1)
            for layer in self.layers
            for name in layer
        }

    def put(self, weights: np.ndarray) -> None:
        """Set the parameters of the network to the sums with these weights."""
        backend = self.network.backend
        for layer, column in zip(self.layers, weights.T):
            for name in layer:
                node = self.network[name]
                flat = self.values[name] @ backend.xp.asarray(column, dtype=backend.dtype)
                node.assign(flat.reshape(node.value.shape, order="F"))

    def objective(self, weights: np.ndarray) -> float:
        """Return the criterion per frame of the network with these weights and its running statistics."""
        self.put(weights)
        self._measure()
        total = sum(self._forward(minibatch, training=False) for minibatch in self.minibatches)
        return total / self.num_frames + REGULARISATION * float((weights**2).sum())

    def _measure(self) -> None:
        """Set the running statistics to the mean over the minibatches."""
        if not self.running:
            return
        sums = dict.fromkeys(self.running, 0.0)
        for minibatch in self.minibatches:
            for name in self.running:
                self.network[name].assign(0)  # the result is then that of the minibatch alone
            self._forward(minibatch, training=True)
            self.engine.backward(self.criterion, on_gradient=lambda node, gradient: None)
            for name in sums:
                sums[name] = sums[name] + minibatch.num_frames * self.network[name].value.astype("float64")
        for name, total in sums.items():
            self.network[name].assign(total / self.num_frames)

    def objective_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the criterion per frame with statistics of the minibatches, and its gradient."""
        self.put(weights)
        total = 0.0
        sums = dict.fromkeys(self.values, 0.0)
        for minibatch in self.minibatches:
            total += self._forward(minibatch, training=True)
            self.engine.backward(self.criterion)
            for name in sums:
                sums[name] = sums[name] + self.engine.gradient(name)
        gradient = self._along_models(sums) / self.num_frames + 2 * REGULARISATION * weights
        return total / self.num_frames + REGULARISATION * float((weights**2).sum()), gradient

    def _forward(self, minibatch: Any, training: bool) -> float:
        layout = getattr(minibatch, "layout", None)
        matrices = {name: minibatch.matrices[name] for name in self.engine.inputs}
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self.engine.forward(matrices, training=training, criterion=self.criterion, layout=layout)
        return scalar(self.engine, self.criterion)

    def _along_models(self, gradients: dict[str, Any]) -> np.ndarray:
        """Return the gradient (models, layers) with respect to the weights from that of the parameters."""
        to_host = self.network.backend.to_host
        columns = [
            sum(to_host(self.values[name].T @ gradients[name].reshape(-1, order="F")).astype(float) for name in layer)
            for layer in self.layers
        ]
        return np.stack(columns, axis=1)

    def preconditioner(self, weights: np.ndarray) -> np.ndarray:
        """Return lower triangular C, with C C' the smoothed Fisher matrix of all weights in one row.

        In the coordinates C' w the Fisher matrix is the unit matrix. It is the mean over frames of the outer products
        of the gradients of small minibatches.
        """
        self.put(weights)
        fisher = np.zeros((weights.size, weights.size))
        frames = 0
        for minibatch in self._small_minibatches():
            self._forward(minibatch, training=True)
            self.engine.backward(self.criterion)
            gradient = self._along_models({name: self.engine.gradient(name) for name in self.values}).ravel()
            if np.isfinite(gradient).all():
                fisher += np.outer(gradient, gradient)
                frames += minibatch.num_frames
        fisher /= max(frames, 1)
        size = np.trace(fisher) / len(fisher)
        if not size > 0:
            return np.eye(weights.size)
        return np.linalg.cholesky(fisher + SMOOTHING * size * np.eye(weights.size))

    def _small_minibatches(self) -> Iterable[Any]:
        """Yield parts of the minibatches, or whole ones if their columns are sequences."""
        frames = 0
        for minibatch in self.minibatches:
            if getattr(minibatch, "layout", None) is not None:
                yield minibatch
            else:
                for start in range(0, minibatch.num_frames, FISHER_MINIBATCH):
                    part = slice(start, min(start + FISHER_MINIBATCH, minibatch.num_frames))
                    matrices = {name: minibatch.matrices[name][:, part] for name in self.engine.inputs}
                    yield Minibatch(matrices, {}, part.stop - part.start)
            frames += minibatch.num_frames
            if frames >= FISHER_FRAMES:
                return


def _own_copy(models: Sequence[Network]) -> Network:
    """Copy the last model; its running statistics become the mean over all models."""
    network = clone(models[-1])
    xp = network.backend.xp
    running = _running_statistics(network)
    for node in network.stored():
        if node.value is not None:
            value = node.value
            if node.name in running:
                value = xp.mean(xp.stack([model[node.name].value for model in models]), axis=0)
            node.value = xp.array(value, order="F", dtype=network.backend.dtype)
    return network


def _running_statistics(network: Network) -> set[str]:
    """Return the names of the running statistics."""
    return {
        operand.name
        for node in network.nodes.values()
        if node.keeps_statistics
        for k, operand in enumerate(node.operands)
        if operand.is_stored and node.gradient_reads(k) is None  # a scale that is not learned is no statistic
    }
