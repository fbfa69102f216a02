"""Compares searches over their beams: word errors against time, in one process.

Every setting decodes all utterances, one after another as in practice; then the next search does so with the same
beam, then all with the next beam.  Of several rounds the least CPU time of each utterance counts, since other work on
the machine can only add to it.  Either side is given a fresh copy of the likelihoods just before.

Our search and the peer are compared in the range of good settings, whose word error rate is at most RANGE above the
best that both sides reach, in two ways:

- at equal errors, for every number of errors in that range.  Between settings, errors are interpolated linearly over
  the logarithm of time, after isotonic regression (a few words more or less are chance);
- at equal beams, for every beam with which both are in that range.

The ratio is the lesser of the two medians.  The fastest search of either side counts.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from decoder.scoring.error_counts import score
from readers.common.files import atomic_write

TOLERANCE = 0.2  # % of the words: the one error rate whose times are printed
RANGE = 0.5  # % of the words
OURS = "ours"  # prefix of the names of our searches
ROUNDING = 0.05  # of the cost of a path, since costs of graphs are rounded
FRAME_SECONDS = 0.01
Options = Mapping[str, float]


@dataclass(frozen=True)
class Search:
    """A decoder with several settings.

    prepare: turns log-likelihoods (K, T) float32, Fortran order, into the input of its decoders (not timed); decoders:
    label -> function that returns the words, the cost of the path, and the tokens per frame (None if not counted).
    """

    name: str
    prepare: Callable[[np.ndarray], Any]
    decoders: dict[str, Callable[[Any], tuple[list[str], float, float | None]]]


@dataclass(frozen=True)
class Point:
    """The result of one setting.

    missed: utterances for which another setting of the same side found a cheaper path; seconds: CPU time; tokens: per
    frame.

    Costs of ours and the peer are not compared: where a listed n-gram is less likely than backing off, the peer's
    back-off arcs are cheaper.
    """

    search: str
    label: str
    missed: int
    num_errors: int
    num_words: int
    seconds: float
    num_frames: int
    tokens: float | None

    @property
    def word_error_rate(self) -> float:
        return 100 * self.num_errors / self.num_words

    @property
    def real_time_factor(self) -> float:
        return self.seconds / (self.num_frames * FRAME_SECONDS)


def our_search(name: str, decoder, choices: Iterable[Options]) -> Search:
    """Our decoder with each set of options; like the peer it returns an unfinished path where no token is final."""
    decoder = decoder.with_options(partial=True, widenings=0)

    def prepare(scores):
        return scores.copy(order="F")

    def decode_with(chosen):
        def decode(scores):
            result = chosen.decode(scores)
            return result.text, result.cost, result.tokens_per_frame

        return decode

    return Search(name, prepare, {label_of(o): decode_with(decoder.with_options(**o)) for o in choices})


def lattice_peer_search(name: str, fst, words: list[str], acweight: float, choices: Iterable[Options]) -> Search:
    """kaldi-decoder's LatticeSimpleDecoder, which prunes its lattice of states; it is not determinised."""
    import kaldi_decoder
    import kaldifst

    def prepare(scores):
        return np.ascontiguousarray(acweight * scores.T)

    def decode_with(chosen):
        def decode(likelihoods):
            peer = kaldi_decoder.LatticeSimpleDecoder(fst, chosen)
            peer.decode(kaldi_decoder.DecodableCtc(likelihoods))
            peer.get_raw_lattice()
            reached, lattice = peer.get_best_path()
            if not reached:
                return [], np.inf, None
            _, _, labels, weight = kaldifst.get_linear_symbol_sequence(lattice)
            return [words[label - 1] for label in labels], weight.value1 + weight.value2, None

        return decode

    options = {}
    for choice in choices:
        config = kaldi_decoder.LatticeSimpleDecoderConfig()
        config.beam, config.lattice_beam = choice["beam"], choice["lattice_beam"]
        options[label_of(choice)] = config
    return Search(name, prepare, {label: decode_with(chosen) for label, chosen in options.items()})


