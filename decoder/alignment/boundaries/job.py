"""The job that compares the boundaries of two alignments: from two files to comparisons and a report."""

from collections.abc import Mapping
from dataclasses import dataclass

from decoder.alignment.boundaries.files import LABELS, PHONES, WORDS, Utterances, level_of, read_tiers
from decoder.alignment.boundaries.matching import JOINER, BoundaryComparison, Rename, compare_boundaries
from decoder.alignment.boundaries.options import BoundaryOptions
from decoder.scoring.error_counts import SENTENCE_MARKS
from decoder.scoring.words import expanded
from readers.common.faults import counted
from readers.common.report import RunReport
from readers.dictionaries.phone_classes import is_pause
from readers.dictionaries.phones import without_stress
from readers.errors import FormatError
from readers.htk.trees import split_triphone


@dataclass(frozen=True)
class BoundaryResult:
    """How far the boundaries of two alignments are apart.

    Attributes
    ----------
    comparisons : dict of str to BoundaryComparison
        Of each tier: `phones` and `words`, or whatever else they are called; `labels` of files without names of tiers.
    report : RunReport
        The utterances without a hypothesis.
    """

    comparisons: dict[str, BoundaryComparison]
    report: RunReport


def score_boundaries(options: BoundaryOptions) -> BoundaryResult:
    """Compare the boundaries of two alignments.

    Parameters
    ----------
    options : BoundaryOptions
        The files: MLF, CTM, TextGrids or FA-Bench's records, in any combination; triphones count as their centre
        phones.  Without names to ignore, silence is a pause.

    Returns
    -------
    BoundaryResult

    Raises
    ------
    FormatError, OSError
        For a file that cannot be read, for a tier that a file does not have, and if there are no boundaries.

    Examples
    --------
    ``result = score_boundaries(BoundaryOptions(reference="gold", hypothesis="aligned"))``, then
    ``boundary_figures(result.comparisons["phones"]).detection.f1``
    """
    files = (options.reference, options.hypothesis)
    references, hypotheses = (read_tiers(path, files) for path in files)
    comparisons = {}
    for tier in options.tier or _tiers_of_both(references, hypotheses, options):
        reference = _tier(references, tier, options.reference)
        hypothesis = _tier(hypotheses, tier, options.hypothesis)
        level, hypothesis_level = options.levels
        if tier != LABELS and not options.has_level:
            level = level_of(reference, tier, options.reference)
            hypothesis_level = level_of(hypothesis, tier, options.hypothesis)
        comparison = compare_boundaries(
            expanded(reference, hypothesis),
            hypothesis,
            level,
            {"", *options.ignore},
            _rename(options, tier, {}),
            hypothesis_level,
            _rename(options, tier, options.hypothesis_map),
        )
        if comparison.missing and not comparison.utterances:
            raise FormatError(
                f"{options.hypothesis}: none of the {counted(len(comparison.missing), 'utterance')} of "
                f"{options.reference}; expected at least one"
            )
        if not comparison.total:
            where = f"level {level}" if tier == LABELS else f"tier {tier}"
            raise FormatError(f"{options.reference}: no boundaries at {where}; expected labels to compare")
        comparisons[tier] = comparison
    utterances = {name for comparison in comparisons.values() for name in comparison.utterances}
    missing = dict.fromkeys(name for comparison in comparisons.values() for name in comparison.missing)
    report = RunReport("utterances", num_done=len(utterances - missing.keys()))
    for name in missing:
        report.fail(name, "no hypothesis; its boundaries do not count")
    return BoundaryResult(comparisons, report)


def _tiers_of_both(
    references: Mapping[str, Utterances], hypotheses: Mapping[str, Utterances], options: BoundaryOptions
) -> list[str]:
    """Return the tiers that both files have.  Raises FormatError if it is not clear which to compare."""
    common = [tier for tier in (PHONES, WORDS, LABELS) if tier in references and tier in hypotheses]
    common += sorted((references.keys() & hypotheses.keys()) - set(common))
    if common:
        return common
    for path, tiers, other_tiers in (
        (options.reference, references, hypotheses),
        (options.hypothesis, hypotheses, references),
    ):
        if LABELS in other_tiers and len(tiers) == 1:
            return list(tiers)
        if LABELS in other_tiers:
            raise FormatError(f"{path}: tiers {', '.join(tiers)}; expected the option tier with one of them")
    raise FormatError(
        f"{options.hypothesis}: tiers {', '.join(hypotheses)}; expected some of {', '.join(references)}, those of "
        f"{options.reference}"
    )


def _tier(tiers: Mapping[str, Utterances], tier: str, where: object) -> Utterances:
    """Return a tier of a file, in which all labels may be of that tier."""
    if tier not in tiers and LABELS not in tiers:
        raise FormatError(f"{where}: no tier {tier!r}; expected one of {', '.join(tiers)}")
    return tiers[tier] if tier in tiers else tiers[LABELS]


def _rename(options: BoundaryOptions, tier: str, phone_map: Mapping[str, str | None]) -> Rename:
    """Return the function from a label to the name that it counts as, "" for one that does not count.

    Names of a map that are separated by + are joined by JOINER: `dcl d+jh` makes a closure part of what follows.
    """
    fold = {name: new and new.replace("+", JOINER) for name, new in (options.phone_map or {}).items()}
    phone_map = {name: new and new.replace("+", JOINER) for name, new in phone_map.items()}

    def rename(name: str) -> str:
        if tier != WORDS:
            name = split_triphone(name)[1]
            name = without_stress(name) if options.strip_stress else name
            name = phone_map.get(name, name) or ""
            name = JOINER.join(fold.get(part, part) or "" for part in name.split(JOINER))
        is_silence = not options.ignore and (is_pause(name) or name in SENTENCE_MARKS)
        return "" if is_silence else name

    return rename
