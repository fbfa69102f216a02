"""The figures of a comparison of boundaries: errors in time, detection, intervals; of all boundaries and of parts.

References
----------
O. J. Räsänen, U. K. Laine, T. Altosaar: An improved speech segmentation quality measure: the R-value. Interspeech 2009.
L. Strgar, D. Harwath: Phoneme segmentation using self-supervised speech models. SLT 2022 (a boundary is hit once).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from decoder.alignment.boundaries.matching import TICKS_PER_MILLISECOND, TOLERANCE, BoundaryComparison, is_within
from decoder.scoring.bootstrap import interval, resampled
from readers.common.arrays import Array, Float64Array
from readers.dictionaries.phone_classes import SILENCE, are_phones, is_pause, phone_class

WITHIN = (5, 10, 20, 25, 50, 100)  # milliseconds
OTHERS = "others"

Interval = tuple[float, float]


@dataclass(frozen=True)
class Deviations:
    """How far boundaries are from those of the reference; all times are in milliseconds, nan if all are missed.

    Attributes
    ----------
    num_boundaries, num_missed : int
        Boundaries of the reference, and those of labels that the hypothesis does not have.
    mean, median, percentile_90 : float
        Of the absolute errors of boundaries that are not missed.
    shift : float
        Mean of hypothesis minus reference; positive if the hypothesis is late.
    within : dict of int to float
        Milliseconds -> percentage of all boundaries at most so far away; missed ones are not.
    """

    num_boundaries: int
    num_missed: int
    mean: float
    median: float
    percentile_90: float
    shift: float
    within: dict[int, float]

    @classmethod
    def of(cls, errors: Float64Array) -> "Deviations":
        """Return those of errors in 100 ns units; nan for a missed boundary."""
        distances = errors[~np.isnan(errors)]
        milliseconds = distances / TICKS_PER_MILLISECOND
        mean, median, percentile_90, shift = np.full(4, np.nan)
        if len(distances):
            size = np.abs(milliseconds)
            mean = size.mean()
            median, percentile_90 = np.percentile(size, (50, 90))
            shift = milliseconds.mean()
        return cls(
            num_boundaries=len(errors),
            num_missed=len(errors) - len(distances),
            mean=float(mean),
            median=float(median),
            percentile_90=float(percentile_90),
            shift=float(shift),
            within={width: 100.0 * int(is_within(distances, width).sum()) / max(len(errors), 1) for width in WITHIN},
        )


@dataclass(frozen=True)
class Detection:
    """How well boundaries are found, by time and whatever their labels are.

    Attributes
    ----------
    num_reference, num_hypothesis : int
        Boundaries.
    num_hits : int
        Pairs of them that are at most 20 ms apart, each in one pair at most.
    """

    num_reference: int
    num_hypothesis: int
    num_hits: int

    @property
    def precision(self) -> float:
        """Share of the hypothesis's boundaries that are hits; nan if there are none."""
        return float(_ratio(self.num_hits, self.num_hypothesis))

    @property
    def recall(self) -> float:
        """Share of the reference's boundaries that are hits; nan if there are none."""
        return float(_ratio(self.num_hits, self.num_reference))

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return float(_f1(self.num_hits, self.num_reference, self.num_hypothesis))

    @property
    def r_value(self) -> float:
        """1 for a perfect segmentation; unlike F1, it falls with boundaries that are added at random."""
        return float(_r_value(self.num_hits, self.num_reference, self.num_hypothesis))


@dataclass(frozen=True)
class BoundaryFigures:
    """What a comparison of boundaries says.

    Attributes
    ----------
    deviations : Deviations
        Of all boundaries.
    detection : Detection
    num_extra : int
        Boundaries of labels that only the hypothesis has.
    intervals : dict of str to (float, float)
        95 % intervals of `mean` (ms), `within_20` (percent), `f1` and `r_value`, by a bootstrap over `unit`; empty for
        a single speaker or utterance.
    unit : str
        "speakers" or "utterances".
    phone_classes : dict of str to Deviations
        Of the boundaries beside labels of each class.
    boundary_classes : dict of (str, str) to Deviations
        Of the boundaries between labels of two classes.
    speakers : dict of str to (Deviations, Detection)
        Of each speaker; empty if none are named.
    """

    deviations: Deviations
    detection: Detection
    num_extra: int
    intervals: dict[str, Interval]
    unit: str
    phone_classes: dict[str, Deviations]
    boundary_classes: dict[tuple[str, str], Deviations]
    speakers: dict[str, tuple[Deviations, Detection]] = field(default_factory=dict)


