"""Reliability of confidences: the fraction of right words over confidence, in bins with equal numbers of words."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from acoustic.training.reporting.plots import new_figure, save_figure
from decoder.scoring.confidence import expected_calibration_error, reliability

SIZE = (4.8, 4.4)  # inches


def draw_reliability(series: Mapping[str, np.ndarray], correct: np.ndarray, path: str | Path) -> None:
    """Write a PNG with a line for each series of confidences, beside the diagonal on which perfect ones would lie.

    Parameters
    ----------
    series : mapping of str to array (N,)
        Name -> confidences of the same words.
    correct : (N,) array of bool
        Whether each word is right.
    path : path
        PNG file.
    """
    figure = new_figure(*SIZE)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="gray", linestyle="dotted", label="perfect")
    for name, confidence in series.items():
        curve = reliability(confidence, correct)
        error = expected_calibration_error(confidence, correct)
        label = f"{name}, ECE {100 * error:.1f} %"
        axes.plot(curve.confidence, curve.correct, marker="o", markersize=4, label=label)
    axes.set_xlabel("confidence")
    axes.set_ylabel("fraction of right words")
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    axes.set_title(f"{len(correct)} words, {100 * np.mean(correct):.1f} % right", fontsize=10)
    axes.legend(fontsize=8, loc="upper left")
    axes.grid(alpha=0.3)
    save_figure(figure, path)
