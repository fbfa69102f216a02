"""Compute word or phone error rates, in the format of HResults.

worked example:
  argonaut score ref.mlf hyp.mlf -k '*-%*-?' --picture confusions.png
prints a table with a line per speaker, draws the confusion matrix and ends with
  WER 5.8% (130 utterances, 773 words)

Compare the boundaries of two alignments with states at level 0 and phones at level 1, without those of silence:
  argonaut score ref.mlf aligned.mlf --boundaries --level 1 -z sil
ends with
  boundaries within 10 ms 92.1%, 20 ms 96.7%, 30 ms 98.6% (60 utterances, 1077 boundaries)

Compare an MLF of words with a state alignment, whose labels name state, phone and word:
  argonaut score words.mlf states.mlf --hypothesis-level 2

Compare two systems by the paired bootstrap over utterances:
  argonaut score ref.mlf hyp.mlf --compare other.mlf
prints one more line before the last, such as
  5.8% and 6.5% of other.mlf: difference -0.6% absolute, 95% interval -1.4% to +0.1%, better in 95.2% of samples

Either file can also be in NIST's trn format (lines `words (utterance)`) or CTM format, which is detected from the
content.  With --text, files in the format of Kaldi's text (lines `utterance words`) are accepted as well.
"""

import argparse
import functools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from readers.common.faults import counted
from readers.common.report import RunReport
from readers.errors import ConfigError, FormatError
from recipes.cli.console import progress_display, show_losses
from recipes.cli.machines import add_process_options, check_machines, open_process_runner

