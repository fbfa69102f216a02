"""The jobs `train_ivectors` and `extract_ivectors`: an extractor of i-vectors, and files of i-vectors."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from features.ivectors.extraction import Extracted, check_directories, extract_units, target_path
from features.ivectors.model import IvectorModel
from features.ivectors.options import IvectorExtractOptions, IvectorTrainOptions
from features.ivectors.shards import Unit, read_units
from features.ivectors.training import IvectorTraining
from readers.common.faults import one_line
from readers.common.files import held_alone, require_writable, write_lines
from readers.common.jobs.runner import Runner, thread_runner
from readers.common.report import Log, Progress, RunReport, silent
from readers.config.feature_record import FeatureRecord
from readers.config.side_files import SideFiles, side_file
from readers.errors import ConfigError
from readers.htk.scp import ScpEntry, read_scp, write_scp

RECORD = "made-with"  # of a directory of i-vectors
GUESSED_SECONDS = 10.0  # of an utterance whose header was not read yet


@dataclass(frozen=True)
class IvectorTrainResult:
    """What a training of an extractor made.

    Attributes
    ----------
    report : RunReport
        The utterances that were used, and those that could not be, with the reasons.
    num_gaussians : int
    log_likelihood_per_frame : float
        In the last pass.
    """

    report: RunReport
    num_gaussians: int = 0
    log_likelihood_per_frame: float = 0.0


def train_ivectors(
    options: IvectorTrainOptions,
    *,
    runner: Runner | None = None,
    progress: Progress = silent,
    log: Log = silent,
    note: Log = silent,
) -> IvectorTrainResult:
    """Train an extractor of i-vectors; write it to `options.output`.

    A run that was stopped goes on from there.

    Parameters
    ----------
    options : IvectorTrainOptions
    runner : Runner, optional
        One thread by default.
    progress : callable
        Called as ``progress(utterances done, utterances)`` in each pass.
    log : callable
        Receives a line for each pass.
    note : callable
        Receives a remark on features of which it is not known how they were computed.

    Returns
    -------
    IvectorTrainResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share; the report lists faults of single utterances.
    """
    output = options.output
    settings = options.training
    report = RunReport("utterances")
    state = Path(f"{output}.state")
    for path in (output, state, options.report_path):
        require_writable(path, [options.features, options.speakers])
    units = read_units(options, report)
    with held_alone(f"{output}.lock", output, "a model of its own"):
        training = IvectorTraining(units, settings, runner or thread_runner(1), report)
        if not training.num_units:
            report.write(options.report_path)
            return IvectorTrainResult(report)
        if training.frames < settings.gaussians:
            raise ConfigError(
                f"{options.features}: {training.frames} frames; expected at least {settings.gaussians}, one for each "
                "Gaussian, and better a hundred"
            )

        record = _record_of(training, options.features, note)
        trained = training.train(state, log, lambda trained: log(training.last_pass(trained)), progress)
        training.model(trained, record).save(output)
        state.unlink()
    report.write(options.report_path)
    row = trained.history[-1]
    return IvectorTrainResult(report, row["gaussians"], row["log_likelihood_per_frame"])


def _record_of(training: IvectorTraining, features: Path, note: Log) -> FeatureRecord:
    """Return how the features of all utterances were computed; note it if that is not known completely.

    Raises FormatError if they were computed in different ways.
    """
    kind, _, period = training.form
    paths = [surveyed.utterance.path for surveyed in training.used]
    record = SideFiles().common(paths, kind, period, str(features))
    if not record.is_detailed:
        note(
            f"{paths[0]}: no {side_file(paths[0]).name} beside it, as argonaut hcopy writes it; so i-vectors can be "
            "computed from features, but not from audio"
        )
    return record


def extract_ivectors(
    options: IvectorExtractOptions, *, runner: Runner | None = None, progress: Progress = silent
) -> RunReport:
    """Compute the i-vectors of utterances or speakers: files in `options.out`, and a list of them.

    Files that are up to date stay, so a run that was stopped goes on from there.

    Parameters
    ----------
    options : IvectorExtractOptions
    runner : Runner, optional
        One thread by default.
    progress : callable
        Called as ``progress(utterances done, utterances)``.

    Returns
    -------
    RunReport
        The utterances with i-vectors, and those that were lost, with the reasons.

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share; the report lists faults of single utterances.
    """
    out = options.out
    report = RunReport("utterances")
    for path in (options.scp, options.report_path):
        require_writable(path, [options.features, options.speakers, options.model])
    model = IvectorModel.load(options.model)
    changes = {declared.name: value for declared, value in options.estimation.changed()}
    model = replace(model, options=replace(model.options, **changes))
    units = read_units(options, report)
    targets = _targets(units, options)
    with held_alone(out / "ivector.lock", out):
        check_directories(targets, model)
        since = _begin_directory(out, _fingerprint(model, units, options))
        extracted: dict[str, Extracted] = {}
        total = sum(len(unit.utterances) for unit in units)
        outcomes = (runner or thread_runner(1)).each(
            extract_units, units, model, f"{out}", options.online, since,
            seconds=lambda unit: GUESSED_SECONDS * len(unit.utterances),
        )  # fmt: skip
        for unit, results in outcomes:
            if isinstance(results, Exception):
                results = [Extracted(each.name, reason=one_line(results)) for each in unit.utterances]
            extracted |= {each.name: each for each in results}
            progress(len(extracted), total)
    _write_list(options, extracted, report)
    report.write(options.report_path)
    return report


def _targets(units: Sequence[Unit], options: IvectorExtractOptions) -> dict[Path, str]:
    """Return file -> name of its utterance or speaker.  Raises ConfigError for names of the same file."""
    targets: dict[Path, str] = {}
    for unit in units:
        for name in [each.name for each in unit.utterances] if options.online else [unit.name]:
            first_name = targets.setdefault(target_path(f"{options.out}", name), name)
            if first_name != name:
                raise ConfigError(f"names {first_name!r} and {name!r}: the same file; expected different names")
    return targets


def _begin_directory(out: Path, fingerprint: str) -> int:
    """Return the time from which on files in the directory are those of this model and these options.

    The record of the directory contains the fingerprint of what the files depend on besides the features.  It is
    written again when this changes.
    """
    path = out / RECORD
    try:
        is_current = path.read_text(encoding="utf-8").strip() == fingerprint
    except (OSError, ValueError):
        is_current = False
    if not is_current:
        write_lines(path, [fingerprint])
    return path.stat().st_mtime_ns


def _fingerprint(model: IvectorModel, units: Sequence[Unit], options: IvectorExtractOptions) -> str:
    """Return a checksum of what the files of i-vectors depend on, besides the features."""
    checksum = hashlib.sha256(model.as_bytes() + (b"online" if options.online else b"offline"))
    if options.speakers or options.speaker_pattern:
        checksum.update(repr(units).encode())
    return checksum.hexdigest()


def _write_list(options: IvectorExtractOptions, extracted: Mapping[str, Extracted], report: RunReport) -> None:
    """Write the list in the order of the features' list, and count what became of the utterances."""
    entries = []
    for entry in read_scp(options.features):
        result = extracted.get(entry.key)
        if result is None:
            continue
        if result.reason:
            report.fail(result.name, result.reason)
        else:
            entries.append(ScpEntry(f"{result.name}.ivec", result.path, 0, result.count - 1))
            report.done()
    if entries:
        write_scp(options.scp, entries)
