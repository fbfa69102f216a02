"""The passes of a program's workers: replayed where their calls have been recorded, else made in Python."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from acoustic.engine.execution.bound_pass import Program, Worker
from acoustic.engine.execution.gradient_sink import GradientRoutes
from acoustic.engine.execution.inputs import Feed
from acoustic.nodes.base import Run
from acoustic.runtime.replay import joined_by_meeting
from acoustic.runtime.thread_team import ThreadTeam
from readers.common.environment import one_blas_thread


class WorkerPasses:
    """Runs the workers of programs, each in a thread of a team, on what a feed holds."""

    def __init__(self, team: ThreadTeam, feed: Feed) -> None:
        self.team, self.feed = team, feed

    def forward(self, program: Program, names: list[str]) -> None:
        """Compute some nodes, of those that depend on inputs, on every worker's frames."""
        if names is program.shared and self._replay_forward(program):
            return
        work = partial(self._forward_part, program, names)
        if program.split:
            self.team.run(work, len(program.workers))
        else:
            work(0)

    def _replay_forward(self, program: Program) -> bool:
        """Replay the forward pass of all workers; return False if it has not been recorded."""
        if self.feed.run.sequences is not None or not program.split:
            return False
        tables = []
        for worker in program.workers:
            table = worker.forward_pass.table(worker.inputs)
            if table is None:
                return False
            tables.append(table)
        with one_blas_thread:
            self.team.play(tables)
        return True

    def _forward_part(self, program: Program, names: list[str], index: int) -> None:
        worker = program.workers[index]
        run = self._run_of(worker)
        if names is program.shared and run.sequences is None:
            worker.forward_pass.run(run, worker.inputs)
        else:
            for name in names:
                worker.forward[name].run(run, worker.inputs)

    def _run_of(self, worker: Worker) -> Run:
        """The feed's run, as a worker sees it."""
        if not worker.columns.start:
            return self.feed.run
        if worker.runs is None or worker.runs[0] is not self.feed.run:
            first = self.feed.run.first_column + worker.columns.start
            worker.runs = self.feed.run, replace(self.feed.run, first_column=first)
        worker.runs[1].sequences = self.feed.run.sequences
        return worker.runs[1]

    def backward(self, program: Program, finish: Callable[[Iterable[str]], None], routes: GradientRoutes) -> None:
        """Run backward of the nodes that depend on inputs: each worker its frames, then its columns of products.

        finish(names) is called for the parameters whose gradients are complete and were not taken by the workers.
        """
        for bound in program.first:
            bound.run(self.feed.run, self.feed.inputs)
        if not self._replay_backward(program, routes):
            phases = [partial(self._backward_part, program, routes), partial(self._late_part, program, routes)]
            if not program.partials_wait:
                phases.insert(1, lambda index: program.add_partial_gradients() if index == 0 else None)
            self.team.run_phases(phases, len(program.workers))
        late = {name for name, node in program.taken_late.items() if routes.of(node).takes_parts}
        if program.partials_wait:
            program.add_partial_gradients(but=late)
        for step in program.steps[: program.num_together]:
            for name in step.finished:
                if name in late:
                    program.taken_late[name].touch()
                else:
                    finish([name])

    def _replay_backward(self, program: Program, routes: GradientRoutes) -> bool:
        """Replay both phases of all workers; return False if they have not been recorded."""
        if self.feed.run.sequences is not None or not program.partials_wait:
            return False
        tables = []
        with self.team.hold() as count:
            if count < len(program.workers):
                return False
            for worker in program.workers:
                before = worker.backward_pass.table(worker.inputs, tuple(routes.layers))
                after = None if before is None else worker.late_pass.table(self.feed.inputs, routes.key)
                if after is None:
                    return False
                tables.append(joined_by_meeting(self.team, worker.index, len(program.workers), before, after))
            with one_blas_thread:
                self.team.play(tables)
        return True

    def _backward_part(self, program: Program, routes: GradientRoutes, index: int) -> None:
        worker = program.workers[index]
        run = self._run_of(worker)
        if run.sequences is None:
            worker.backward_pass.run(run, worker.inputs, tuple(routes.layers))
        else:
            for step in worker.backward_and_factors:
                step.run(run, worker.inputs)

    def _late_part(self, program: Program, routes: GradientRoutes, index: int) -> None:
        sequences = self.feed.run.sequences
        # Layers get copies of the factors without gaps: new matrices in every pass.
        copies = bool(routes.layers) and sequences is not None and sequences.idle is not None
        key = None if copies else routes.key
        program.workers[index].late_pass.run((self.feed.run, routes), self.feed.inputs, key)
