"""Executes a network: evaluates roots from inputs, and differentiates a criterion (book 2.2, 2.3).

The engine owns order, time and memory.  Nodes are pure functions between buffers; the engine decides which run, in
which order, and where their values lie.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from acoustic.fusion import fuse
from acoustic.gradients import Into
from acoustic.layout import Graph, Key, Layout, gradient_of, lay_out, value_of, work_of
from acoustic.network import Network
from acoustic.node import VALUE, WORK, Node, Run, Shape
from acoustic.order import computed_operands, forward_order, need_gradient
from readers.errors import ModelError, ShapeError

LAYOUTS_KEPT = 8  # numbers of columns whose layouts are remembered; the memory behind them is one


class Engine:
    """Forward and backward passes over the part of a network below `roots`.

    roots: names of the nodes whose values are wanted.  share_buffers: let values that are never alive together lie in
    the same memory; fusion: rewrite chains into single steps.  Both leave results as they are and exist for tests.
    An engine is for one thread; any number of engines may use a network whose values do not change.
    Raises ModelError and ShapeError.
    """

    def __init__(
        self, network: Network, roots: Sequence[str], *, share_buffers: bool = True, fusion: bool = True
    ) -> None:
        self.network, self.backend = network, network.backend
        self.roots = list(dict.fromkeys(roots))
        self.sharing = share_buffers
        self.graph = self._build_graph(fusion)
        self._layouts: OrderedDict[tuple[int | None, str | None], _Bound] = OrderedDict()
        self._slabs: list[Any] = []
        self._persistent: dict[str, Any] = {}  # values that depend on no input
        self._gradients: dict[str, Any] = {}  # of parameters
        self._inputs: dict[str, Any] = {}
        self._scratch: Any = None
        self._clock = 0
        self._time: dict[str, int] = {}  # when a value was last given or computed
        self._seen: dict[str, int] = {}  # a stored node's stamp when it was last looked at
        self._owner: dict[int, Key] = {}  # what lies in each slab now
        self._run = Run(self.backend)
        self._current: _Bound | None = None
        self._differentiable: str | None = None  # the criterion whose backward may follow

    # ---- construction

    def _build_graph(self, fusion: bool) -> Graph:
        roots = [self.network[name] for name in self.roots]
        order = forward_order(roots)
        replaced = fuse(order, self.network.shapes, set(self.roots)) if fusion else {}

        def operands(node: Node) -> tuple[Node, ...]:
            node = replaced.get(node.name, node)
            return tuple(replaced.get(operand.name, operand) for operand in computed_operands(node))

        order = forward_order([replaced.get(root.name, root) for root in roots], operands)
        children = {node.name: operands(node) for node in order}
        from_input: set[str] = set()
        for node in order:
            if node.is_input or any(child.name in from_input for child in children[node.name]):
                from_input.add(node.name)
        needed = need_gradient(order, lambda node: children[node.name])
        return Graph(tuple(order), children, frozenset(from_input), frozenset(needed))

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs that the roots depend on."""
        return [node.name for node in self.graph.order if node.is_input]

    @property
    def learnable(self) -> list[Node]:
        """The parameters below the roots that need a gradient."""
        return [node for node in self.graph.order if node.needs_gradient]

    def default_criterion(self) -> str | None:
        """The criterion that a training pass differentiates unless told: the first root that can be one."""
        scalars = [
            name for name in self.roots if self.network.shapes[name] == Shape(1, 1) and name in self.graph.needed
        ]
        named = [name for name in scalars if name in self.network.criteria]
        differentiable = [name for name in scalars if self.network[name].backward_reads]
        return next(iter(named or differentiable), None)

    # ---- forward

    def forward(
        self,
        matrices: Mapping[str, Any] | None = None,
        training: bool = False,
        *,
        criterion: str | None = None,
        dropout_rate: float = 0.0,
        seed: int | Sequence[int] = 0,
    ) -> None:
        """Bring the roots up to date.

        matrices: input name -> (rows, T), all with one T; an input that is left out keeps its last value, and whatever
        depends on nothing new is not computed again.  Matrices of the network's type and Fortran order are used where
        they lie: leave them alone until `backward` is done.  training: dropout acts, and `backward` of `criterion`
        (default: the first root that is one) may follow.  seed: whole numbers that the dropout masks are drawn from,
        for instance (seed, epoch, minibatch).  Raises ShapeError and ModelError.
        """
        self._clock += 1
        self._take_inputs(matrices or {})
        criterion = (criterion or self.default_criterion()) if training else None
        if training and criterion is None:
            raise ModelError(f"roots {', '.join(self.roots)}: none is a criterion; expected one for a training pass")
        run = Run(self.backend, training, float(dropout_rate), (seed,) if isinstance(seed, int) else tuple(seed))
        if (run.training, run.dropout_rate, run.seed) != (self._run.training, self._run.dropout_rate, self._run.seed):
            self._time["run of the pass"] = self._clock
        self._run = run
        self._look_at_stored()
        bound = self._layout(criterion)
        for step in bound.due(self):
            step.node.forward(run, *(self._array(bound, name) for name in step.operands), **step.buffers)
            self._time[step.node.name] = self._clock
            for slab, key in step.writes:
                self._owner[slab] = key
        self._differentiable = criterion

    def _take_inputs(self, matrices: Mapping[str, Any]) -> None:
        for name in self.inputs:
            if name in matrices:
                matrix = matrices[name]
                rows = self.network.shapes[name].rows
                if matrix.ndim != 2 or matrix.shape[0] != rows:
                    found = "x".join(map(str, matrix.shape))
                    raise ShapeError(f"{self.network[name].where}: fed a matrix of {found}; expected {rows}x*")
                self._inputs[name] = self.backend.asarray(matrix)
                self._time[name] = self._clock
            elif name not in self._inputs:
                raise ModelError(
                    f"{self.network[name].where}: has no value; expected a matrix among {sorted(matrices)}"
                )
        columns = {name: self._inputs[name].shape[1] for name in self.inputs}
        if len(set(columns.values())) > 1:
            found = ", ".join(f"{name} has {count}" for name, count in columns.items())
            raise ShapeError(f"inputs: {found} columns; expected one number of frames")
        if 0 in columns.values():
            raise ShapeError(f"inputs: {', '.join(columns)} have 0 columns; expected at least one frame")

    def _look_at_stored(self) -> None:
        for node in self.graph.order:
            if node.is_stored:
                if node.value is None:
                    raise ModelError(f"{node.where}: not computed yet; expected the precompute pass before this one")
                if self._seen.get(node.name) != node.stamp:
                    self._seen[node.name] = node.stamp
                    self._time[node.name] = self._clock

    def _array(self, bound: "_Bound", name: str) -> Any:
        """Where a value lies now."""
        if name in self._inputs:
            return self._inputs[name]
        view = bound.values.get(name)
        return view if view is not None else self.network.nodes[name].value

    # ---- backward

    def backward(self, criterion: str | None = None, on_gradient: Callable[[Node, Any], None] | None = None) -> None:
        """Compute the gradient of a criterion with respect to every parameter below it that learns.

        Follows a forward pass with training=True for the same criterion.  on_gradient(node, gradient) is called as soon
        as a parameter's gradient is complete and its value no longer needed in this pass: an update may happen there,
        while both are in the cache.  Raises ModelError.
        """
        criterion = criterion or self._differentiable
        bound = self._current
        if bound is None or criterion is None or criterion != self._differentiable:
            raise ModelError(
                f"backward of {criterion!r}: the last pass was laid out for {self._differentiable!r};"
                " expected forward(..., training=True) for it just before"
            )
        self._differentiable = None  # gradients overwrite values
        self._owner.update(bound.backward_owners)
        bound.one.fill(1)
        for step in bound.backward:
            inputs = [None if name is None else self._array(bound, name) for name in step.reads]
            step.into.reset()
            step.node.backward(self._run, step.gradient, inputs, step.value, step.into, **step.work)
            for node in step.finished:
                node.touch()  # the caller is about to change it
                if on_gradient is not None:
                    on_gradient(node, self._gradients[node.name])

    def gradient(self, name: str) -> Any:
        """The gradient of the last backward pass with respect to a parameter, (rows, cols).  Raises ModelError."""
        try:
            return self._gradients[name]
        except KeyError:
            raise ModelError(f"node {name!r}: has no gradient here; expected a parameter that needs one") from None

    def value(self, name: str) -> Any:
        """The value of a root, or of any node that still has one; overwritten by the next pass.  Raises ModelError."""
        node = self.network[name]
        if node.is_input and name in self._inputs:
            return self._inputs[name]
        if node.is_stored and node.value is not None:
            return node.value
        bound = self._current
        if bound is not None and name in bound.values and name in self._time and bound.intact(self, name):
            return bound.values[name]
        raise ModelError(f"{node.where}: its value is not kept; expected one of the roots {', '.join(self.roots)}")

    # ---- memory

    def allocated(self) -> int:
        """Bytes of the buffers whose size depends on the number of columns."""
        return sum(slab.nbytes for slab in self._slabs)

    def scratch(self, rows: int, cols: int) -> Any:
        """A matrix to use for a moment; the next call lends the same memory."""
        if self._scratch is None or self._scratch.size < rows * cols:
            self._scratch = self.backend.xp.empty(rows * cols, dtype=self.backend.dtype)
        return self._scratch[: rows * cols].reshape((rows, cols), order="F")

    def _layout(self, criterion: str | None) -> "_Bound":
        columns = next((matrix.shape[1] for matrix in self._inputs.values()), None)
        key = (columns, criterion)
        bound = self._layouts.get(key)
        if bound is None:
            nodes = {node.name: node for node in self.graph.order}
            layout = lay_out(self.graph, self.roots, columns, nodes[criterion] if criterion else None, self.sharing)
            self._grow(layout.plan.sizes)
            bound = self._layouts[key] = _Bound(self, layout, criterion)
            if len(self._layouts) > LAYOUTS_KEPT:
                self._layouts.popitem(last=False)
        self._layouts.move_to_end(key)
        if bound is not self._current:
            self._owner.clear()  # another layout: nothing lies where it says
            self._current = bound
        return bound

    def _grow(self, sizes: Sequence[int]) -> None:
        """Make the slabs at least this large; when one has to move, the layouts made before no longer hold."""
        xp, dtype = self.backend.xp, self.backend.dtype
        for k, size in enumerate(sizes):
            if k == len(self._slabs):
                self._slabs.append(xp.empty(size, dtype=dtype))
            elif self._slabs[k].size < size:
                self._slabs[k] = xp.empty(size, dtype=dtype)
                self._layouts.clear()
                self._current = None

    def view(self, layout: Layout, key: Key, shape: Shape, views: dict[tuple[int, Shape], Any]) -> Any:
        """The matrix of a key in its slab; one object per slab and shape, so that `is` tells shared memory."""
        slab = layout.plan.slab[key]
        if (slab, shape) not in views:
            flat = self._slabs[slab][: shape.rows * shape.cols]
            views[slab, shape] = flat.reshape(tuple(shape), order="F")
        return views[slab, shape]

    def persistent(self, name: str, shape: Shape) -> Any:
        """Memory of its own for a value that depends on no input."""
        if name not in self._persistent:
            self._persistent[name] = self.backend.empty(*shape)
        return self._persistent[name]

    def parameter_gradient(self, node: Node) -> Any:
        if node.name not in self._gradients:
            self._gradients[node.name] = self.backend.empty(*node.value.shape)
        return self._gradients[node.name]


