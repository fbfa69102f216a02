"""Compute word or phone error rates, in the format of HResults.

worked example:
  argonaut score ref.mlf hyp.mlf -k '*-%*-?' --picture confusions.png
prints a table with a line per speaker, draws the confusion matrix and ends with
  WER 5.8% (130 utterances, 773 words)

Compare the phones and words of two alignments, each an MLF, TextGrids, CTM or FA-Bench's records:
  argonaut score gold aligned --boundaries -k '%*-*' --picture boundaries.png
prints mean and median errors, F1 and R-value at 20 ms with intervals, figures by speaker, by class of phone and by
class of boundary, and ends with a line for each tier
  phones: boundaries within 10 ms 92.1%, 20 ms 96.7%, 30 ms 98.6% (60 utterances, 1077 boundaries)
  words: boundaries within 10 ms 89.9%, 20 ms 94.1%, 30 ms 97.0% (60 utterances, 388 boundaries)
The phones of MLFs that have states at level 0 and phones at level 1:
  argonaut score ref.mlf aligned.mlf --boundaries --level 1

Compare an MLF of words with a state alignment, whose labels name state, phone and word:
  argonaut score words.mlf states.mlf --hypothesis-level 2

Compare two systems by the paired bootstrap over utterances:
  argonaut score ref.mlf hyp.mlf --compare other.mlf
prints one more line before the last, such as
  5.8% and 6.5% of other.mlf: difference -0.6% absolute, 95% interval -1.4% to +0.1%, better in 95.2% of samples

Either file can also be in NIST's trn format (lines `words (utterance)`) or CTM format, which is detected from the
content.  With --text, files in the format of Kaldi's text (lines `utterance words`) are accepted as well.
"""

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from decoder.alignment.boundaries.options import BoundaryOptions
from decoder.scoring import report as tables
from decoder.scoring.job import ScoreOptions, score_files
from readers.common.faults import counted
from readers.common.files import require_writable
from readers.config.options import option
from readers.errors import ConfigError
from recipes.cli.command import Command, Console
from recipes.cli.console import show_losses

FOLDS = {"timit39": Path(__file__).parents[1] / "timit" / "data" / "phones.61-48-39.txt"}


def fold_file(name: str) -> Path:
    """Return the phone map that --fold names.  Raises ConfigError if there is none."""
    if name not in FOLDS and not Path(name).exists():
        raise ConfigError(f"{name}: no such file; expected a file or {', '.join(FOLDS)}")
    return FOLDS.get(name, Path(name))


@dataclass(frozen=True, kw_only=True)
class Shown(BoundaryOptions, ScoreOptions):
    """Options of scoring, and what is printed and written."""

    fold: Path | None = option(
        None,
        f"phone map: {', '.join(FOLDS)}, or a file that maps its first column to its last",
        metavar="MAP",
        parse=fold_file,
    )
    speakers: str | None = option(
        None,
        "print a line for each speaker; % in MASK matches the speaker's name",
        flag="-k --speakers",
        metavar="MASK",
    )
    transcriptions: bool = option(False, "print the alignments of utterances with errors", flag="-t --transcriptions")
    boundaries: bool = option(False, "compare the times of label boundaries instead of words")
    per: bool = option(False, "print PER instead of WER in the last line")
    confusions: Path | None = option(None, "file for all errors with their counts")
    picture: Path | None = option(
        None, "file for a drawing of the confusion matrix, or of the errors of boundaries", metavar="PNG"
    )
    json: bool = option(False, "print a JSON object; the tables go to standard error")
    report: Path | None = option(None, "file that lists utterances present in only one of the files")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("transcriptions", "compare", "confusions", "per"):
            is_beside = self.boundaries and getattr(self, name)
            self.require(name, not is_beside, "is given beside {boundaries}; expected it only when scoring words")
        for name in ("tier", "map_hypothesis", "strip_stress", "classes"):
            is_alone = not self.boundaries and getattr(self, name)
            self.require(name, not is_alone, "is given without {boundaries}; expected both")