FOLDS = {"timit39": Path(__file__).parents[1] / "timit" / "data" / "phones.61-48-39.txt"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reference", help="MLF, trn or CTM with the reference transcripts")
    parser.add_argument("hypothesis", help="MLF, trn or CTM with the recognised words")
    parser.add_argument(
        "-k", "--speakers", metavar="MASK", help="print a line for each speaker; %% in MASK matches the speaker's name"
    )
    parser.add_argument(
        "-t", "--transcriptions", action="store_true", help="print the alignments of utterances with errors"
    )
    parser.add_argument("-z", "--ignore", metavar="WORD", action="append", default=[], help="ignore WORD (repeatable)")
    parser.add_argument(
        "--fold", metavar="MAP", help=f"phone map: {', '.join(FOLDS)}, or a file that maps its first column to its last"
    )
    parser.add_argument("--present", action="store_true", help="ignore utterances without a hypothesis")
    parser.add_argument("--text", action="store_true", help="accept files with lines `utterance words` as well")
    parser.add_argument(
        "--level", type=int, default=0, metavar="N",
        help="MLF level of the words: 0 (default) is the first name of a label, 1 and above the names after it",
    )  # fmt: skip
    parser.add_argument("--reference-level", type=int, metavar="N", help="level of the reference, if it is another")
    parser.add_argument("--hypothesis-level", type=int, metavar="N", help="level of the hypothesis, if it is another")
    parser.add_argument(
        "--penalties",
        choices=("htk", "nist", "kaldi"),
        default="htk",
        help="edit costs of the alignment: HResults' 10/7/7 (default), sclite's 4/3/3, Kaldi's 1/1/1",
    )
    parser.add_argument(
        "--boundaries", action="store_true", help="compare the times of label boundaries instead of words"
    )
    parser.add_argument("--per", action="store_true", help="print PER instead of WER in the last line")
    parser.add_argument(
        "--compare", metavar="FILE", help="words recognised by another system: print an interval of the difference"
    )
    parser.add_argument("--confusions", metavar="FILE", help="file for all errors with their counts")
    parser.add_argument("--picture", metavar="PNG", help="file for a drawing of the confusion matrix")
    parser.add_argument("--json", action="store_true", help="print a JSON object; the tables go to standard error")
    parser.add_argument("--report", metavar="FILE", help="file that lists utterances present in only one of the files")
    add_process_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from decoder.scoring import error_counts as scoring
    from decoder.scoring import report as score_report
    from readers.common.files import require_writable

    for path in (arguments.confusions, arguments.picture, arguments.report):
        if path:
            require_writable(path, [arguments.reference, arguments.hypothesis, arguments.compare])
    check_machines(arguments, "process")
    tell = functools.partial(print, file=sys.stderr if arguments.json else sys.stdout)
    if arguments.boundaries:
        return compare(arguments)
    reference_level, hypothesis_level = levels(arguments)
    files = [path for path in (arguments.reference, arguments.hypothesis, arguments.compare) if path]
    references = read_words(arguments.reference, reference_level, arguments.text, files)
    hypotheses = read_words(arguments.hypothesis, hypothesis_level, arguments.text, files)
    if isinstance(references, MLFWords):
        references = references.applied_to(hypotheses)
    if not references:
        raise FormatError(f"{arguments.reference}: no utterances; expected at least one")
    fold = fold_map(arguments.fold)
    ignore = scoring.SENTENCE_MARKS | frozenset(arguments.ignore)
    if arguments.present:
        there = scoring.match_names(references, hypotheses)
        if not there:
            raise FormatError(
                f"{arguments.hypothesis}: none of the {len(references)} utterances of {arguments.reference}; "
                "expected at least one"
            )
        tell(f"left out: {counted(len(references) - len(there), 'utterance')} not in {arguments.hypothesis}")
        references = {name: words for name, words in references.items() if name in there}
    options = scoring.PENALTIES[arguments.penalties], fold, ignore
    others = read_words(arguments.compare, hypothesis_level, arguments.text, files) if arguments.compare else None
    runner = open_process_runner(arguments)
    try:
        with progress_display("score", runner=runner) as show:
            results = scoring.score(references, hypotheses, *options, runner, show)
            other = None if others is None else scoring.score(references, others, *options, runner, show)
    finally:
        runner.close()

    speaker_of = score_report.speaker_mask(arguments.speakers) if arguments.speakers else None
    if arguments.transcriptions:
        tell(score_report.aligned_errors(results))
    tell(score_report.table(results, arguments.reference, arguments.hypothesis, speaker_of))
    if arguments.confusions:
        score_report.write_confusions(results, arguments.confusions)
    if arguments.picture:
        from recipes.pictures.confusions import draw_confusions

        draw_confusions(results, arguments.picture)
        tell(f"picture: {arguments.picture}")

    report = scoring_report(results)
    if arguments.report:
        report.write(arguments.report)
    show_losses(report, arguments.report, arguments.verbose, arguments.hypothesis)
    tell(report.summary())
    if other is not None:
        tell(comparison(results, other, arguments.compare))
    total = results.total
    if arguments.json:
        print(json.dumps(as_object(results, other, speaker_of)))
        return report.exit_status
    name, unit = ("PER", "phone") if arguments.per else ("WER", "word")
    size = f"{counted(total.num_sentences, 'utterance')}, {counted(total.num_words, unit)}"
    print(f"{name} {total.word_error_rate:.1f}% ({size})")
    return report.exit_status


def as_object(results, other, speaker_of) -> dict[str, object]:
    """Return the counts and rates as an object of JSON; rates are in percent, null without words of a reference."""
    content: dict[str, object] = _rates(results.total)
    if speaker_of is not None:
        speakers: dict[str, Any] = {}
        for utterance, score in results.utterances.items():
            name = speaker_of(utterance)
            speakers[name] = speakers[name] + score if name in speakers else score
        content["speakers"] = {name: _rates(score) for name, score in speakers.items()}
    if other is not None:
        from decoder.scoring.bootstrap import compare_systems

        content["compare"] = _rates(other.total) | {"difference": asdict(compare_systems(results, other))}
    return content


def _rates(score) -> dict[str, object]:
    rates = {"wer": score.word_error_rate, "ser": score.sentence_error_rate}
    counts = {"utterances": score.num_sentences, "words": score.num_words, "hits": score.hits}
    errors = {name: getattr(score, name) for name in ("substitutions", "deletions", "insertions")}
    return {name: round(rate, 4) if math.isfinite(rate) else None for name, rate in rates.items()} | counts | errors


def comparison(results, other, name: str) -> str:
    """Return the line of --compare.  Raises FormatError if the other system recognised none of the utterances."""
    from decoder.scoring.bootstrap import compare_systems

    if len(other.missing) == len(other.utterances):
        raise FormatError(f"{name}: none of the {len(other.utterances)} utterances; expected those of the reference")
    found = compare_systems(results, other)
    lost = f" ({counted(len(other.missing), 'utterance')} without words)" if other.missing else ""
    return (
        f"{results.total.word_error_rate:.1f}% and {other.total.word_error_rate:.1f}% of {name}{lost}: difference "
        f"{found.difference:+.1f}% absolute, 95% interval {found.low:+.1f}% to {found.high:+.1f}%, better in "
        f"{100 * found.better:.1f}% of samples"
    )


def fold_map(name: str | None) -> dict[str, str | None] | None:
    """Return the phone map that --fold names.  Raises ConfigError if there is none."""
    from readers.tables.timit import read_phone_map

    if name and name not in FOLDS and not Path(name).exists():
        raise ConfigError(f"command line: --fold {name}: no such file; expected a file or {', '.join(FOLDS)}")
    return read_phone_map(FOLDS.get(name, name), -1) if name else None


def compare(arguments: argparse.Namespace) -> int:
    """Print how far the label boundaries of the two files are apart."""
    from decoder.alignment.boundaries import compare_boundaries
    from readers.htk.mlf import read_mlf
    from readers.htk.trees import split_triphone
    from readers.tables.timit import read_phone_map

    for name in (
        "speakers",
        "transcriptions",
        "compare",
        "confusions",
        "picture",
        "per",
        "json",
        "workers",
        "scheduler",
    ):
        if getattr(arguments, name):
            raise ConfigError(f"command line: --{name} with --boundaries; expected it only when scoring words")
    reference_level, hypothesis_level = levels(arguments)
    fold = read_phone_map(FOLDS.get(arguments.fold, arguments.fold), -1) if arguments.fold else {}

    def rename(name: str) -> str:
        name = split_triphone(name)[1]
        return fold.get(name, name) or ""

    hypotheses = read_mlf(arguments.hypothesis)
    result = compare_boundaries(
        expanded(read_mlf(arguments.reference), hypotheses),
        hypotheses,
        reference_level,
        {"", *arguments.ignore},
        rename,
        hypothesis_level,
    )
    report = RunReport("utterances", num_done=result.num_utterances)
    for name in result.missing:
        report.fail(name, "no hypothesis; its boundaries do not count")
    if arguments.report:
        report.write(arguments.report)
    if not result.total:
        raise FormatError(
            f"{arguments.reference}: no boundaries at level {reference_level}; expected labels to compare"
        )
    show_losses(report, arguments.report, arguments.verbose, arguments.hypothesis)
    if result.num_unmatched:
        print(
            f"{result.num_unmatched} boundaries of labels without a counterpart in the hypothesis count as outside "
            "every tolerance"
        )
    print(report.summary())
    within = ", ".join(f"{ms} ms {result.percent_within(ms):.1f}%" for ms in (10, 20, 30))
    boundaries = f"{result.total} boundar{'y' if result.total == 1 else 'ies'}"
    print(f"boundaries within {within} ({counted(result.num_utterances, 'utterance')}, {boundaries})")
    return report.exit_status


def levels(arguments: argparse.Namespace) -> tuple[int, int]:
    """Return the levels of the reference and of the hypothesis.  Raises ConfigError for a negative one."""
    found = []
    for name in ("reference_level", "hypothesis_level"):
        option = "level" if getattr(arguments, name) is None else name
        found.append(getattr(arguments, option))
        if found[-1] < 0:
            raise ConfigError(f"command line: --{option.replace('_', '-')} {found[-1]}; expected 0 or more")
    return found[0], found[1]


def scoring_report(results) -> RunReport:
    """Report the utterances that only one of the two files contains, and how they were counted."""
    report = RunReport("utterances", num_done=len(results.utterances) - len(results.missing))
    for name in results.missing:
        report.fail(name, "no hypothesis; its words count as deletions")
    for name in results.unexpected:
        report.skip(name, "no reference; its words do not count")
    return report


def expanded(labels, others: Mapping[str, Any]) -> Mapping[str, list]:
    """Return the labels of an MLF, those of entries with wildcards, `*/one.*.lab`, under the names that they match."""
    from decoder.scoring.error_counts import match_names

    if not labels.patterns:
        return labels
    unmatched = others.keys() - set(match_names(labels, others).values())
    entries = {name: labels.lookup(f"/{name}.lab") for name in others if name in unmatched}
    return {**labels, **{name: entry for name, entry in entries.items() if entry is not None}}


class MLFWords(Mapping):
    """The words of each utterance of an MLF, at one level of its labels."""

    def __init__(self, labels: Mapping[str, list], level: int):
        self._labels, self._level = labels, level

    def __getitem__(self, name: str) -> list[str]:
        labels = self._labels[name]
        if not self._level:
            return [label.name for label in labels]
        return [label.aux[self._level - 1][0] for label in labels if len(label.aux) >= self._level]

    def applied_to(self, others: Mapping[str, list[str]]) -> "MLFWords":
        """Return these words, those of entries with wildcards under the names that they match."""
        return MLFWords(expanded(self._labels, others), self._level)

    def __contains__(self, name: object) -> bool:
        return name in self._labels

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)


