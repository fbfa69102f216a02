"""The job that makes lattices of training utterances: from feature files and transcripts to an archive."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from decoder.search.batch import in_order
from decoder.sequence_training.lattices.maker import MadeLattice
from decoder.sequence_training.lattices.options import DenominatorOptions
from decoder.sequence_training.lattices.worker import Worker
from readers.common.environment import one_blas_thread
from readers.common.faults import is_shortage, one_line
from readers.common.files import require_writable, write_lines
from readers.common.jobs.runner import Runner
from readers.common.jobs.worker import kept
from readers.common.names import apart_by_extension
from readers.common.report import Log, Progress, RunReport, silent
from readers.config.options import Options
from readers.errors import ArgonautError, FormatError
from readers.htk.scp import ScpEntry
from readers.sources.lattices.lattice_archive import LatticeArchive, LatticeArchiveWriter
from readers.sources.lattices.lattice_contents import contents_of

ARCHIVE, CONTENTS, REPORT = "lattices.arec", "lattices.toc", "report"
FRAMES_PER_SECOND, BYTES_PER_SECOND = 100, 16_000  # of 40 features every 10 ms
SECONDS = 5.0  # of an utterance whose length is unknown


@dataclass(frozen=True)
class DenominatorResult:
    """Lattices of training utterances.

    Attributes
    ----------
    report : RunReport
        The utterances that have a lattice, and those that have none, with the reasons.
    totals : dict of str to int
        The figures of `MadeLattice`, summed; empty if no utterance has a lattice.
    """

    report: RunReport
    totals: dict[str, int]


def make_lattices(
    options: DenominatorOptions,
    *,
    runner: Runner | None = None,
    threads: int | None = None,
    progress: Progress = silent,
    log: Log = silent,
    note: Log = silent,
) -> DenominatorResult:
    """Make lattices for sequence training; write them to `options.out`, going on with those of a run that was stopped.

    Parameters
    ----------
    options : DenominatorOptions
    runner : Runner, optional
        Of a cluster, whose workers make the lattices; by default threads do.
    threads : int, optional
        One per core by default.
    progress : callable
        Called as ``progress(utterances done, utterances)``.
    log : callable
        Receives a line if utterances are done already.
    note : callable
        Receives texts about the files and the search.

    Returns
    -------
    DenominatorResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share; the report lists faults of single utterances.
    KeyboardInterrupt
        With the number of utterances that are done, and kept.
    """
    for name in (ARCHIVE, CONTENTS, REPORT):
        require_writable(options.out / name, options.inputs.values())
    absolute = _absolute(options)
    worker = Worker(absolute, note)
    report = RunReport("utterances")
    settings = _fingerprint(absolute)
    search = worker.maker.decoder.options
    if search.lattice_beam is not None and search.beam < search.lattice_beam:
        note(f"beam {search.beam:g} is below lattice beam {search.lattice_beam:g} and limits the lattices")
    entries = list(_unique(worker.source.entries(), options.features, report))
    total = len(entries) + len(report.lost)
    if not report.lost and _is_made(options.out, settings, [entry.key for entry in entries]):
        log(f"{total} of {total} utterances are done")
        report.done(total)
        return DenominatorResult(report, _finish(options.out))
    table = worker.maker.table
    described = (table.phones, table.silence.tolist(), worker.source.num_outputs, settings)
    writer = LatticeArchiveWriter(options.out / ARCHIVE, *described, table.senones)
    try:
        with writer:
            done = set(writer.names)
            if done:
                log(f"{len(done)} of {total} utterances are done; going on")
            report.done(sum(entry.key in done for entry in entries))
            waiting = [entry for entry in entries if entry.key not in done]
            for entry, result in _results(worker, absolute, waiting, threads, runner):
                if isinstance(result, str):
                    report.fail(entry.key, result)
                else:
                    _keep(writer, result, report)
                progress(report.num_done + len(report.lost), total)
            if not writer.names:
                raise _NothingDone
    except _NothingDone:
        writer.abandon()
    except KeyboardInterrupt:
        text = f"{report.num_done} of {total} utterances are done, and kept in {writer.partial}; run it again to go on"
        raise KeyboardInterrupt(text) from None
    report.write(options.out / REPORT)
    return DenominatorResult(report, _finish(options.out) if report.num_done else {})


class _NothingDone(Exception):
    """Raised if every utterance was lost, so that an existing archive is kept."""


def _absolute(options: Any) -> Any:
    """Return options with absolute paths, for workers of a cluster."""
    values = {each.name: getattr(options, each.name) for each in fields(options)}
    changed = {name: value.absolute() for name, value in values.items() if isinstance(value, Path)}
    changed |= {name: _absolute(value) for name, value in values.items() if isinstance(value, Options)}
    return replace(options, **changed)


def _fingerprint(options: DenominatorOptions) -> dict[str, Any]:
    """Return JSON values that are equal if the lattices are."""
    settings: dict[str, Any] = {}
    for declared, value in options.changed():
        if declared.name != "out":
            settings[declared.name] = repr(value)  # JSON has no infinity
    for name, path in options.inputs.items():
        if path is not None:
            with path.open("rb") as file:
                settings[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return settings


def _is_made(out: Path, settings: dict[str, Any], keys: Sequence[str]) -> bool:
    """Whether the archive has all lattices of a list with these settings already."""
    try:
        archive = LatticeArchive(out / ARCHIVE)
    except (FormatError, OSError):
        return False
    return archive.settings == settings and archive.names == list(keys)


def _unique(entries: Sequence[ScpEntry], where: Path, report: RunReport) -> Iterator[ScpEntry]:
    """Yield the entries with a new name; others go to the report.  Raises FormatError if there are none."""
    if not entries:
        raise FormatError(f"{where}: no entries; expected a feature file on each line")
    first_entries: dict[str, ScpEntry] = {}
    for entry in entries:
        earlier = first_entries.setdefault(entry.key, entry)
        if earlier is entry:
            yield entry
        else:
            fault = f"{entry.where}: same name as at {earlier.where}; expected unique names"
            report.fail(entry.key, fault + apart_by_extension(entry, earlier))


def _results(
    worker: Worker, options: DenominatorOptions, entries: Sequence[ScpEntry], threads: int | None, runner: Runner | None
) -> Iterable[tuple[ScpEntry, MadeLattice | str]]:
    """Yield (entry, lattice or the reason why there is none) in the order of the entries."""
    with one_blas_thread:
        if runner is None:
            results: Iterable[tuple[ScpEntry, MadeLattice | str | Exception]] = in_order(worker, entries, threads)
        else:
            results = runner.each(make_shard, entries, options, seconds=_seconds_of)
        for entry, result in results:
            yield entry, one_line(result) if isinstance(result, Exception) else result


def make_shard(entries: Sequence[ScpEntry], options: DenominatorOptions) -> list[MadeLattice | str]:
    """Make lattices in a worker of a cluster; return that of each entry, or the reason why there is none."""
    worker = kept(Worker, options)
    results = list[MadeLattice | str]()
    with one_blas_thread:
        for entry in entries:
            try:
                results.append(worker(entry))
            except (ArgonautError, OSError) as fault:
                if isinstance(fault, OSError) and is_shortage(fault):
                    raise
                results.append(one_line(fault))
    return results


def _seconds_of(entry: ScpEntry) -> float:
    """Return about how long an utterance is, from the range in the list or the size of its file."""
    if entry.num_frames is not None:
        return entry.num_frames / FRAMES_PER_SECOND
    try:
        return Path(entry.path).stat().st_size / BYTES_PER_SECOND
    except OSError:
        return SECONDS


def _keep(writer: LatticeArchiveWriter, result: MadeLattice, report: RunReport) -> None:
    """Add the lattice of an utterance to the archive, and count it as done."""
    name = result.supervision.name
    try:
        writer.add(result.supervision, result.figures)
    except FormatError as fault:  # such as infinite scores
        report.fail(name, one_line(fault))
        return
    if result.widenings:
        report.mark(name, "widened", f"decoded with a beam {2**result.widenings} times as wide")
    else:
        report.done()


def _finish(out: Path) -> dict[str, int]:
    """Write the table of contents; return the sums of the figures of the lattices."""
    archive = LatticeArchive(out / ARCHIVE)
    write_lines(out / CONTENTS, contents_of(archive, ARCHIVE))
    totals: dict[str, int] = {}
    for name in archive.names:
        for key, value in archive.figures(name).items():
            totals[key] = totals.get(key, 0) + int(value)
    return totals
