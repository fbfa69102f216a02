"""Executes a network: evaluates roots from inputs, and differentiates a criterion (book 2.2, 2.3).

The engine owns order, time and memory.  Nodes are pure functions between buffers; the engine decides which run, in
which order, in which thread, and where their values lie.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from acoustic.engine.execution.bound_pass import Program, Worker
from acoustic.engine.execution.branch_scheduler import Schedule
from acoustic.engine.execution.gradient_sink import GradientRoutes, GradientSink, sink_of
from acoustic.engine.execution.inputs import Feed
from acoustic.engine.execution.memory import EngineMemory
from acoustic.engine.planning.execution_graph import build_graph
from acoustic.engine.planning.pass_plan import Key, lay_out
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node, Run, Shape
from acoustic.runtime.blas import one_thread
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.products import products_by
from acoustic.runtime.replay import joined_by_meeting
from readers.errors import ModelError
from readers.minibatches.indicators import Indicators

if TYPE_CHECKING:
    from readers.minibatches.sequence_layout import SequenceLayout

LAYOUTS_KEPT = 32  # numbers of columns whose programs are remembered; the memory behind them is one
MIN_COLUMNS = 32  # a worker with fewer columns costs more than it gives


class Engine:
    """Forward and backward passes over the part of a network below `roots`.

    Parameters
    ----------
    network : Network
    roots : sequence of str
        Names of the nodes whose values are wanted.
    options : EngineOptions, optional
        Which optimisations to use (default: those of the environment variable ARGONAUT_ENGINE, else all).
    threads : int, optional
        How many threads share a minibatch (default: as the network's backend says).  The number changes the rounding
        of sums over frames.

    Attributes
    ----------
    inputs : list of str
        Names of the inputs that the roots depend on.

    Raises
    ------
    ModelError, ShapeError

    Notes
    -----
    An engine is for one caller at a time; any number of engines may use a network whose values do not change.
    """

    def __init__(
        self,
        network: Network,
        roots: Sequence[str],
        *,
        options: EngineOptions | None = None,
        threads: int | None = None,
    ) -> None:
        self.options = options or EngineOptions.default()
        branches = self.options.branches
        self.network, self.backend = network, network.backend
        self.roots = list(dict.fromkeys(roots))
        self.sharing = self.options.buffer_sharing and not branches  # what is alive together depends on the order
        self.graph = build_graph(network, self.roots, self.options)
        self._feed = Feed(network, self.graph, self.roots)
        self.inputs = self._feed.names
        self._criterion = self.default_criterion()
        num_threads = min(self.backend.team.size, threads or self.backend.team.size)
        self.max_workers = 1 if branches or not self.graph.splits_frames() else num_threads
        # Where the frames cannot be shared out among the threads, at least products are.
        alone = branches or num_threads == 1 or self.max_workers > 1
        self._products = nullcontext if alone else partial(products_by, self.backend.team)
        self._executor = ThreadPoolExecutor(num_threads, "argonaut-branch") if branches else None
        self._programs: OrderedDict[tuple[int | None, str | None], Program] = OrderedDict()
        self._memory = EngineMemory(self.backend, self.graph, self.options)
        self._owner: dict[int, Key] = {}  # what lies in each slab now
        self._program: Program | None = None
        self._differentiable: str | None = None  # the criterion whose backward may follow

    # ---- construction

    def default_criterion(self) -> str | None:
        """The criterion that a training pass differentiates unless told: the first root that can be one."""
        needed = [name for name in self.roots if name in self.graph.needed and self.network[name].backward_reads]
        scalars = [name for name in needed if self.network.shapes[name] == Shape(1, 1)]
        return next((name for name in scalars if name in self.network.criteria), next(iter(scalars), None))

    def learnable(self, criterion: str | None = None) -> list[Node]:
        """The parameters below the roots, or below one of them, that training changes."""
        found = [node for node in self.graph.order if node.is_stored and node.needs_gradient]
        if criterion is None:
            return found
        below = {node.name for node in forward_order([self.network[criterion]])}
        return [node for node in found if node.name in below]

    # ---- forward

    def forward(
        self,
        matrices: Mapping[str, Any] | None = None,
        training: bool = False,
        *,
        criterion: str | None = None,
        dropout_rate: float = 0.0,
        seed: int | Sequence[int] = 0,
        layout: "SequenceLayout | None" = None,
    ) -> None:
        """Bring the roots up to date.

        matrices: input name -> (rows, T) or Indicators, all with one T; an input that is left out keeps its last value,
        and whatever depends on nothing new is not computed again.  Matrices of the network's type and Fortran order are
        used where they lie: leave them alone until `backward` is done.  training: dropout acts, and `backward` of
        `criterion` (default: the first root that is one) may follow.  seed: whole numbers that the dropout masks are
        drawn from, for instance (seed, epoch, minibatch).  layout: how the columns hold sequences, which recurrent
        networks must be told; a slot that goes on with a sequence sees its last steps in the pass before, and sums over
        frames leave columns without a frame out.  Raises ShapeError and ModelError.
        """
        criterion = (criterion or self._criterion) if training else None
        if training and criterion is None:
            raise ModelError(f"roots {', '.join(self.roots)}: none is a criterion; expected one for a training pass")
        self._differentiable = None
        self._feed.begin(matrices or {}, training, dropout_rate, seed, layout)
        program = self._program_for(criterion)
        try:
            self._evaluate(program)
        except BaseException:
            self._owner.clear()  # nobody knows what lies where
            self._feed.sequences.forget()
            raise
        self._differentiable = criterion

    def _evaluate(self, program: Program) -> None:
        """Compute what is due."""
        if not program.alone and self._feed.all_new:
            together = program.together  # everything is new, which is how training goes
            self._owner.update(program.owners_after_forward)
        else:
            together = self._forward_alone(program)
        if together:
            whole = together is program.together
            shared = program.shared if whole else [name for name in together if name not in program.after]
            if self._executor is None:
                with self._products():
                    if not (whole and self._repeat_forward(program)):
                        self._each_worker(program, partial(self._forward_part, program, shared))
            else:
                self._forward_branches(program, shared, self._executor)
            program.add_parts(shared)
            for name in together[len(shared) :]:
                program.after[name].run(self._feed.run, self._feed.inputs)
            self._feed.computed(together)

    def _forward_alone(self, program: Program) -> list[str]:
        """Compute what is due of the nodes that depend on no input; returns the names of the others that are due."""
        due = program.due(self._feed.time, self._owner)
        for name in due:
            if name in program.alone:
                program.alone[name].run(self._feed.run, self._feed.inputs)
                self._feed.computed([name])
            self._owner.update(program.writes(name))
        return [name for name in due if name not in program.alone]

    def _repeat_forward(self, program: Program) -> bool:
        """Make the forward pass of all workers without Python, if it has been recorded; False if not."""
        if self._feed.run.sequences is not None or not program.split:
            return False
        tables = []
        for worker in program.workers:
            table = worker.forward_pass.table(worker.inputs)
            if table is None:
                return False
            tables.append(table)
        with one_thread:
            self.backend.team.play(tables)
        return True

    def _forward_part(self, program: Program, names: list[str], index: int) -> None:
        worker = program.workers[index]
        run = self._run_of(worker)
        if names is program.shared and run.sequences is None:
            worker.forward_pass.run(run, worker.inputs)
        else:
            for name in names:
                worker.forward[name].run(run, worker.inputs)

    def _forward_branches(self, program: Program, names: list[str], executor: Executor) -> None:
        """Algorithm 2.3."""
        operands = {name: [operand.name for operand in self.graph.operands[name]] for name in names}
        steps = program.workers[0].forward
        with one_thread:
            Schedule(names, operands, lambda name: steps[name].run(self._feed.run, self._feed.inputs), executor).run()

    def _run_of(self, worker: Worker) -> Run:
        if not worker.columns.start:
            return self._feed.run
        if worker.told is None or worker.told[0] is not self._feed.run:
            worker.told = self._feed.run, replace(self._feed.run, first_column=worker.columns.start)
        worker.told[1].sequences = self._feed.run.sequences
        return worker.told[1]

    def _each_worker(self, program: Program, work: Callable[[int], None]) -> None:
        if program.split:
            self.backend.team.run(work, len(program.workers))
        else:
            work(0)

    # ---- backward

    def backward(
        self, criterion: str | None = None, on_gradient: GradientSink | Callable[[Node, Any], None] | None = None
    ) -> None:
        """Compute the gradient of a criterion with respect to every parameter below it that learns.

        Follows a forward pass with training=True for the same criterion.  on_gradient(node, gradient) is called as soon
        as a parameter's gradient is complete and its value no longer needed in this pass: an update may happen there,
        while both are in the cache, and may use the gradient's memory.  A GradientSink can also take gradients in other
        forms than matrices.  With on_gradient, nodes that keep running statistics take up those of this minibatch;
        without it, nothing changes.  Raises ModelError.
        """
        criterion = criterion or self._differentiable
        program = self._program
        if program is None or criterion is None or criterion != self._differentiable:
            raise ModelError(
                f"backward of {criterion!r}: the last pass was laid out for {self._differentiable!r};"
                " expected forward(..., training=True) for it just before"
            )
        self._differentiable = None  # gradients overwrite values
        self._owner.update(program.owners_after_backward)
        program.one.fill(1)
        words = {name for name, matrix in self._feed.inputs.items() if isinstance(matrix, Indicators)}
        sequences = self._feed.run.sequences
        gaps = None if sequences is None else sequences.gaps
        routes = GradientRoutes(program, sink_of(on_gradient), words, gaps)

        def finish(names: Iterable[str]) -> None:
            for name in names:
                node = self.network.nodes[name]
                node.touch()  # the caller is about to change it
                routes.of(node).finish()

        if program.split:
            self._backward_split(program, finish, routes)
        else:
            with self._products():
                for bound, step in zip(program.workers[0].backward, program.steps):
                    bound.run(self._feed.run, self._feed.inputs)
                    finish(step.finished)
        for bound, step in zip(program.last, program.steps[program.num_together :]):
            bound.run(self._feed.run, self._feed.inputs)
            finish(step.finished)
        if on_gradient is not None:
            self._take_up_statistics(program)

    def _take_up_statistics(self, program: Program) -> None:
        for node, work in program.statistics:
            operands = self.graph.operands[node.name]
            stored = [operand.value if operand.is_stored else None for operand in operands]
            for k, value in node.updated_statistics(self._feed.run, stored, work, program.columns).items():
                operands[k].value[...] = value
                operands[k].touch()

    def _backward_split(
        self, program: Program, finish: Callable[[Iterable[str]], None], routes: GradientRoutes
    ) -> None:
        """Backward of what depends on the inputs, shared out: every worker its frames, then its columns of products."""
        for bound in program.first:
            bound.run(self._feed.run, self._feed.inputs)
        if not self._repeat_backward(program, routes):
            phases = [partial(self._backward_part, program, routes), partial(self._late_part, program, routes)]
            if not program.partials_wait:
                phases.insert(1, lambda index: program.add_partial_gradients() if index == 0 else None)
            self.backend.team.run_phases(phases, len(program.workers))
        late = {name for name, node in program.taken_late.items() if routes.of(node).takes_parts}
        if program.partials_wait:
            program.add_partial_gradients(but=late)
        for step in program.steps[: program.num_together]:
            for name in step.finished:
                if name in late:
                    program.taken_late[name].touch()
                else:
                    finish([name])

    def _repeat_backward(self, program: Program, routes: GradientRoutes) -> bool:
        """Make both parts of all workers without Python, if they have been recorded; False if not."""
        if self._feed.run.sequences is not None or not program.partials_wait:
            return False
        key, layers_key, team, tables = routes.key, tuple(routes.layers), self.backend.team, []
        with team.hold() as count:
            if count < len(program.workers):
                return False
            for worker in program.workers:
                before = worker.backward_pass.table(worker.inputs, layers_key)
                after = None if before is None else worker.late_pass.table(self._feed.inputs, key)
                if after is None:
                    return False
                tables.append(joined_by_meeting(team, worker.index, len(program.workers), before, after))
            with one_thread:
                team.play(tables)
        return True

    def _late_part(self, program: Program, routes: GradientRoutes, index: int) -> None:
        program.workers[index].late_pass.run((self._feed.run, routes), self._feed.inputs, routes.key)

    def _backward_part(self, program: Program, routes: GradientRoutes, index: int) -> None:
        worker = program.workers[index]
        run = self._run_of(worker)
        if run.sequences is None:
            worker.backward_pass.run(run, worker.inputs, tuple(routes.layers))
        else:
            for step in worker.backward_and_looks:
                step.run(run, worker.inputs)

    # ---- results

    def gradient(self, name: str) -> Any:
        """The gradient of the last backward pass with respect to a parameter, (rows, cols).  Raises ModelError."""
        if name in self._memory.gradients:
            return self._memory.gradients[name]
        raise ModelError(f"node {name!r}: has no gradient here; expected a parameter that needs one")

    def value(self, name: str) -> Any:
        """The value of a root, or of any node that still has one; overwritten by the next pass.  Raises ModelError."""
        node = self.network[name]
        if name in self._feed.inputs:
            return self.backend.asarray(self._feed.inputs[name])
        if node.is_stored and node.value is not None:
            return node.value
        program = self._program
        if program is not None and name in self._feed.time and program.holds(self._owner, name):
            return program.values[name]
        raise ModelError(f"{node.where}: its value is not kept; expected one of the roots {', '.join(self.roots)}")

    def reorder(self, slots: Sequence[int]) -> None:
        """Let slot s of the next minibatch's layout go on with the sequence that slot slots[s] held in the last."""
        self._feed.sequences.reorder(np.asarray(slots))

    def allocated(self) -> int:
        """Bytes of the buffers whose size depends on the number of columns."""
        return self._memory.allocated()

    # ---- memory

    def _program_for(self, criterion: str | None) -> Program:
        """The program for the inputs' number of columns, with the gradients of `criterion` or without any."""
        columns = next((matrix.shape[1] for matrix in self._feed.inputs.values()), None)
        key = (columns, criterion)
        program = self._programs.get(key)
        if program is None:
            node = next((node for node in self.graph.order if node.name == criterion), None)
            if criterion is not None and node is None:
                raise ModelError(f"criterion {criterion!r}: is not below the roots {', '.join(self.roots)}")
            num_workers = max(1, min(self.max_workers, (columns or 0) // MIN_COLUMNS))
            layout = lay_out(self.graph, self.roots, columns, node, self.sharing, num_workers > 1)
            if self._memory.grow(layout.plan.sizes):  # the programs made before no longer hold
                self._programs.clear()
                self._program = None
            program = self._programs[key] = Program(self._memory, layout, columns, criterion, num_workers)
            if len(self._programs) > LAYOUTS_KEPT:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        if program is not self._program:
            self._owner.clear()  # another layout: nothing lies where it says
            self._program = program
        for worker in program.workers:
            worker.inputs = (
                {name: matrix[:, worker.columns] for name, matrix in self._feed.inputs.items()}
                if program.split
                else self._feed.inputs
            )
        return program
