"""The gradients of a node's operands, to which its `backward` adds.

Nodes always add. Only the engine knows whether a contribution is the first one, which may then be written instead of
added: this saves setting gradients to zero and reading them back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from acoustic.kernels.backend import Backend
from acoustic.runtime.thread_team import share_of


@dataclass
class GradientRoute:
    """How a parameter's gradient leaves the step that computes all of it: in its matrix, or by one of these functions.

    Attributes
    ----------
    factors : callable, optional
        ``factors(kernels, a, b)`` takes a (rows, frames) and b (cols, frames) of the gradient a b', instead of the
        product; kernels: through which calls are made.
    columns : callable, optional
        ``columns(columns, fill)`` takes the columns (n,) that are not zero; fill(part) lends the gradient of
        columns[part].
    parts : callable, optional
        ``parts(columns)`` returns the operations that take some columns of the matrix. They run when these are complete
        and nothing reads those of the parameter any more.
    """

    factors: Callable[[Any, Any, Any], None] | None = None
    columns: Callable[[Any, Callable[[slice], Any]], None] | None = None
    parts: Callable[[slice], list[Any]] | None = None


IN_MATRIX = GradientRoute()


class GradientTargets:
    """The gradients of the operands of one node.

    Parameters
    ----------
    backend : Backend
    targets : sequence of arrays or None
        The gradient buffer of each operand; None if the gradient is not needed.
    fresh : sequence of bool
        Whether the buffer of each operand is still empty.
    scratch : callable, optional
        ``scratch(rows, cols)`` lends a temporary buffer; by default it allocates one.
    share : tuple of int, optional
        (worker, workers) if each worker computes some columns of the products.
    rows : sequence of int, optional
        Rows of every operand, needed or not; by default every operand has a target.
    kernels : optional
        The kernels that write; by default those of the backend.
    routes : dict, optional
        The routes of the operands whose gradient does not stay in its matrix.
    """

    def __init__(
        self,
        backend: Backend,
        targets: Sequence[Any],
        fresh: Sequence[bool],
        scratch: Callable[[int, int], Any] | None = None,
        share: tuple[int, int] | None = None,
        rows: Sequence[int] | None = None,
        kernels: Any = None,
        routes: dict[int, GradientRoute] | None = None,
    ) -> None:
        self.backend, self.xp = backend, backend.xp
        self.targets = targets
        self.rows = rows or [target.shape[0] for target in targets if target is not None]
        self.scratch, self.share = scratch or backend.empty, share
        # One flag per distinct buffer: an operand may occur twice, and then only its first contribution is fresh.
        self._slot = [next((j for j in range(k) if targets[j] is target), k) for k, target in enumerate(targets)]
        self._initially_fresh = list(fresh)
        self.routes = routes or {}
        self.begin(kernels or backend.kernels)

    def begin(self, kernels: Any) -> None:
        """Start a new backward pass, written through `kernels`: all buffers are as fresh as at the beginning."""
        self.kernels = kernels
        self._fresh = list(self._initially_fresh)
        self._named: set[int] = set()  # operands whose columns are handed over, not added to their matrix

    def complete(self) -> None:
        """Set gradients to zero to which nothing was added, at the end of a node's `backward`."""
        for k, target in enumerate(self.targets):
            if target is not None and self._fresh[self._slot[k]] and self.route(k).factors is None:
                self.add_columns(k, self.xp.zeros(0, int), lambda block, part: None)

    def take_fresh(self, k: int) -> bool:
        """Return whether the buffer of operand `k` is still empty, and mark it as filled.

        Raises ValueError if `add_columns` has handed over the gradient, to which nothing can be added any more.
        """
        slot = self._slot[k]
        fresh, self._fresh[slot] = self._fresh[slot], False
        if k in self._named:
            raise _second_addition(k)
        return fresh

    def route(self, k: int) -> GradientRoute:
        """How operand k's gradient leaves the step."""
        return self.routes.get(k, IN_MATRIX)

    def keep(self, k: int) -> float:
        """The factor of operand k's gradient when a product is added to it: 0 if it holds nothing yet, else 1."""
        return 0.0 if self.take_fresh(k) else 1.0

    def needs(self, k: int) -> bool:
        """Return whether the gradient of operand `k` is needed."""
        return self.targets[k] is not None

    def add(self, k: int, write: Callable[[Any], Any]) -> None:
        """Add the matrix of the shape of operand `k` that ``write(out)`` fills; `write` is not called if not needed."""
        target = self.targets[k]
        if target is None:
            return
        if self.take_fresh(k):
            write(target)
            return
        buffer = self.scratch(*target.shape)
        write(buffer)
        self.kernels.accumulate(target, buffer)

    def add_product(self, k: int, a: Any, b: Any) -> None:
        """Add the matrix product a b, or this worker's columns of it."""
        out = self.targets[k]
        if out is None:
            return
        factors = self.route(k).factors
        if factors is not None:
            factors(self.kernels, a, b.T)
            return
        keep = self.keep(k)
        if self.share is not None:
            columns = self.columns(k)
            if columns.start == columns.stop:
                return
            out, b = out[:, columns], b[:, columns]
        self.kernels.matmul(a, b, out, 1.0, keep)

    def add_columns(self, k: int, columns: Any, write: Callable[[Any, slice], Any]) -> None:
        """Add to some columns of the gradient of operand `k`.

        If the operand is among `Traits.touches_columns`, update rules that can may change these columns alone.

        Parameters
        ----------
        k : int
            Nothing else may be added to this gradient in the same `backward`.
        columns : array of int (n,)
            Numbers of columns, distinct and ascending, on the device; may be empty.
        write : callable
            ``write(block, part)`` sets every element of block (rows, columns in part), which is not cleared, to the
            contribution to ``columns[part]``. It is called for one slice after another, perhaps after `backward` has
            returned: it may read `grad` and the inputs that `backward_reads` names, and must not change them.

        Raises
        ------
        ValueError
            For a second addition, if the columns are handed over and not added to the matrix.
        """
        target = self.targets[k]
        if target is None:
            return

        def fill(part: slice) -> Any:
            block = self.scratch(target.shape[0], len(columns[part]))
            write(block, part)
            return block

        fresh = self.take_fresh(k)
        take_columns = self.route(k).columns
        if take_columns is not None:
            if not fresh:
                raise _second_addition(k)
            self._named.add(k)
            take_columns(columns, fill)
            return
        share = self.columns(k)
        if fresh:
            target[:, share].fill(0)
        first, last = self.xp.searchsorted(columns, self.xp.asarray([share.start, share.stop])).tolist()
        if first < last:
            target[:, columns[first:last]] += fill(slice(first, last))

    def columns(self, k: int) -> slice:
        """Return this worker's columns of the gradient of operand `k`."""
        count = self.targets[k].shape[1]
        return slice(0, count) if self.share is None else share_of(*self.share, count)

    def add_matrix(self, k: int, grad: Any) -> None:
        """Add a matrix of the shape of operand `k`; this costs nothing if it is already in the operand's buffer."""
        target = self.targets[k]
        if target is None:
            return
        if not self.take_fresh(k):
            self.kernels.accumulate(target, grad)
        elif target is not grad:
            self.kernels.copy(grad, target)

    def add_reduced(self, k: int, grad: Any) -> None:
        """Add a matrix of the shape of the value to the gradient of an operand that was broadcast to that shape.

        It is summed over the rows or columns along which the operand was repeated (CNTK book 2.4.3, Plus).
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
            columns = self.backend.xp.asfortranarray(grad)
            self.add(k, lambda out: self.kernels.sum_columns(columns, out))
        else:
            # Column j of the value came from column j modulo cols: (rows, cols, repetitions) in Fortran order.
            folded = grad.reshape((grad.shape[0], cols, -1), order="F")
            self.add(k, lambda out: folded.sum(axis=2, out=out))


def _second_addition(k: int) -> ValueError:
    return ValueError(f"operand {k}: gradient added to a second time; expected one call of add_columns and no other")
