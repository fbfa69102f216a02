"""The job that compares the boundaries of two alignments: from two MLFs to distances and a report."""

from dataclasses import dataclass

from decoder.alignment.boundaries import BoundaryComparison, compare_boundaries
from decoder.scoring.job import ComparedFiles
from decoder.scoring.words import expanded
from readers.common.report import RunReport
from readers.errors import FormatError
from readers.htk.mlf import read_mlf
from readers.htk.trees import split_triphone


@dataclass(frozen=True)
class BoundaryResult:
    """How far the boundaries of two alignments are apart.

    Attributes
    ----------
    comparison : BoundaryComparison
    report : RunReport
        The utterances without a hypothesis.
    """

    comparison: BoundaryComparison
    report: RunReport


def score_boundaries(options: ComparedFiles) -> BoundaryResult:
    """Compare the boundaries of two alignments.

    Parameters
    ----------
    options : ComparedFiles
        The MLFs; triphones count as their centre phones.

    Returns
    -------
    BoundaryResult

    Raises
    ------
    FormatError, OSError
        For a file that cannot be read, and if there are no boundaries.
    """
    fold = options.phone_map or {}
    level, hypothesis_level = options.levels

    def rename(name: str) -> str:
        phone = split_triphone(name)[1]
        return fold.get(phone, phone) or ""

    hypotheses = read_mlf(options.hypothesis)
    references = expanded(read_mlf(options.reference), hypotheses)
    comparison = compare_boundaries(references, hypotheses, level, {"", *options.ignore}, rename, hypothesis_level)
    if not comparison.total:
        raise FormatError(f"{options.reference}: no boundaries at level {level}; expected labels to compare")
    report = RunReport("utterances", num_done=comparison.num_utterances)
    for name in comparison.missing:
        report.fail(name, "no hypothesis; its boundaries do not count")
    return BoundaryResult(comparison, report)
