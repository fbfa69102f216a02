"""A spectrogram above the tiers of an alignment: words and phones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.training.reporting.plots import new_figure, save_figure
from readers.htk.mlf import Label
from readers.htk.units import TICKS_PER_SECOND

WINDOW, SHIFT = 0.025, 0.005  # seconds of a spectrum, and between two
MAX_SPECTRA = 8000  # about two per pixel of the widest picture; longer audio has a larger shift
DYNAMIC_RANGE = 70.0  # dB below the loudest value that the shades cover
INCHES_PER_SECOND, MIN_WIDTH, MAX_WIDTH = 4.0, 6.0, 40.0
SHADE = "#eef3f8"  # of intervals with text
Interval = tuple[float, float, str]  # start and end in seconds, text


def spectrogram(samples: np.ndarray, rate: int) -> np.ndarray:
    """Return the power spectra (frequencies, frames) float64 in dB, at most 0, of audio samples (N,)."""
    size = max(round(WINDOW * rate), 2)
    shift = max(round(SHIFT * rate), -(-len(samples) // MAX_SPECTRA), 1)
    padded = np.pad(np.asarray(samples, float), (size // 2, size))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[: len(samples) : shift]
    power = np.abs(np.fft.rfft(frames * np.hamming(size), axis=1)) ** 2
    with np.errstate(divide="ignore"):
        decibels = 10 * np.log10(power.T)
    return np.maximum(decibels - decibels.max(), -DYNAMIC_RANGE) if power.any() else np.full_like(power.T, -np.inf)


def tiers_of(labels: Sequence[Label]) -> list[list[Interval]]:
    """Return the intervals of each level of an MLF entry, the highest level first.

    An interval of a higher level ends with the last label before the next one of that level.
    """
    tiers: list[list[Interval]] = [[] for _ in range(1 + max((len(label.aux) for label in labels), default=0))]
    for label in labels:
        start, end = (label.start or 0) / TICKS_PER_SECOND, (label.end or 0) / TICKS_PER_SECOND
        for tier, name in zip(tiers, (label.name, *(name for name, _ in label.aux))):
            tier.append((start, end, name))
        for tier in tiers[1 + len(label.aux) :]:
            if tier:
                tier[-1] = (tier[-1][0], end, tier[-1][2])
    return tiers[::-1]


def draw_alignment(
    samples: np.ndarray,
    rate: int,
    tiers: Mapping[str, Sequence[Interval]],
    path: str | Path,
    title: str = "",
    colours: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a PNG: the spectrogram of an utterance, and below it a row for each tier.

    Parameters
    ----------
    samples : (N,) float32
        Audio.
    rate : int
        Sampling rate in Hz.
    tiers : mapping of str to sequence of (float, float, str)
        Name of a tier to its intervals: start and end in seconds, and text.
    path : path
        PNG file.
    title : str
        Title of the picture.
    colours : mapping of str to sequence of str, optional
        Name of a tier to the colours of its intervals.
    """
    duration = len(samples) / rate
    width = min(max(INCHES_PER_SECOND * duration, MIN_WIDTH), MAX_WIDTH)
    figure = new_figure(width, 3.4 + 0.45 * len(tiers))
    rows = figure.subplots(1 + len(tiers), 1, sharex=True, height_ratios=[3.4] + [0.45] * len(tiers), squeeze=False)
    spectrum, *tier_axes = rows[:, 0]
    shown = spectrogram(samples, rate)
    low = -DYNAMIC_RANGE if np.isfinite(shown).any() else None
    spectrum.imshow(
        shown, origin="lower", aspect="auto", extent=(0, duration, 0, rate / 2000), cmap="magma", vmin=low, vmax=0
    )
    spectrum.set_ylabel("frequency (kHz)")
    spectrum.set_title(title, fontsize=10, parse_math=False)
    for axes, (name, intervals) in zip(tier_axes, tiers.items()):
        shades = (colours or {}).get(name, [SHADE if text else "white" for _, _, text in intervals])
        _draw_tier(axes, name, intervals, shades, width / duration)
        for start, _, _ in intervals:
            spectrum.axvline(start, color="white", linewidth=0.4, alpha=0.5)
    rows[-1, 0].set_xlabel("time (s)")
    rows[-1, 0].set_xlim(0, duration)
    save_figure(figure, path)


def _draw_tier(
    axes: Any, name: str, intervals: Sequence[Interval], colours: Sequence[str], inches_per_second: float
) -> None:
    """Draw the boundaries and texts of one tier; a text that is wider than its interval is turned or left out."""
    axes.set_yticks([])
    axes.set_ylim(0, 1)
    axes.set_ylabel(name, rotation=0, ha="right", va="center")
    for (start, end, text), colour in zip(intervals, colours, strict=True):
        axes.axvspan(start, end, facecolor=colour, edgecolor="#51606e", linewidth=0.6)
        inches = (end - start) * inches_per_second
        size = 9.0
        turned = len(text) * 0.085 > inches
        if text and inches > 0.11:
            axes.text(
                (start + end) / 2, 0.5, text, ha="center", va="center", clip_on=True, parse_math=False,
                fontsize=size - 2 if turned else size, rotation=90 if turned and len(text) > 1 else 0,
            )  # fmt: skip