class _ForwardStep:
    """A node with its buffers: what it writes, where, and what it must be newer than."""

    def __init__(self, node: Node, operands: tuple[str, ...], buffers: dict[str, Any], writes: list[tuple[int, Key]]):
        self.node, self.operands, self.buffers, self.writes = node, operands, buffers, writes
        self.depends = (*operands, "run of the pass") if node.reads_run else operands


class _BackwardStep:
    """A node with its gradient, what it may read (None elsewhere), and the parameters that are done after it."""

    def __init__(
        self, node: Node, gradient: Any, reads: list[str | None], value: Any, work: dict, into: Into, finished
    ):
        self.node, self.gradient, self.reads, self.value = node, gradient, reads, value
        self.work, self.into, self.finished = work, into, finished


class _Bound:
    """A layout bound to an engine's memory."""

    def __init__(self, engine: Engine, layout: Layout, criterion: str | None) -> None:
        self.layout = layout
        self.values: dict[str, Any] = {}
        self.one = engine.backend.empty(1, 1)
        self._views: dict[tuple[int, Shape], Any] = {}
        self._slab = layout.plan.slab
        graph = engine.graph
        self.forward = [self._bind_forward(engine, node) for node in layout.forward]
        self.backward = [self._bind_backward(engine, step, criterion) for step in layout.backward]
        self.backward_owners = {
            slab: key
            for key, slab in sorted(self._slab.items(), key=lambda item: layout.start[item[0]])
            if key[0] == "gradient"
        }
        self.targets = [step.node.name for step in self.forward if step.node.name in layout.kept]
        # Values that this step's writing destroys although they are computed later in the order.
        self._later = {
            step.node.name: [
                key[1]
                for key, slab in self._slab.items()
                if key[0] != "gradient"
                and key[1] != step.node.name
                and slab in {s for s, _ in step.writes}
                and layout.start[key] > layout.start[value_of(step.node.name)]
            ]
            for step in self.forward
            if step.node.name in graph.from_input
        }

    def _bind_forward(self, engine: Engine, node: Node) -> _ForwardStep:
        shapes = self.layout.shapes
        shape = shapes[node.name]
        operands = engine.graph.operands[node.name]
        writes: list[tuple[int, Key]] = []
        if node.name in engine.graph.from_input:
            key = value_of(node.name)
            out = engine.view(self.layout, key, shape, self._views)
            writes.append((self._slab[key], key))
        else:
            out = engine.persistent(node.name, shape)
        self.values[node.name] = out
        buffers = {"out": out}
        if (work := work_of(node.name)) in self._slab:
            work_shape = node.work_shape(*(shapes[operand.name] for operand in operands))
            buffers["work"] = engine.view(self.layout, work, work_shape, self._views)
            writes.append((self._slab[work], work))
        return _ForwardStep(node, tuple(operand.name for operand in operands), buffers, writes)

    def _bind_backward(self, engine: Engine, step: Any, criterion: str | None) -> _BackwardStep:
        node, shapes = step.node, self.layout.shapes
        operands = engine.graph.operands[node.name]

        def gradient_buffer(child: Node) -> Any:
            if child.is_leaf:
                return engine.parameter_gradient(child)
            return engine.view(self.layout, gradient_of(child.name), shapes[child.name], self._views)

        targets = [gradient_buffer(child) if k in step.wanted else None for k, child in enumerate(operands)]
        gradient = self.one if node.name == criterion else gradient_buffer(node)
        reads = [operand.name if k in step.reads else None for k, operand in enumerate(operands)]
        value = self.values[node.name] if VALUE in step.reads else None
        work = {}
        if node.work_shape(*(shapes[operand.name] for operand in operands)) is not None:
            has_work = WORK in step.reads
            work["work"] = next(s for s in self.forward if s.node is node).buffers["work"] if has_work else None
        into = Into(engine.backend, targets, step.fresh, engine.scratch)
        finished = [engine.network[name] for name in step.finished]
        return _BackwardStep(node, gradient, reads, value, work, into, finished)

    def intact(self, engine: Engine, name: str) -> bool:
        """Whether a computed value (and its workspace) still lies where this layout puts it."""
        for key in (value_of(name), work_of(name)):
            slab = self._slab.get(key)
            if slab is not None and engine._owner.get(slab) != key:
                return False
        return True

    def due(self, engine: Engine) -> list[_ForwardStep]:
        """The steps to compute now: whatever the kept values need that is older than its operands, or overwritten."""
        time = engine._time
        outdated: set[str] = set()
        for step in self.forward:
            mine = time.get(step.node.name, -1)
            if any(name in outdated or time.get(name, 0) > mine for name in step.depends) or mine < 0:
                outdated.add(step.node.name)
        forced: set[str] = set()
        while True:
            due, needed = set(forced), set(self.targets)
            for step in reversed(self.forward):
                name = step.node.name
                if name in due or (name in needed and (name in outdated or not self.intact(engine, name))):
                    due.add(name)
                    needed.update(step.operands)
            lost = {
                other for name in due for other in self._later.get(name, ()) if other in needed and other not in due
            }
            if not lost:
                return [step for step in self.forward if step.node.name in due]
            forced |= lost