def read_words(
    path: str | Path, level: int = 0, named_lines: bool = False, beside: Iterable[str | Path] = ()
) -> Mapping[str, list[str]]:
    """Read the words of each utterance from an MLF, trn or CTM file; the content decides which.

    Parameters
    ----------
    path : path
        MLF, trn or CTM file.
    level : int
        Level of an MLF: 0 is the label itself, 1 and above the columns after it.
    named_lines : bool
        Whether to read any other file as lines `utterance words`.
    beside : iterable of path
        Files with which it is compared; the channels of CTM files are those that any of them has.

    Returns
    -------
    mapping of str to list of str
        Words of each utterance; those of an MLF are taken from its labels when they are asked for.

    Raises
    ------
    ConfigError
        If level is negative.
    FormatError
        If no label has this level, or the file is in none of the formats.
    """
    from readers.common.text import read_lines
    from readers.htk.mlf import HEADER, read_mlf
    from readers.htk.storage.label_fields import is_mlf
    from readers.results.timed_words import is_ctm, read_ctm
    from readers.results.trn import is_trn, read_named_lines, read_trn

    if level < 0:
        raise ConfigError(f"command line: --level {level}; expected 0 or more")
    if level == 0 and not is_mlf(path) and (lines := read_lines(path))[:1] != [HEADER]:
        if is_trn(lines):
            return read_trn(path)
        if is_ctm(lines):
            others = [other for other in beside if not is_mlf(other) and is_ctm(read_lines(other))]
            return {name: [word.text for word in words] for name, words in read_ctm(path, others).items()}
        if named_lines:
            return read_named_lines(path)
        first = lines[0].strip() if lines else ""
        if first != HEADER:
            raise FormatError(
                f"{path}:1: first line {first[:40]!r}; expected {HEADER}, or all lines as in trn or CTM; "
                "for lines `utterance words` use --text"
            )
    labels = read_mlf(path)
    words = MLFWords(labels, level) if labels.is_large or labels.patterns else dict(MLFWords(labels, level))
    if level and words and not any(words.values()):
        raise FormatError(f"{path}: no label has a level {level}; expected --level with words, such as 0")
    return words
