"""Gradient descent with unit-gain momentum or Nesterov momentum (CNTK book 3.3.1.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from acoustic.training.rules.base import Rule, Step
from readers.config.options import option


@dataclass(frozen=True)
class Momentum(Rule):
    """Momentum: v <- m v + (1 - m) l g;  w <- w - v."""

    names: ClassVar = ("none", "normal", "simple")
    state: ClassVar = {"velocity": 0.0}
    by_columns: ClassVar = True
    uses_momentum: ClassVar = True
    repeats: ClassVar = True

    nesterov: bool = option(False, "Nesterov's momentum: use w <- w - m v - (1 - m) l g with the new v", cntk="useNAG")

    def update(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], scalars: dict[str, float], step: Step
    ) -> None:
        kernels.momentum(weight, gradient, *state, step, self.nesterov)

    def update_columns(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], columns: Any, step: Step
    ) -> None:
        kernels.momentum_columns(weight, gradient, *state, columns, step, self.nesterov)
