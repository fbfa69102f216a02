"""Asynchronous computation: every node runs as soon as its operands are computed (CNTK book 2.2, Algorithm 2.3)."""

import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from concurrent.futures import Executor, Future


class Schedule:
    """One pass over some nodes of an acyclic graph, by the threads of an executor.

    nodes: the nodes to compute; operands: those of each node, of which only those among `nodes` are waited for;
    compute(node): called once for each node, in any thread. A node is ready when its operands are done
    (SIGNALCOMPLETE): the thread that finished the last operand continues with it; other ready nodes go to the
    executor in the order in which they became ready.
    """

    def __init__(
        self,
        nodes: Sequence[Hashable],
        operands: Mapping[Hashable, Collection[Hashable]],
        compute: Callable[[Hashable], None],
        executor: Executor,
    ) -> None:
        self.compute, self.executor = compute, executor
        among = set(nodes)
        self._left = {node: len(among.intersection(operands[node])) for node in nodes}  # operands to wait for
        self._users: dict[Hashable, list[Hashable]] = {node: [] for node in nodes}
        for node in nodes:
            for operand in among.intersection(operands[node]):
                self._users[operand].append(node)
        self._lock = threading.Lock()
        self._futures: list[Future] = []
        self._failed = False

    def run(self) -> None:
        """Compute all nodes; raise the first error, after which no other node is started."""
        self._submit([node for node, left in self._left.items() if left == 0])
        error = None
        while self._futures:  # a thread adds its submissions before it ends
            with self._lock:
                future = self._futures.pop()
            error = error or future.exception()
        if error is not None:
            raise error

    def _submit(self, nodes: Sequence[Hashable]) -> None:
        for node in nodes:
            future = self.executor.submit(self._work, node)
            with self._lock:
                self._futures.append(future)

    def _work(self, node: Hashable) -> None:
        """Compute a node, then one that it made ready, and so on."""
        while not self._failed:
            try:
                self.compute(node)
            except BaseException:
                self._failed = True
                raise
            ready = self._signal_complete(node)
            if not ready:
                return
            self._submit(ready[1:])
            node = ready[0]

    def _signal_complete(self, node: Hashable) -> list[Hashable]:
        """The nodes whose last missing operand this node was."""
        ready = []
        with self._lock:
            for user in self._users[node]:
                self._left[user] -= 1
                if self._left[user] == 0:
                    ready.append(user)
        return ready
