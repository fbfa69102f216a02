"""The job that counts the errors of recognised words: from files of transcripts to error rates and a report."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from decoder.scoring.error_counts import PENALTIES, SENTENCE_MARKS, ScoringResult, match_names, score
from decoder.scoring.words import MLFWords, read_words
from readers.common.faults import counted
from readers.common.jobs.runner import Runner
from readers.common.report import Log, Progress, RunReport, silent
from readers.config.options import Options, option
from readers.errors import FormatError
from readers.tables.timit import read_phone_map

if TYPE_CHECKING:
    from decoder.scoring.bootstrap import Comparison


@dataclass(frozen=True, kw_only=True)
class ComparedFiles(Options):
    """A reference and a hypothesis, and what counts in them."""

    reference: Path = option(
        help="MLF, trn or CTM with the reference transcripts; boundaries: an alignment as MLF, CTM, TextGrid, folder "
        "of TextGrids or records of FA-Bench",
        flag="reference",
        metavar="reference",
    )
    hypothesis: Path = option(
        help="MLF, trn or CTM with the recognised words; boundaries: an alignment in any of these forms",
        flag="hypothesis",
        metavar="hypothesis",
    )
    ignore: tuple[str, ...] = option((), "word to ignore (repeatable)", flag="-z --ignore", metavar="WORD")
    fold: Path | None = option(None, "phone map: a file that maps its first column to its last", metavar="MAP")
    level: int = option(
        0, "MLF level of the words: 0 (default) is the first name of a label, 1 and above the names after it", least=0
    )
    reference_level: int | None = option(None, "level of the reference, if it is another", least=0)
    hypothesis_level: int | None = option(None, "level of the hypothesis, if it is another", least=0)

    @property
    def levels(self) -> tuple[int, int]:
        """The levels of the reference and of the hypothesis."""
        given_levels = (self.reference_level, self.hypothesis_level)
        reference, hypothesis = (self.level if level is None else level for level in given_levels)
        return reference, hypothesis

    @property
    def phone_map(self) -> dict[str, str | None] | None:
        """What each phone counts as; reads `fold`."""
        return read_phone_map(self.fold, -1) if self.fold else None


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(ComparedFiles):
    """Options of scoring."""

    present: bool = option(False, "ignore utterances without a hypothesis")
    text: bool = option(False, "accept files with lines `utterance words` as well")
    penalties: Literal["htk", "nist", "kaldi"] = option(
        "htk", "edit costs of the alignment: HResults' 10/7/7 (default), sclite's 4/3/3, Kaldi's 1/1/1"
    )
    compare: Path | None = option(
        None, "words recognised by another system: print an interval of the difference", metavar="FILE"
    )


@dataclass(frozen=True)
class ScoreResult:
    """The errors of a hypothesis, and how it compares with another.

    Attributes
    ----------
    results : ScoringResult
    report : RunReport
        Utterances that only one of the files has, and how they count.
    other : ScoringResult or None
        Of `compare`.
    comparison : Comparison or None
        The difference from `compare`.
    """

    results: ScoringResult
    report: RunReport
    other: ScoringResult | None = None
    comparison: "Comparison | None" = None


def score_files(
    options: ScoreOptions, *, runner: Runner | None = None, progress: Progress = silent, log: Log = silent
) -> ScoreResult:
    """Count the errors of recognised words.

    Parameters
    ----------
    options : ScoreOptions
    runner : Runner, optional
        Where the words are aligned, by default here.
    progress : callable
        Called as ``progress(utterances done, utterances)``.
    log : callable
        Receives a line about utterances that are left out.

    Returns
    -------
    ScoreResult

    Raises
    ------
    FormatError, OSError
        For a file that cannot be read, and if there is nothing to compare.

    Examples
    --------
    ``score_files(ScoreOptions(reference="ref.mlf", hypothesis="hyp.mlf")).results.total.word_error_rate``
    """
    reference_level, hypothesis_level = options.levels
    files = [path for path in (options.reference, options.hypothesis, options.compare) if path]
    references = read_words(options.reference, reference_level, options.text, files)
    hypotheses = read_words(options.hypothesis, hypothesis_level, options.text, files)
    if isinstance(references, MLFWords):
        references = references.applied_to(hypotheses)
    if not references:
        raise FormatError(f"{options.reference}: no utterances; expected at least one")
    fold = options.phone_map
    ignore = SENTENCE_MARKS | frozenset(options.ignore)
    if options.present:
        references = _present(references, hypotheses, options, log)

    def errors_of(words: Mapping[str, list[str]]) -> ScoringResult:
        return score(references, words, PENALTIES[options.penalties], fold, ignore, runner, progress)

    other_words = read_words(options.compare, hypothesis_level, options.text, files) if options.compare else None
    results = errors_of(hypotheses)
    if other_words is None:
        return ScoreResult(results, _report(results))
    other_results = errors_of(other_words)
    if len(other_results.missing) == len(references):
        raise FormatError(
            f"{options.compare}: none of the {len(references)} utterances; expected those of the reference"
        )
    from decoder.scoring.bootstrap import compare_systems  # imports numpy

    return ScoreResult(results, _report(results), other_results, compare_systems(results, other_results))


def _present(
    references: Mapping[str, list[str]], hypotheses: Mapping[str, list[str]], options: ScoreOptions, log: Log
) -> dict[str, list[str]]:
    """The references of the utterances that have a hypothesis."""
    matched = match_names(references, hypotheses)
    if not matched:
        raise FormatError(
            f"{options.hypothesis}: none of the {len(references)} utterances of {options.reference}; expected at least "
            "one"
        )
    log(f"left out: {counted(len(references) - len(matched), 'utterance')} not in {options.hypothesis}")
    return {name: words for name, words in references.items() if name in matched}


def _report(results: ScoringResult) -> RunReport:
    """Report the utterances that only one of the two files contains, and how they were counted."""
    report = RunReport("utterances", num_done=len(results.utterances) - len(results.missing))
    for name in results.missing:
        report.fail(name, "no hypothesis; its words count as deletions")
    for name in results.unexpected:
        report.skip(name, "no reference; its words do not count")
    return report