def peer_search(name: str, fst, words: list[str], acweight: float, choices: Iterable[Options]) -> Search:
    """kaldi-decoder's FasterDecoder over an HCLG (a ConstFst) with each choice of its options."""
    import kaldi_decoder
    import kaldifst

    def prepare(scores):
        return np.ascontiguousarray(acweight * scores.T)  # the peer looks up label i in column i - 1

    def decode_with(chosen):
        def decode(likelihoods):
            peer = kaldi_decoder.FasterDecoder(fst, chosen)
            peer.decode(kaldi_decoder.DecodableCtc(likelihoods))
            reached, lattice = peer.get_best_path()
            if not reached:
                return [], np.inf, None
            _, _, labels, weight = kaldifst.get_linear_symbol_sequence(lattice)
            return [words[label - 1] for label in labels], weight.value1 + weight.value2, None

        return decode

    options = {label_of(choice): kaldi_decoder.FasterDecoderOptions(**choice) for choice in choices}
    return Search(name, prepare, {label: decode_with(chosen) for label, chosen in options.items()})


def label_of(options: Options) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in options.items())


def sweep(
    searches: Sequence[Search],
    scores: Mapping[str, np.ndarray],
    references: Mapping[str, Sequence[str]],
    rounds: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Point]:
    """One point per setting, search by search.  The first utterance is decoded twice, first to compile everything."""
    by_search = [[(search, label) for label in search.decoders] for search in searches]
    settings = [one for beam in itertools.zip_longest(*by_search) for one in beam if one is not None]
    seconds, costs = np.full((2, len(settings), len(scores)), np.inf)
    tokens = np.zeros(len(settings))
    words: list[dict[str, list[str]]] = [{} for _ in settings]
    names = list(scores)
    passes = [(i, r, names) for r in range(rounds) for i in range(len(settings))]
    passes = [(i, -1, names[:1]) for i in range(len(settings))] + passes
    for done, (i, turn, chosen) in enumerate(passes, start=1):
        search, label = settings[i]
        for number, name in enumerate(chosen):
            likelihoods = search.prepare(scores[name])
            begin = time.process_time()
            found, cost, count = search.decoders[label](likelihoods)
            elapsed = time.process_time() - begin
            if turn < 0:
                continue
            seconds[i, number] = min(seconds[i, number], elapsed)
            if turn == 0:
                words[i][name], costs[i, number] = found, cost
                tokens[i] += np.nan if count is None else count * scores[name].shape[1]
        progress(done, len(passes))
    num_frames = sum(matrix.shape[1] for matrix in scores.values())
    is_ours = np.array([search.name.startswith(OURS) for search, _ in settings])
    missed = np.zeros(len(settings), int)
    for kind in (is_ours, ~is_ours):
        if kind.any():
            missed[kind] = np.sum(costs[kind] > costs[kind].min(axis=0) + ROUNDING, axis=1)
    points = []
    for i, (search, label) in enumerate(settings):
        total = score(references, words[i]).total
        mean = None if np.isnan(tokens[i]) else tokens[i] / num_frames
        points.append(
            Point(
                search.name,
                label,
                int(missed[i]),
                total.num_errors,
                total.num_words,
                seconds[i].sum(),
                num_frames,
                mean,
            )
        )
    return sorted(points, key=lambda point: [search.name for search in searches].index(point.search))


def curve(points: Iterable[Point]) -> tuple[np.ndarray, np.ndarray]:
    """(seconds, errors) of a search, fastest setting first, errors falling (isotonic regression)."""
    ordered = sorted(points, key=lambda point: point.seconds)
    pools: list[list[float]] = []
    for point in ordered:
        pools.append([point.num_errors])
        while len(pools) > 1 and np.mean(pools[-2]) < np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    return np.array([p.seconds for p in ordered]), np.concatenate([[np.mean(pool)] * len(pool) for pool in pools])


def seconds_at(points: Iterable[Point], most_errors: float) -> float | None:
    """The time at which a search makes this many errors; that of its fastest setting if it never makes more."""
    seconds, errors = curve(points)
    reached = np.flatnonzero(errors <= most_errors)
    if not reached.size:
        return None
    first = reached[0]
    if first == 0:
        return float(seconds[0])
    part = (errors[first - 1] - most_errors) / (errors[first - 1] - errors[first])
    return float(np.exp((1 - part) * np.log(seconds[first - 1]) + part * np.log(seconds[first])))


