"""Scoring results for reading: HResults' table, aligned errors, a list of the confusions, and an object of JSON."""

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from decoder.scoring.error_counts import Score, ScoringResult
from readers.common.faults import counted
from readers.common.files import write_lines
from readers.common.report import Figures
from readers.common.text import read_lines
from readers.errors import ConfigError

if TYPE_CHECKING:
    from decoder.scoring.bootstrap import Comparison

WIDTH = 67
NONE = "***"  # in place of the missing word of an insertion or a deletion


def table(
    results: ScoringResult, reference: object, hypothesis: object, speaker_of: Callable[[str], str] | None = None
) -> str:
    """HResults' overall results (HTK Book, HResults), preceded by a line per speaker if `speaker_of` is given."""
    total = results.total
    num_right = total.num_sentences - total.num_wrong_sentences
    lines = [
        " Argonaut Results Analysis ".center(WIDTH, "="),
        f"  Ref : {reference}",
        f"  Rec : {hypothesis}",
    ]
    if speaker_of is not None:
        lines += [" Speaker Results ".center(WIDTH, "-"), *_speaker_lines(results, speaker_of)]
    lines += [
        " Overall Results ".center(WIDTH, "-"),
        f"SENT: %Correct={100 - total.sentence_error_rate:.2f} "
        f"[H={num_right}, S={total.num_wrong_sentences}, N={total.num_sentences}]",
        f"WORD: %Corr={total.correct:.2f}, Acc={total.accuracy:.2f} "
        f"[H={total.hits}, D={total.deletions}, S={total.substitutions}, I={total.insertions}, N={total.num_words}]",
        "=" * WIDTH,
    ]
    return "\n".join(lines)


def _speaker_lines(results: ScoringResult, speaker_of: Callable[[str], str]) -> list[str]:
    speakers = results.grouped(speaker_of)
    width = max(map(len, speakers), default=0)
    return [
        f"{speaker:{width}} : %Corr={score.correct:6.2f}, Acc={score.accuracy:6.2f} "
        f"[H={score.hits}, D={score.deletions}, S={score.substitutions}, I={score.insertions}, N={score.num_words}] "
        f"WER {score.word_error_rate:.1f}% SER {score.sentence_error_rate:.1f}%"
        for speaker, score in sorted(speakers.items())
    ]


def aligned_errors(results: ScoringResult) -> str:
    """Each wrong utterance as LAB above REC, words aligned (HResults -t)."""
    blocks = []
    for name, pairs in results.alignments.items():
        if not results.utterances[name].num_errors:
            continue
        columns = [(word or "", guess or "") for word, guess in pairs]
        widths = [max(len(word), len(guess), 1) for word, guess in columns]
        lab = " ".join(word.ljust(width) for (word, _), width in zip(columns, widths))
        rec = " ".join(guess.ljust(width) for (_, guess), width in zip(columns, widths))
        blocks.append(f"Aligned transcription: {name}\n LAB: {lab.rstrip()}\n REC: {rec.rstrip()}")
    return "\n".join(blocks)


def speaker_mask(mask: str) -> Callable[[str], str]:
    """A function from utterance name to speaker, from HResults' -k mask.

    In the mask `*` stands for any characters, `?` for one, and each `%` for one character of the speaker's name; `%*`
    (not in HTK) for a name of any length.  Raises ConfigError when the mask has no `%`; the function raises it for a
    name that the mask does not fit.
    """
    if "%" not in mask:
        raise ConfigError(f"speaker mask '{mask}' has no '%'; expected one for each character of the speaker's name")
    pieces = {"%*": "(.+?)", "%": "(.)", "*": ".*?", "?": "."}
    pattern = re.compile("".join(pieces.get(piece) or re.escape(piece) for piece in re.findall(r"%\*|.", mask)))

    def speaker_of(name: str) -> str:
        match = pattern.fullmatch(name)
        if match is None:
            raise ConfigError(f"utterance '{name}' does not fit the speaker mask '{mask}'")
        return "".join(match.groups())

    return speaker_of


def write_confusions(results: ScoringResult, path: str | Path) -> None:
    """Write every error as `count<tab>reference<tab>hypothesis`, most frequent first, with *** for a missing word."""
    errors = Counter({pair: times for pair, times in results.confusions().items() if pair[0] != pair[1]})
    ranked = sorted(errors.items(), key=lambda item: (-item[1], str(item[0])))
    write_lines(path, (f"{times}\t{word or NONE}\t{guess or NONE}" for (word, guess), times in ranked))


def as_object(
    results: ScoringResult,
    speaker_of: Callable[[str], str] | None = None,
    other: ScoringResult | None = None,
    comparison: "Comparison | None" = None,
) -> dict[str, object]:
    """The counts and rates as an object of JSON; rates are in percent, null without words of a reference."""
    content: dict[str, object] = _rates(results.total)
    if speaker_of is not None:
        content["speakers"] = {name: _rates(score) for name, score in results.grouped(speaker_of).items()}
    if other is not None and comparison is not None:
        content["compare"] = _rates(other.total) | {"difference": asdict(comparison)}
    return content


def _rates(score: Score) -> dict[str, object]:
    rates = {"wer": score.word_error_rate, "ser": score.sentence_error_rate}
    counts = {"utterances": score.num_sentences, "words": score.num_words, "hits": score.hits}
    errors = {name: getattr(score, name) for name in ("substitutions", "deletions", "insertions")}
    return {name: round(rate, 4) if math.isfinite(rate) else None for name, rate in rates.items()} | counts | errors


def comparison_line(results: ScoringResult, other: ScoringResult, comparison: "Comparison", name: object) -> str:
    """A line about the difference of two systems; name: of the other one."""
    lost = f" ({counted(len(other.missing), 'utterance')} without words)" if other.missing else ""
    return (
        f"{results.total.word_error_rate:.1f}% and {other.total.word_error_rate:.1f}% of {name}{lost}: difference "
        f"{comparison.difference:+.1f}% absolute, 95% interval {comparison.low:+.1f}% to {comparison.high:+.1f}%, "
        f"better in {100 * comparison.better:.1f}% of samples"
    )


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    rows = [line.strip().split("\t") for line in read_lines(path) if line.strip()]
    kinds: Counter[str] = Counter()
    for count, word, guess in rows:
        kinds["insertions" if word == NONE else "deletions" if guess == NONE else "substitutions"] += int(count)
    figures: Figures = [("pairs", len(rows))]
    return figures + [(kind, kinds[kind]) for kind in ("substitutions", "deletions", "insertions")]
