"""Detection error trade-off: misses over false alarms; on these axes, Gaussian scores give straight lines."""

from collections.abc import Mapping
from pathlib import Path
from statistics import NormalDist

import numpy as np

from acoustic.training.reporting.plots import new_figure, save_figure
from features.ivectors.comparison.error_rates import DetectionCurve

SIZE = (4.8, 4.4)  # inches
TICKS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
LEAST = 5e-4  # rates below are drawn here


def draw_detection(curves: Mapping[str, DetectionCurve], path: str | Path) -> None:
    """Write a PNG with a line for each curve, and the diagonal of equal errors.

    Parameters
    ----------
    curves : mapping of str to DetectionCurve
        Name -> curve.
    path : path
        PNG file.
    """
    figure = new_figure(*SIZE)
    axes = figure.subplots()
    ends = _deviates(np.array([LEAST, TICKS[-1]]))
    axes.plot(ends, ends, color="gray", linestyle="dotted")
    for name, curve in curves.items():
        label = f"{name}, EER {100 * curve.equal_error[0]:.1f} %"
        axes.plot(_deviates(curve.false_alarm), _deviates(curve.miss), label=label, drawstyle="steps-post")
    labels = [f"{100 * tick:g}" for tick in TICKS]
    axes.set_xticks(_deviates(np.array(TICKS)), labels)
    axes.set_yticks(_deviates(np.array(TICKS)), labels)
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    axes.set_xlabel("false alarms, %")
    axes.set_ylabel("misses, %")
    axes.legend(fontsize=8, loc="upper right")
    axes.grid(alpha=0.3)
    save_figure(figure, path)


def _deviates(rates: np.ndarray) -> np.ndarray:
    """Standard normal deviates of rates."""
    inverse = NormalDist().inv_cdf
    return np.array([inverse(min(max(rate, LEAST), 1 - LEAST)) for rate in rates.tolist()])