def table(points: Iterable[Point]) -> list[str]:
    """One line per point; the last column is `missed`."""
    lines = [f"{'search':<19} {'settings':<12} {'WER':>6} {'us/frame':>9} {'RTF':>7} {'tokens':>7} {'missed':>6}"]
    for point in points:
        microseconds = point.seconds / point.num_frames * 1e6
        tokens = "" if point.tokens is None else f"{point.tokens:.0f}"
        lines.append(
            f"{point.search:<19} {point.label:<12} {point.word_error_rate:>5.1f}% {microseconds:>9.1f} "
            f"{point.real_time_factor:>7.4f} {tokens:>7} {point.missed:>6}"
        )
    return lines


def compare(title: str, points: Sequence[Point]) -> list[str]:
    """Our searches (their names begin with "ours") against the peers.

    The last line is `RATIO title value` if there are settings that can be compared.
    """
    by_search = {name: [p for p in points if p.search == name] for name in dict.fromkeys(p.search for p in points)}
    num_words, num_frames = points[0].num_words, points[0].num_frames
    least: dict[bool, float] = {}
    for name, mine in by_search.items():
        is_ours = name.startswith(OURS)
        least[is_ours] = min(curve(mine)[1][-1], least.get(is_ours, np.inf))
    reached = max(least.values())
    most = reached + TOLERANCE / 100 * num_words
    lines = [f"{title}: at a WER of {100 * most / num_words:.2f}%"]
    for name, mine in by_search.items():
        seconds = seconds_at(mine, most)
        if seconds is None:
            lines.append(f"  {name}: does not get there")
        else:
            lines.append(f"  {name}: {seconds / num_frames * 1e6:.1f} microseconds a frame")
    limit = reached + RANGE / 100 * num_words
    lines.append(f"{title}: up to a WER of {100 * limit / num_words:.2f}%, times as fast as the peer: median (range)")
    medians = []
    for name, found in (
        ("equal errors", ratios_at_equal_errors(by_search, reached, limit)),
        ("equal beams", ratios_at_equal_beams(points, limit)),
    ):
        if found:
            lines.append(
                f"  {name}: {np.median(found):.2f} ({min(found):.2f} to {max(found):.2f}, {len(found)} settings)"
            )
            medians.append(np.median(found))
    if medians:
        lines.append(f"RATIO {title} {min(medians):.2f}")
    return lines


def ratios_at_equal_errors(by_search: Mapping[str, Sequence[Point]], reached: float, limit: float) -> list[float]:
    """The peer's time over ours for every number of errors from the best that both reach up to the limit."""
    found = []
    for errors in np.arange(reached, limit + 1e-9):
        best = {True: np.inf, False: np.inf}
        for name, mine in by_search.items():
            seconds = seconds_at(mine, errors)
            if seconds is not None:
                best[name.startswith(OURS)] = min(seconds, best[name.startswith(OURS)])
        if max(best.values()) < np.inf:
            found.append(best[False] / best[True])
    return found


def ratios_at_equal_beams(points: Sequence[Point], limit: float) -> list[float]:
    """The peer's time over ours for every beam that both have, where both make at most so many errors."""
    found = []
    for label in dict.fromkeys(point.label for point in points):
        good = [point for point in points if point.label == label and point.num_errors <= limit]
        ours = [point.seconds for point in good if point.search.startswith(OURS)]
        peers = [point.seconds for point in good if not point.search.startswith(OURS)]
        if ours and peers:
            found.append(min(peers) / min(ours))
    return found


def draw(points: Sequence[Point], title: str, path: Path) -> None:
    """Word error rate over real-time factor, with a curve through the best settings of each search."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for name in dict.fromkeys(point.search for point in points):
        mine = sorted((p for p in points if p.search == name), key=lambda point: point.seconds)
        front = [p for i, p in enumerate(mine) if all(p.num_errors < other.num_errors for other in mine[:i])]
        (line,) = axes.plot(
            [p.real_time_factor for p in front],
            [p.word_error_rate for p in front],
            marker="o",
            markersize=4,
            label=name,
        )
        rest = [p for p in mine if p not in front]
        axes.plot(
            [p.real_time_factor for p in rest],
            [p.word_error_rate for p in rest],
            ".",
            color=line.get_color(),
            alpha=0.3,
        )
    best = min(point.word_error_rate for point in points)
    axes.set(xscale="log", xlabel="real-time factor, one thread", ylabel="word error rate, %", title=title)
    axes.set_ylim(max(0, best - 1), best + 12)
    axes.grid(alpha=0.3)
    axes.legend()
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=120)
    plt.close(figure)
