"""Figures about the server, in the text format of Prometheus.

All of them are changed by the event loop's thread alone, so they need no lock.
"""

import os
import time
from bisect import bisect_left
from collections import Counter
from pathlib import Path

ANSWER_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
FACTOR_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class Histogram:
    """Counts of observations up to each bound.

    Parameters
    ----------
    bounds : tuple of float
        In ascending order; observations above the last one are counted, too.
    """

    def __init__(self, bounds: tuple[float, ...]):
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str) -> list[str]:
        """Return the samples of the histogram."""
        samples = []
        total = 0
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            total += count
            samples.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*samples, f"{name}_sum {self.sum:.6f}", f"{name}_count {total}"]


class Metrics:
    """The figures of one server.

    Attributes
    ----------
    streams_total, streams_refused, errors : Counter
        By kind: websocket or file; for errors, what went wrong.
    streams_open : Counter
        By kind.
    audio_seconds, decoding_seconds : float
        Audio that was recognised, and the time that this took.
    answers : Histogram
        Seconds from a message, or a complete upload, to its answer.
    factors : Histogram
        Real-time factor of each stream that has ended: time of decoding by duration of the audio.
    """

    def __init__(self) -> None:
        self.streams_total: Counter[str] = Counter()
        self.streams_refused: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.streams_open: Counter[str] = Counter()
        self.audio_seconds = self.decoding_seconds = 0.0
        self.answers = Histogram(ANSWER_BUCKETS)
        self.factors = Histogram(FACTOR_BUCKETS)
        self.started = time.time()

    def text(self, max_streams: int) -> str:
        """Return all figures in Prometheus's text format."""
        kinds = ("websocket", "file")
        lines = _family("argonaut_streams_open", "gauge", "Streams that are open.", self.streams_open, kinds)
        lines += _family("argonaut_streams_limit", "gauge", "Streams that may be open.", max_streams)
        lines += _family("argonaut_streams_total", "counter", "Streams since the start.", self.streams_total, kinds)
        refused = self.streams_refused
        lines += _family("argonaut_streams_refused_total", "counter", "Streams over the limit.", refused, kinds)
        lines += _family("argonaut_errors_total", "counter", "Streams that ended with an error.", self.errors)
        lines += _family("argonaut_audio_seconds_total", "counter", "Audio recognised.", self.audio_seconds)
        lines += _family("argonaut_decoding_seconds_total", "counter", "Time of decoding.", self.decoding_seconds)
        for name, histogram, text in (
            ("argonaut_answer_seconds", self.answers, "Time from a message or file to its answer."),
            ("argonaut_real_time_factor", self.factors, "Time of decoding by duration, of streams that ended."),
        ):
            lines += [f"# HELP {name} {text}", f"# TYPE {name} histogram", *histogram.lines(name)]
        if (memory := resident_bytes()) is not None:
            lines += _family("process_resident_memory_bytes", "gauge", "Memory in use.", memory)
        lines += _family("process_start_time_seconds", "gauge", "Unix time of the start.", self.started)
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, text: str, value: float | Counter[str], kinds: tuple[str, ...] = ()) -> list[str]:
    """Return the lines of one figure; a Counter has one sample per kind."""
    head = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    if not isinstance(value, Counter):
        return [*head, f"{name} {value:.17g}"]
    return head + [f'{name}{{kind="{label}"}} {value[label]}' for label in dict.fromkeys((*kinds, *sorted(value)))]


def resident_bytes() -> int | None:
    """Return the memory in use in bytes; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
