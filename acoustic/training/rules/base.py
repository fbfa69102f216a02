"""What the update rules share: what a rule is told about an update, what it keeps between updates, its kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from readers.config.option_check import OptionFault


@dataclass(frozen=True)
class Step:
    """One update of one parameter.

    rate: learning rate per frame, the parameter's own; momentum of this minibatch; num_frames in it; limit, l2, shrink:
    bound of the gradient's elements, weight of w in the gradient, and threshold of the shrinking, all three as they
    hold for the whole minibatch.
    """

    rate: float
    momentum: float
    num_frames: int
    limit: float
    l2: float
    shrink: float


@dataclass(frozen=True)
class Rule:
    """How a gradient changes a parameter; a frozen dataclass whose fields are the rule's own options.

    names: what `gradUpdateType` calls it; keys: field -> (name in a configuration, how Config reads it); state: what is
    kept of each parameter, matrices of its shape, with their first values.
    """

    names: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[dict[str, tuple[str, str]]] = {}
    state: ClassVar[dict[str, float]] = {}
    uses_momentum: ClassVar[bool] = False
    repeats: ClassVar[bool] = False  # with equal Steps its updates are the same calls: see acoustic/runtime/recorder.py
    by_columns: ClassVar[bool] = False  # it has update_columns
    refuses: ClassVar[tuple[str, ...]] = ()  # names of options that do not go with it

    @property
    def by_parts(self) -> bool:
        """Whether some columns of a parameter can be updated without the others."""
        return True

    def advance(self, scalars: dict[str, float], num_frames: int) -> None:
        """Bring the numbers that are kept for all parameters together up to this minibatch.

        scalars: empty at first; in checkpoints, so that a resumed run has them.
        """
        scalars["updates"] = scalars.get("updates", 0) + 1

    def update(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], scalars: dict[str, float], step: Step
    ) -> None:
        """Change weight and state in place, all (rows, cols) in Fortran order; the gradient's memory is used up.

        In this order: the gradient clipped to +-limit, l2 * weight added, the rule, shrinking towards 0.
        """
        raise NotImplementedError

    def update_columns(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], columns: Any, step: Step
    ) -> None:
        """The same for columns (n,) of weight and state, gradient (rows, n), without L2 and shrinking.

        Columns without a gradient stay as they are, and so does what is kept of them.
        """
        raise NotImplementedError

    def accumulation(self, rate: float, momentum: float) -> tuple[float, float] | None:
        """(scale, keep) where the first matrix of the state becomes scale * gradient + keep * itself, and `take` ends
        the update; None where a rule does something else with a gradient.
        """
        return None

    def take(self, kernels: Any, weight: Any, state: Any) -> None:
        """Change the weight by the first matrix of the state, which has the gradient in it."""
        raise NotImplementedError

    def require(self, field: str, fine: bool, expected: str) -> None:
        """Raise OptionFault, which names the option as a configuration does, unless fine."""
        if not fine:
            raise OptionFault(self.keys[field][0], f"{getattr(self, field)}; expected {expected}")
