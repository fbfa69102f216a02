"""The figures of a comparison of boundaries for reading: a table, and an object of JSON."""

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from decoder.alignment.boundaries.figures import WITHIN, BoundaryFigures, Detection, Deviations, Interval
from decoder.alignment.boundaries.matching import TOLERANCE
from decoder.scoring.report import WIDTH
from readers.dictionaries.phone_classes import SILENCE

RARE = 0.01  # of the boundaries; classes with fewer are only in the object
SPREAD = ("mean", "median", "90 %", "shift", f"{TOLERANCE} ms")


def table(figures: BoundaryFigures, tier: str) -> str:
    """Return the figures of a tier as lines of text; times are in milliseconds."""
    deviations = figures.deviations
    detection = figures.detection
    intervals = figures.intervals
    mean = f"{deviations.mean:.1f}{_shown(intervals.get('mean'), 1)}"
    within = ", ".join(
        f"{width} ms {share:.1f}%{_shown(intervals.get(f'within_{width}'), 1)}"
        for width, share in deviations.within.items()
    )
    lines = [
        f" {tier} ".center(WIDTH, "-"),
        f"error in ms: mean {mean}, median {deviations.median:.1f}, 90 % {deviations.percentile_90:.1f}, shift "
        f"{deviations.shift:+.1f}",
        f"within: {within}",
        f"at {TOLERANCE} ms: precision {detection.precision:.3f}, recall {detection.recall:.3f}, F1 {detection.f1:.3f}"
        f"{_shown(intervals.get('f1'), 3)}, R-value {detection.r_value:.3f}{_shown(intervals.get('r_value'), 3)}",
        f"boundaries: {deviations.num_boundaries} of the reference, {deviations.num_missed} missed, "
        f"{figures.num_extra} extra",
    ]
    if intervals:
        lines.append(f"in brackets: 95 % intervals by {figures.unit}")
    if figures.speakers:
        lines += _rows("speaker", ((name, *parts) for name, parts in figures.speakers.items()))
    spoken = {name: part for name, part in figures.phone_classes.items() if name != SILENCE}
    if len(spoken) > 1:
        lines += _rows("beside", ((name, part, None) for name, part in figures.phone_classes.items()))
    pairs = sorted(figures.boundary_classes.items(), key=lambda item: -item[1].num_boundaries)
    frequent = [(pair, part) for pair, part in pairs if part.num_boundaries >= RARE * deviations.num_boundaries]
    if len(frequent) > 1:
        lines += _rows("between", ((" | ".join(pair), part, None) for pair, part in frequent))
    return "\n".join(lines)


def _rows(title: str, parts: Iterable[tuple[str, Deviations, Detection | None]]) -> list[str]:
    """Return a line for each part of the boundaries, below a heading."""
    rows = list(parts)
    width = max(len(title), *(len(name) for name, _, _ in rows))
    has_detection = any(detection for _, _, detection in rows)
    heading = "".join(f"{name:>8}" for name in (*SPREAD, *(["F1"] if has_detection else [])))
    lines = [f"{title:{width}} {'number':>7}{heading}"]
    for name, part, detection in rows:
        times = (f"{part.mean:8.1f}", f"{part.median:8.1f}", f"{part.percentile_90:8.1f}", f"{part.shift:+8.1f}")
        score = f"{detection.f1:8.3f}" if detection else ""
        lines.append(f"{name:{width}} {part.num_boundaries:7}{''.join(times)}{part.within[TOLERANCE]:7.1f}%{score}")
    return lines


def _shown(interval: Interval | None, decimals: int) -> str:
    return f" [{interval[0]:.{decimals}f}, {interval[1]:.{decimals}f}]" if interval else ""


def as_object(figures: BoundaryFigures) -> dict[str, Any]:
    """Return the figures as an object of JSON; times are in milliseconds, and null where there is none."""
    content = {
        **_deviations(figures.deviations),
        **_detection(figures.detection),
        "extra": figures.num_extra,
        "intervals": {name: list(map(_rounded, bounds)) for name, bounds in figures.intervals.items()},
        "intervals_by": figures.unit,
        "phone_classes": {name: _deviations(part) for name, part in figures.phone_classes.items()},
        "boundary_classes": {"|".join(pair): _deviations(part) for pair, part in figures.boundary_classes.items()},
    }
    if figures.speakers:
        content["speakers"] = {
            name: _deviations(deviations) | _detection(detection)
            for name, (deviations, detection) in figures.speakers.items()
        }
    return content


def _deviations(part: Deviations) -> dict[str, Any]:
    content = asdict(part)
    within = content.pop("within")
    counts = {"boundaries": content.pop("num_boundaries"), "missed": content.pop("num_missed")}
    times = {name: _rounded(value) for name, value in content.items()}
    return counts | times | {"within": {str(width): _rounded(within[width]) for width in WITHIN}}


def _detection(detection: Detection) -> dict[str, Any]:
    return {name: _rounded(getattr(detection, name)) for name in ("precision", "recall", "f1", "r_value")}


def _rounded(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None
