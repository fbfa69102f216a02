"""Tiers of annotations, as Praat's TextGrids and ELAN's files have them."""

from typing import NamedTuple


class Interval(NamedTuple):
    """An annotation: an interval of a tier, or a point of a tier of points, where start and end are equal.

    Attributes
    ----------
    start, end : float
        Seconds.
    text : str
    line : int
        Line of the file, counted from 1.
    divides : tuple of float, or None
        Of ELAN: start and end (seconds) of what is divided into equal parts, of which this is one, because the file
        gives it no times of its own; None if it does, or if an annotation with times has only this one.
    """

    start: float
    end: float
    text: str
    line: int = 0
    divides: tuple[float, float] | None = None


class Tier(NamedTuple):
    """A tier.

    Attributes
    ----------
    name : str
    has_points : bool
        Whether it contains points instead of intervals.
    intervals : tuple of Interval
        In the order of time, including those without text.
    parent : str
        Of ELAN: the tier on which it depends; "" if it is independent.
    speaker : str
        Of ELAN: the participant; "" without one.
    type : str
        Of ELAN: name of the linguistic type.
    """

    name: str
    has_points: bool
    intervals: tuple[Interval, ...]
    parent: str = ""
    speaker: str = ""
    type: str = ""
