"""The steps of a backward pass bound to arrays: before the workers', theirs, the deferred products, and those after."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from acoustic.engine.execution.arrays import BoundArrays
from acoustic.engine.execution.steps import BackwardStep, Worker
from acoustic.engine.planning.pass_plan import BackwardPlan
from acoustic.nodes.base import Node
from acoustic.runtime.thread_team import share_of


@dataclass
class LateStep:
    """What a worker computes when all frames are done: columns of a product, or the sum of the parts of a gradient.

    taken: the parameters whose gradients this completes, with the worker's columns; the sum is that of a gradient,
    which is the first worker's part, and `partials`.
    """

    taken: list[tuple[Node, slice]]
    product: BackwardStep | None = None
    name: str = ""
    gradient: Any = None
    partials: Sequence[Any] = ()


class BackwardSteps:
    """The bound steps; their order decides which contribution to a gradient is the first.

    first, last: computed once, before and after the workers' steps; of_worker: each worker's steps and, with each,
    that which gives factors to a layer; sums and late: for each worker sums of parts of gradients, and products that
    wait for all frames and, if no product adds to one of them, for the sums; finished_by: the names of the parameters
    that each step finishes, in order; layer_products: weights of layers with operand number, and for each worker
    the steps that make the product and that give its factors; handed_out, touched_columns: parameters, operand numbers
    and steps, see BackwardPlan.
    """

    def __init__(self, arrays: BoundArrays) -> None:
        self.arrays, self.graph = arrays, arrays.graph
        plans, workers = arrays.layout.backward, arrays.workers
        self.parameters = {one.name: one for plan in plans for one in self.graph.operands[plan.node.name]}
        before: set[str] = set()
        first = [plan for plan in plans if arrays.is_after(plan.node)]
        self.first = [arrays.bind_backward(plan, plan.wanted, arrays.whole, before) for plan in first]
        together = [plan for plan in plans[len(first) :] if not arrays.is_alone(plan.node)]
        self.num_together = len(first) + len(together)
        after = set(before)
        self._made: dict[str, list[BackwardStep]] = {plan.node.name: [] for plan in together}
        for worker in workers:
            # Gradients without frames: the first worker adds to the final matrix, the others to their own parts.
            touched = after if worker is workers[0] else set()
            for plan in together:
                self._made[plan.node.name].append(arrays.bind_backward(plan, plan.wanted, worker, touched))
        factors = {plan.node.name: self._factor_steps(plan) for plan in together}
        self.of_worker = [
            [(self._made[plan.node.name][k], (factors[plan.node.name] or {}).get(k)) for plan in together]
            for k in range(len(workers))
        ]
        self.late: list[list[LateStep]] = []
        for worker in workers:
            touched = set(after)
            self.late.append([self._late_product(plan, worker, touched) for plan in together if plan.deferred])
        last = plans[self.num_together :]
        self.last = [arrays.bind_backward(plan, plan.wanted, arrays.whole, touched) for plan in last]
        self.finished_by = [plan.finished for plan in plans]
        self.finished = [self.parameters[name] for names in self.finished_by for name in names]
        self.layer_products = [
            (self._operand(plan, k), k, self._product_steps(plan), list((factors[plan.node.name] or {}).values()))
            for plan in together
            for k in plan.layer_products
        ]
        self.handed_out = self._with_steps(together, lambda plan: plan.handed_out)
        self.touched_columns = self._with_steps(together, lambda plan: plan.touched_columns)
        self.sums = self._sums(together)
        made_whole = {self._operand(plan, k).name for plan in together for k in plan.deferred}
        if made_whole.isdisjoint(workers[-1].partial_gradients):  # the sums can wait, and complete gradients
            self.late = [[*late, *sums] for late, sums in zip(self.late, self.sums)]
            self.sums = []
        else:
            for step in (one for sums in self.sums for one in sums):
                step.taken = []

    def _operand(self, plan: BackwardPlan, k: int) -> Node:
        return self.graph.operands[plan.node.name][k]

    def _with_steps(
        self, plans: list[BackwardPlan], operands: Callable[[BackwardPlan], tuple[int, ...]]
    ) -> list[tuple[Node, int, BackwardStep]]:
        return [
            (self._operand(plan, k), k, step)
            for plan in plans
            for k in operands(plan)
            for step in self._product_steps(plan)
        ]

    def _product_steps(self, plan: BackwardPlan) -> list[BackwardStep]:
        """The steps, one for each worker, that compute a plan's products."""
        if not plan.deferred:
            return self._made[plan.node.name]
        late = [step.product for steps in self.late for step in steps]
        return [step for step in late if step is not None and step.node is plan.node]

    def _factor_steps(self, plan: BackwardPlan) -> dict[int, BackwardStep] | None:
        """By worker, the steps that give its factors to layers; None if workers do not divide the frames."""
        if not plan.deferred or not plan.layer_products:
            return None
        return {
            k: self.arrays.bind_backward(plan, plan.layer_products, worker, set(), whole_targets=True)
            for k, worker in enumerate(self.arrays.workers)
        }

    def _late_product(self, plan: BackwardPlan, worker: Worker, touched: set[str]) -> LateStep:
        place = worker.index, len(self.arrays.workers)
        shapes = self.arrays.layout.shapes
        taken = [(self.parameters[name], share_of(*place, shapes[name].cols)) for name in plan.finished_products]
        return LateStep(taken, self.arrays.bind_backward(plan, plan.deferred, worker, touched, share=place))

    def _sums(self, together: list[BackwardPlan]) -> list[list[LateStep]]:
        """The sums of parts of gradients, divided among the workers; nothing may read a parameter that they take."""
        read = {
            self._operand(plan, k).name for plan in together for k in plan.reads(plan.deferred) if isinstance(k, int)
        }
        workers = self.arrays.workers
        finished = [name for plan in together for name in plan.finished if name not in read]
        sums: list[list[LateStep]] = [[] for _ in workers]
        for k, name in enumerate(workers[-1].partial_gradients):
            gradient = self.arrays.gradient(name, self.arrays.whole)
            taken = [(self.parameters[name], slice(0, gradient.shape[1]))] if name in finished else []
            parts = [worker.partial_gradients[name] for worker in workers[1:]]
            sums[k % len(workers)].append(LateStep(taken, None, name, gradient, parts))
        return sums
