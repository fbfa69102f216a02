"""Gradient checks of the toolkit: computed and numeric derivatives of single elements (CNTK book 3.3.1.6)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from acoustic.engine.gradient_check import EPSILON, GradientChecker
from acoustic.engine.pair_engine import AnyEngine
from acoustic.nodes.base import Node
from readers.errors import ModelError

SAMPLES = 10  # elements of a parameter
ULPS = 4  # rounding of a criterion
SIDE_STEPS = EPSILON * np.array([1, 0.1, 0.01])  # smaller ones where kinks lie close together
SIDE_ROUNDING = 4  # of a slope of one side, relative to that of a slope of both


@dataclass(frozen=True)
class ParameterCheck:
    """Result for sampled elements of one parameter: the largest relative error, with its place and both derivatives.

    rounding: the part of the error that the rounding of the criterion can cause; num_kinks: elements at which the
    criterion has a kink, as that of a rectified unit, whose numeric derivative is that of the other side.
    """

    name: str
    shape: tuple[int, int]
    num_samples: int
    error: float
    place: tuple[int, int]  # row, column, from 0
    computed: float
    numeric: float
    rounding: float = 0.0
    num_kinks: int = 0

    def agrees(self, digits: int) -> bool:
        return self.error - self.rounding <= 10.0**-digits

    def remark(self, digits: int) -> str:
        """Return the remark for the table; empty if the derivatives agree."""
        kinks = f"  {self.num_kinks} at a kink" if self.num_kinks else ""
        if not self.agrees(digits):
            return f"  differs{kinks}"
        return kinks if self.error <= 10.0**-digits else f"  rounding{kinks}"


def check_elements(
    engine: AnyEngine,
    criterion: str,
    matrices: Mapping[str, Any],
    *,
    num_samples: int = SAMPLES,
    seed: int = 0,
    digits: int = 6,
    **settings: Any,
) -> list[ParameterCheck]:
    """Compare derivatives of random elements of every parameter below a criterion.

    Parameters
    ----------
    engine : Engine or PairEngine
        A network in double precision; its parameters keep their values.
    criterion : str
        Name of the criterion.
    matrices, settings
        The minibatch and the settings of Engine.forward.
    num_samples : int
        Elements per parameter.
    seed : int
        Seed of the choice of elements.
    digits : int
        Where fewer digits agree, the derivative of either side is taken if it agrees: the other side has a kink.

    Returns
    -------
    list of ParameterCheck
        Errors are relative to the larger of the two derivatives, but at least to 1e-4 of the largest derivative of the
        parameter.

    Raises
    ------
    ModelError
        If the network is not in double precision.
    """
    checker = GradientChecker(engine, criterion, matrices, **settings)
    gradients = checker.gradients()
    rounding = ULPS * np.finfo(np.float64).eps * abs(checker.criterion_value()) / EPSILON
    results = []
    for node in checker.learnable():
        gradient = gradients[node.name]
        rng = np.random.default_rng((seed, crc32(node.name.encode())))
        chosen = rng.choice(gradient.size, min(num_samples, gradient.size), replace=False)
        floor = max(float(np.abs(gradient).max()) * 1e-4, 1e-12)
        compared = []
        num_kinks = 0
        for index in zip(*np.unravel_index(chosen, gradient.shape)):
            direction = np.zeros(gradient.shape, order="F")
            direction[index] = 1
            computed = float(gradient[index])
            numeric = checker.slope(node, direction)
            scale = max(abs(computed), abs(numeric), floor)
            allowed = 10.0**-digits * scale
            if abs(computed - numeric) > allowed + rounding:
                side = _slope_before_a_kink(checker, node, direction, computed, allowed, rounding)
                numeric, num_kinks = (numeric, num_kinks) if side is None else (side, num_kinks + 1)
            where = int(index[0]), int(index[1])
            compared.append((abs(computed - numeric) / scale, where, computed, numeric, float(rounding / scale)))
        worst = max(compared, key=lambda one: (not one[0] <= np.inf, one[0] - one[4]))
        results.append(ParameterCheck(node.name, gradient.shape, len(compared), *worst, num_kinks))
    return results


def _slope_before_a_kink(
    checker: GradientChecker, node: Node, direction: np.ndarray, computed: float, allowed: float, rounding: float
) -> float | None:
    """Return the slope of a side that agrees with the computed derivative; None if neither side's does.

    allowed: difference; rounding: of a slope of both sides with a step of EPSILON. A step whose rounding would hide a
    larger difference than allowed is not tried.
    """
    for step in SIDE_STEPS:
        if SIDE_ROUNDING * rounding * EPSILON / step > allowed:
            break
        for epsilon in (step, -step):
            slope = checker.slope_of_side(node, direction, epsilon)
            if abs(slope - computed) <= allowed:
                return slope
    return None


def report_lines(checks: list[ParameterCheck], digits: int) -> list[str]:
    """Return a table with one line per parameter."""
    width = max([len(check.name) for check in checks] + [9])
    lines = [f"{'parameter':{width}}  {'size':>11}  {'elements':>8}  {'error':>9}  {'computed':>15}  {'numeric':>15}"]
    for check in checks:
        size = "x".join(map(str, check.shape))
        lines.append(
            f"{check.name:{width}}  {size:>11}  {check.num_samples:8}  {check.error:9.2e}  {check.computed:15.8g}  "
            f"{check.numeric:15.8g}{check.remark(digits)}"
        )
    return lines


class GradientCheck:
    """`gradientcheck=true`: checks gradients before the first update of an epoch, and stops training at an error."""

    def __init__(self, engine: AnyEngine, criterion: str, digits: int, log: Callable[[str], None]) -> None:
        if engine.backend.precision != "double":
            raise ModelError("gradientcheck=true with precision=float; expected precision=double")
        self.engine = engine
        self.criterion = criterion
        self.digits = digits
        self.log = log

    def __call__(self, matrices: Mapping[str, Any], **settings: Any) -> None:
        """Check a minibatch. Raises ModelError if computed and numeric derivatives differ."""
        checks = check_elements(self.engine, self.criterion, matrices, digits=self.digits, **settings)
        worst = max(checks, key=lambda check: (not check.error <= np.inf, check.error))
        if not worst.agrees(self.digits):
            raise ModelError(
                f"gradient check: parameter {worst.name!r}, element {worst.place[0] + 1},{worst.place[1] + 1}: "
                f"computed {worst.computed:.10g}, numeric {worst.numeric:.10g}; expected {self.digits} equal digits "
                "(sigFigs)"
            )
        self.log(f"Gradient check of {len(checks)} parameters passed; the largest relative error is {worst.error:.2g}.")
