"""Where a node's backward puts its contributions.

Nodes always add.  Whether a contribution is the first one, and may therefore be written instead of added, is the
engine's knowledge: it saves zeroing every gradient and reading it back.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NamedTuple

from acoustic.kernels.backend import Backend, matmul_into
from acoustic.runtime.thread_team import share_of


class Accumulation(NamedTuple):
    """Where a gradient is added up instead of in a matrix of its own: matrix <- scale * gradient + keep * matrix."""

    matrix: Any
    scale: float
    keep: float


class Into:
    """The gradients of one node's operands.

    targets: per operand its gradient buffer, or None when nobody needs it; fresh: per operand whether its buffer holds
    nothing yet.  scratch(rows, cols) lends a buffer for a moment; share:
    (worker, workers) when several of them make each some columns of the products; rows: of every operand, whether its
    gradient is needed or not (default: every operand has a target).
    elsewhere: operands whose gradient, all of it one or more products, is added up in another place than its target.
    touched: operands of whose gradient, all of it made here, only the columns that are not zero are wanted: those, and
    what gives a block of some of them, lent until the next; None before.
    factored: operands whose gradient, all of it one product a b' over the frames, is not made: both factors are given
    to this instead.
    on_columns: operands whose gradient, all of it one or more products, may be taken some columns at a time, in any
    thread, as soon as they are complete and nobody reads the operand any more; taken: of which all columns were; key:
    what that depends on, see Taker.
    """

    def __init__(
        self,
        backend: Backend,
        targets: Sequence[Any],
        fresh: Sequence[bool],
        scratch: Callable[[int, int], Any] | None = None,
        share: tuple[int, int] | None = None,
        rows: Sequence[int] | None = None,
    ) -> None:
        self.backend, self.xp = backend, backend.xp
        self.targets = targets
        self.rows = rows or [target.shape[0] for target in targets if target is not None]
        self.scratch, self.share = scratch or backend.empty, share
        # One flag per distinct buffer: a node may have one operand twice; only its first contribution is fresh.
        self._slot = [next((j for j in range(k) if targets[j] is target), k) for k, target in enumerate(targets)]
        self._initially_fresh = list(fresh)
        self.elsewhere: dict[int, Accumulation] = {}
        self.factored: dict[int, Callable[[Any, Any], None]] = {}
        self.touched: dict[int, tuple[Any, Any] | None] = {}
        self.on_columns: dict[int, Callable[[slice], None]] = {}
        self.taken: Collection[int] = ()
        self.key: Hashable | None = ()
        self.reset()

    def reset(self) -> None:
        """Forget what was added: a new backward pass begins."""
        self._fresh = list(self._initially_fresh)

    def take_fresh(self, k: int) -> bool:
        """Whether operand k's buffer holds nothing yet; it does from now on."""
        slot = self._slot[k]
        fresh, self._fresh[slot] = self._fresh[slot], False
        return fresh

    def needs(self, k: int) -> bool:
        """Whether operand k's gradient is asked for."""
        return self.targets[k] is not None

    def add(self, k: int, write: Callable[[Any], Any]) -> None:
        """Add what `write(out)` writes into a buffer of operand k's shape; not called when nobody needs it."""
        target = self.targets[k]
        if target is None:
            return
        if self.take_fresh(k):
            write(target)
            return
        buffer = self.scratch(*target.shape)
        write(buffer)
        self.backend.kernels.accumulate(target, buffer)

    def place(self, k: int) -> Accumulation:
        """Where a product is added to operand k's gradient, and how."""
        place = self.elsewhere.get(k) or Accumulation(self.targets[k], 1.0, 0.0)
        return place if self.take_fresh(k) else place._replace(keep=1.0)

    def add_product(self, k: int, a: Any, b: Any) -> None:
        """Add the matrix product a b, or this worker's columns of it."""
        if self.targets[k] is None:
            return
        if k in self.factored:
            self.factored[k](a, b.T)
            return
        out, scale, keep = self.place(k)
        if self.share is not None:
            columns = self.columns(k)
            if columns.start == columns.stop:
                return
            out, b = out[:, columns], b[:, columns]
        matmul_into(self.xp, a, b, out, scale, keep)

    def add_columns(self, k: int, columns: Any, write: Callable[[Any, slice], Any]) -> None:
        """Add to columns (n,) of operand k's gradient, each once and ascending.

        write(block, part) writes what belongs to columns[part] into a matrix; it may be called, for one part after
        another, until the node's operands change.
        """
        target = self.targets[k]
        if target is None:
            return

        def fill(part: slice) -> Any:
            block = self.scratch(target.shape[0], len(columns[part]))
            write(block, part)
            return block

        if k in self.touched:
            self.take_fresh(k)
            self.touched[k] = columns, fill
            return
        out, scale, keep = self.elsewhere.get(k) or Accumulation(target, 1.0, 0.0)
        mine = self.columns(k)
        if self.take_fresh(k):
            whole = out[:, mine]
            if keep:
                self.xp.multiply(whole, keep, out=whole)
            else:
                whole.fill(0)
        first, last = (int(place) for place in self.xp.searchsorted(columns, self.xp.asarray([mine.start, mine.stop])))
        if first < last:
            block = fill(slice(first, last))
            out[:, columns[first:last]] += scale * block if scale != 1 else block

    def columns(self, k: int) -> slice:
        """This worker's columns of operand k's gradient."""
        count = self.targets[k].shape[1]
        return slice(0, count) if self.share is None else share_of(*self.share, count)

    def add_matrix(self, k: int, grad: Any) -> None:
        """Add a matrix of the operand's shape; free when it already lies in the operand's buffer."""
        target = self.targets[k]
        if target is None:
            return
        if not self.take_fresh(k):
            self.backend.kernels.accumulate(target, grad)
        elif target is not grad:
            self.backend.kernels.copy(grad, target)

    def add_reduced(self, k: int, grad: Any) -> None:
        """Add a matrix of the value's shape to an operand that was broadcast to it.

        A row or column of one element is summed over; an operand of c columns repeated over a multiple of c is summed
        over the repetitions (book 2.4.3, Plus), and so is a column repeated downwards.
        """
        target = self.targets[k]
        if target is None:
            return
        rows, cols = target.shape
        if (rows, cols) == grad.shape:
            self.add_matrix(k, grad)
            return
        if rows == 1 and rows != grad.shape[0]:
            grad = grad.sum(axis=0, keepdims=True)
        elif rows != grad.shape[0]:
            grad = grad.reshape((rows, -1), order="F")
        if cols == grad.shape[1]:
            self.add_matrix(k, grad)
        elif cols == 1:
            self.add(k, lambda out: self.backend.kernels.sum_columns(grad, out))
        else:
            # Column j of the value came from column j modulo cols: (rows, cols, repetitions) in Fortran order.
            folded = grad.reshape((grad.shape[0], cols, -1), order="F")
            self.add(k, lambda out: folded.sum(axis=2, out=out))
