"""The interface of update rules: the values of one update, and the base class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from readers.config.options import Options


@dataclass(frozen=True)
class Step:
    """The values of one update of one parameter.

    Attributes
    ----------
    rate : float
        Learning rate per frame, including the parameter's multiplier.
    momentum : float
        Momentum of this minibatch.
    num_frames : int
        Frames in the minibatch.
    limit : float
        Bound of the absolute value of each gradient element, for the whole minibatch.
    l2 : float
        Weight of w in the gradient, for the whole minibatch.
    shrink : float
        Threshold of the L1 shrinking, for the whole minibatch.
    """

    rate: float
    momentum: float
    num_frames: int
    limit: float
    l2: float
    shrink: float


@dataclass(frozen=True)
class Rule(Options):
    """Base class of update rules: a frozen dataclass whose fields are the options of the rule.

    Attributes
    ----------
    names : tuple of str
        Values of `gradUpdateType` that select the rule.
    state : dict
        Matrices kept for each parameter, of its shape, with their initial values.
    uses_momentum : bool
        Whether the rule applies momentum.
    repeats : bool
        Whether equal Steps lead to identical kernel calls, which may then be listed; see
        acoustic/runtime/operations.py.
    by_columns : bool
        Whether the rule implements `update_columns`.
    refuses : tuple of str
        Names of options that cannot be combined with the rule.
    """

    names: ClassVar[tuple[str, ...]] = ()
    state: ClassVar[dict[str, float]] = {}
    uses_momentum: ClassVar[bool] = False
    repeats: ClassVar[bool] = False
    by_columns: ClassVar[bool] = False
    refuses: ClassVar[tuple[str, ...]] = ()

    @property
    def by_parts(self) -> bool:
        """Whether some columns of a parameter can be updated without the others."""
        return True

    def advance(self, scalars: dict[str, float], num_frames: int) -> None:
        """Update the numbers kept for all parameters together, once per minibatch.

        `scalars` is empty at first and is saved in checkpoints.
        """
        scalars["updates"] = scalars.get("updates", 0) + 1

    def update(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], scalars: dict[str, float], step: Step
    ) -> None:
        """Update weight and state in place.

        The steps are: clip the gradient to +-limit, add l2 * weight, apply the rule, shrink towards 0.

        Parameters
        ----------
        kernels : ArrayRules, CompiledRules or Emitter
            Arithmetic of the backend; an Emitter lists the calls instead of making them.
        weight, gradient : array, shape (rows, cols), Fortran order
            The parameter and its gradient, summed over the frames; the gradient is used as scratch memory.
        state : sequence of arrays, shape (rows, cols)
            The matrices named in `Rule.state`.
        scalars : dict
            Numbers kept for all parameters together.
        step : Step
            The values of this update.
        """
        raise NotImplementedError

    def update_columns(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], columns: Any, step: Step
    ) -> None:
        """Update only the given columns (n,) of weight and state from gradient (rows, n), without L2 and shrinking.

        The other columns of weight and state do not change.
        """
        raise NotImplementedError
