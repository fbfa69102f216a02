"""The job `average`: from alignments of the same utterances to one with the means of their phone boundaries."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from decoder.alignment.averaging import average_alignments
from readers.common.faults import one_line
from readers.common.files import require_writable
from readers.common.names import names_for_any_path
from readers.common.report import Progress, RunReport, silent
from readers.config.options import Options, option
from readers.errors import ArgonautError
from readers.htk.mlf import Label, read_mlf, write_mlf

TICKS_PER_MILLISECOND = 10_000


@dataclass(frozen=True, kw_only=True)
class AverageOptions(Options):
    """Options of the mean of alignments."""

    alignments: tuple[Path, ...] = option(
        help="alignments of states with phones beside them; two or more", flag="MLF", metavar="MLF"
    )
    output: Path = option(help="alignment to write", flag="-o --output", metavar="MLF")
    silence: tuple[str, ...] = option(
        ("sil", "sp"), "phones that may be in other places, separated by commas", separator=",", metavar="NAMES"
    )
    period: float = option(
        10.0, "milliseconds from frame to frame", unit="milliseconds", least=1e-4, below=1e6, metavar="MS"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("alignments", len(self.alignments) > 1, "is one alignment; expected at least two")

    @property
    def report_path(self) -> Path:
        """Where the report is written."""
        return Path(f"{self.output}.report")


@dataclass(frozen=True)
class AverageResult:
    """What was averaged.

    Attributes
    ----------
    report : RunReport
        The utterances that were averaged, and those that could not be, with the reasons.
    num_complete : int
        Utterances in which all alignments have the same phones.
    """

    report: RunReport
    num_complete: int


def average(options: AverageOptions, *, progress: Progress = silent) -> AverageResult:
    """Write the first of several alignments with the means of their phone boundaries.

    Parameters
    ----------
    options : AverageOptions
    progress : callable
        Called as ``progress(utterances done, utterances)``.

    Returns
    -------
    AverageResult

    Raises
    ------
    ArgonautError, OSError
        For a file that cannot be read or written; the report lists faults of single utterances.
    """
    for path in (options.output, options.report_path):
        require_writable(path, options.alignments)
    first, *later_alignments = (read_mlf(path) for path in options.alignments)
    period = round(options.period * TICKS_PER_MILLISECOND)
    report = RunReport("utterances")
    used = list[int]()
    short = names_for_any_path(list(first))

    def entries() -> Iterator[tuple[str, list[Label]]]:
        for number, name in enumerate(first, start=1):
            other_labels = [labels for alignment in later_alignments if (labels := alignment.lookup(f"{name}.lab"))]
            try:
                mean = average_alignments([first[name], *other_labels], options.silence, period, first.where(name))
            except ArgonautError as fault:
                report.fail(name, one_line(fault))
                continue
            used.append(mean.num_used)
            report.done()
            yield f"*/{short[name]}.lab", mean.labels
            progress(number, len(first))

    write_mlf(options.output, entries())
    report.write(options.report_path)
    return AverageResult(report, used.count(len(options.alignments)))