def boundary_figures(
    comparison: BoundaryComparison,
    speaker_of: Callable[[str], str] | None = None,
    classes: Mapping[str, str | None] | None = None,
    unit: str = "labels",
    seed: int = 0,
) -> BoundaryFigures:
    """Compute the figures of a comparison.

    Parameters
    ----------
    comparison : BoundaryComparison
    speaker_of : callable, optional
        Returns the speaker of an utterance.
    classes : mapping of str to str, optional
        Class of each label; by default ARPAbet's phones are known.
    unit : str
        What labels that are no phones are called, such as "words"; these are never taken for phones.
    seed : int
        Another seed draws other samples for the intervals.

    Returns
    -------
    BoundaryFigures
    """
    errors = comparison.errors
    groups: dict[str, list[int]] = {}
    for number, name in enumerate(comparison.utterances):
        groups.setdefault(speaker_of(name) if speaker_of else name, []).append(number)
    begins = np.searchsorted(comparison.owners, np.arange(comparison.num_utterances + 1))
    parts = {
        name: (
            np.concatenate([errors[begins[number] : begins[number + 1]] for number in numbers]),
            _detection(comparison, numbers),
        )
        for name, numbers in groups.items()
    }
    left, right = _classes_beside(comparison, classes, unit)
    sides = sorted({*left, *right})
    return BoundaryFigures(
        deviations=Deviations.of(errors),
        detection=_detection(comparison, range(comparison.num_utterances)),
        num_extra=comparison.num_extra,
        intervals=_intervals(list(parts.values()), seed),
        unit="speakers" if speaker_of else "utterances",
        phone_classes={side: Deviations.of(errors[(left == side) | (right == side)]) for side in sides},
        boundary_classes={
            (before, after): Deviations.of(errors[between])
            for before in sides
            for after in sides
            if (between := (left == before) & (right == after)).any()
        },
        speakers={name: (Deviations.of(errors), detection) for name, (errors, detection) in sorted(parts.items())}
        if speaker_of
        else {},
    )


def _classes_beside(
    comparison: BoundaryComparison, classes: Mapping[str, str | None] | None, unit: str
) -> tuple[Array, Array]:
    """Return the classes of the labels on the left and on the right of each boundary."""
    names = {*comparison.left, *comparison.right}
    are_classed = classes is not None or (unit != "words" and are_phones({name for name in names if name}))

    def class_of(name: str) -> str:
        if is_pause(name):
            return SILENCE
        if not are_classed:
            return unit
        return (classes.get(name) if classes is not None else phone_class(name)) or OTHERS

    class_names = {name: class_of(name) for name in names}
    left, right = (
        np.array([class_names[name] for name in side], dtype=object) for side in (comparison.left, comparison.right)
    )
    return left, right


def _detection(comparison: BoundaryComparison, numbers: Sequence[int]) -> Detection:
    """Return the detection in some utterances."""
    counts = [comparison.counts[number] for number in numbers]
    return Detection(
        sum(count.reference for count in counts),
        sum(count.hypothesis for count in counts),
        sum(count.hits for count in counts),
    )


def _intervals(parts: Sequence[tuple[Float64Array, Detection]], seed: int) -> dict[str, Interval]:
    """Return the intervals of a bootstrap over parts: their errors and detection."""
    if len(parts) < 2:
        return {}
    amounts = np.array(
        [
            (
                np.nansum(np.abs(errors)) / TICKS_PER_MILLISECOND,
                np.count_nonzero(~np.isnan(errors)),
                np.count_nonzero(is_within(errors, TOLERANCE)),
                len(errors),
                detection.num_hits,
                detection.num_reference,
                detection.num_hypothesis,
            )
            for errors, detection in parts
        ],
        dtype=np.float64,
    )
    size, num_matched, num_within, num_boundaries, *detected = resampled(amounts, seed).T
    return {
        "mean": interval(_ratio(size, num_matched)),
        f"within_{TOLERANCE}": interval(100 * _ratio(num_within, num_boundaries)),
        "f1": interval(_f1(*detected)),
        "r_value": interval(_r_value(*detected)),
    }


def _ratio(part: float | Float64Array, total: float | Float64Array) -> Float64Array:
    """Return part / total; nan where total is 0."""
    total = np.asarray(total, dtype=np.float64)
    quotient = np.full(total.shape, np.nan)
    return np.divide(part, total, out=quotient, where=total > 0)


def _f1(hits: float | Float64Array, reference: float | Float64Array, hypothesis: float | Float64Array) -> Float64Array:
    return _ratio(2 * hits, np.add(reference, hypothesis))


def _r_value(
    hits: float | Float64Array, reference: float | Float64Array, hypothesis: float | Float64Array
) -> Float64Array:
    """Return equations 5 to 7 of Räsänen et al. (2009)."""
    recall = _ratio(hits, reference)
    over_segmentation = _ratio(hypothesis, reference) - 1
    from_ideal = np.hypot(1 - recall, over_segmentation)
    from_line = (-over_segmentation + recall - 1) / np.sqrt(2)
    return 1 - (np.abs(from_ideal) + np.abs(from_line)) / 2