def run(options: Shown, console: Console) -> int:
    outputs = {name: getattr(options, name) for name in ("confusions", "picture", "report") if getattr(options, name)}
    inputs = (options.reference, options.hypothesis, options.compare, options.fold)
    for name, path in outputs.items():
        require_writable(path, [*inputs, options.map_hypothesis, options.classes])
        options.require(
            name, list(outputs.values()).count(path) == 1, f"is {path}, as another output; expected two files"
        )
    if options.boundaries:
        return compare(options, console)
    speaker_of = tables.speaker_mask(options.speakers) if options.speakers else None
    tell = _teller(options)
    with console.runner() as runner, console.progress(runner=runner) as progress:
        scored = score_files(options, runner=runner, progress=progress, log=tell)
    results = scored.results
    report = scored.report
    if options.transcriptions:
        tell(tables.aligned_errors(results))
    tell(tables.table(results, options.reference, options.hypothesis, speaker_of))
    if options.confusions:
        tables.write_confusions(results, options.confusions)
    if options.picture:
        from recipes.pictures.confusions import draw_confusions

        draw_confusions(results, options.picture)
        tell(f"picture: {options.picture}")
    if options.report:
        report.write(options.report)
    show_losses(report, options.report, console.verbose, options.hypothesis)
    tell(report.summary())
    if scored.other and scored.comparison:
        tell(tables.comparison_line(results, scored.other, scored.comparison, options.compare))
    if options.json:
        print(json.dumps(tables.as_object(results, speaker_of, scored.other, scored.comparison)))
        return report.exit_status
    total = results.total
    name, unit = ("PER", "phone") if options.per else ("WER", "word")
    size = f"{counted(total.num_sentences, 'utterance')}, {counted(total.num_words, unit)}"
    print(f"{name} {total.word_error_rate:.1f}% ({size})")
    return report.exit_status


def compare(options: Shown, console: Console) -> int:
    """Print how far the label boundaries of the two files are apart."""
    from decoder.alignment.boundaries import report as figure_tables
    from decoder.alignment.boundaries.figures import boundary_figures
    from decoder.alignment.boundaries.job import score_boundaries

    for name in ("workers", "scheduler"):
        is_set = bool(getattr(console.machines, name))
        console.machines.require(name, not is_set, "is given beside --boundaries; expected it only when scoring words")
    speaker_of = tables.speaker_mask(options.speakers) if options.speakers else None
    tell = _teller(options)
    classes = options.label_classes
    boundaries = score_boundaries(options)
    comparisons = boundaries.comparisons
    figures = {
        tier: boundary_figures(comparison, speaker_of, classes, tier) for tier, comparison in comparisons.items()
    }
    for tier, part in figures.items():
        tell(figure_tables.table(part, tier))
    if options.picture:
        from recipes.pictures.boundaries import draw_boundaries

        draw_boundaries(comparisons, figures, options.picture)
        tell(f"picture: {options.picture}")
    report = boundaries.report
    if options.report:
        report.write(options.report)
    show_losses(report, options.report, console.verbose, options.hypothesis)
    tell(report.summary())
    if options.json:
        print(json.dumps({tier: figure_tables.as_object(part) for tier, part in figures.items()}))
        return report.exit_status
    for tier, comparison in comparisons.items():
        within = ", ".join(f"{ms} ms {comparison.percent_within(ms):.1f}%" for ms in (10, 20, 30))
        num_boundaries = f"{comparison.total} boundar{'y' if comparison.total == 1 else 'ies'}"
        start = f"{tier}: " if len(comparisons) > 1 else ""
        size = f"{counted(comparison.num_utterances, 'utterance')}, {num_boundaries}"
        print(f"{start}boundaries within {within} ({size})")
    return report.exit_status


def _teller(options: Shown) -> Callable[[str], None]:
    """Return what prints the tables: to standard error beside JSON."""
    return functools.partial(print, file=sys.stderr if options.json else sys.stdout)


COMMAND = Command("score", Shown, run, machines="processes")
