"""Features of many audio files, in parallel: their HTK files, and the mean of their speech."""

import contextlib
import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from features.audio import read_samples
from features.config import FeatureConfig
from features.extraction import extract, frame_period, make_plan
from features.record import SideFileWriter, shared_side_file
from readers.audio.parts import audio_part
from readers.common.environment import available_cores
from readers.common.faults import is_shortage, os_reason
from readers.common.jobs.places import ONE_BLAS_THREAD
from readers.common.jobs.runner import Runner, process_runner, thread_runner
from readers.common.jobs.worker import reason_of
from readers.common.names import hashes_of, several
from readers.common.report import IRREGULAR, Log, RunReport
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.htk.parameter_file import parse_kind, write_htk
from readers.htk.units import TICKS_PER_SECOND

FILES_PER_PROCESS = 8  # at least; a process takes longer to start than to compute some files
PATIENCE = 10.0  # seconds in which a process may finish its files after Ctrl-C
GUESSED_RATE = 16000  # samples per second, of 16 bits, of audio whose header has not been read

Pair = tuple[str, str]
Loss = tuple[str, str]  # (source, reason)
Rates = dict[Path, set[float]]  # sample rates in Hz, by the side file of the feature files


def extract_files(
    pairs: Iterable[Sequence[str | Path]],
    config: FeatureConfig,
    workers: int | None = None,
    progress: Callable[..., None] | None = None,
    runner: Runner | None = None,
    log: Log = print,
) -> RunReport:
    """Extract the features of audio files with a FeatureConfig and write them as HTK files.

    The file features.EXT.json in each directory records the settings of its files with the extension EXT, so that they
    can be compared with those of a model (see readers.config.FeatureRecord).

    Worker processes are spawned, so a script that calls this with workers > 1 needs `if __name__ == "__main__":`.

    Parameters
    ----------
    pairs : iterable of (path, path)
        Source audio and target file.
    config : FeatureConfig
    workers : int, optional
        Number of processes, default one per core; with 1, or few files, everything runs in this process.
    progress : callable, optional
        Called as progress(done, total) when files are finished.
    runner : Runner, optional
        Used instead of processes of this machine; its workers must have access to the files.
    log : callable, optional
        Receives a line when files are processed again, because a worker was killed.

    Returns
    -------
    RunReport
        A file that cannot be read or written, or is too short, is a failure; the others are processed.  Audio whose
        header is wrong about its length is marked "irregular", once for each file.  Remarks name
        the files features.EXT.json that could not be written.

    Raises
    ------
    ConfigError
        Before anything is written, for options that do not match SOURCERATE.

    References
    ----------
    HTK Book 3.4, section 5.16 and reference section of HCopy.
    """
    if config.source_rate:
        make_plan(config, TICKS_PER_SECOND / config.source_rate)
    report = RunReport("files")
    pairs = pairs if isinstance(pairs, Sequence) else list(pairs)
    unusable = unusable_pairs(pairs)
    losses = list(unusable.values())
    total = len(pairs)
    finished = len(losses)
    rates: Rates = {}
    irregular: dict[tuple[str, str], None] = {}  # files and notes, in order
    side_files = SideFileWriter((target for _, target in usable(pairs, unusable)), config)
    used = runner or own_runner(workers, total - finished, log)
    try:
        todo = usable(pairs, unusable)
        jobs = used.each(copy_files, todo, config, seconds=seconds_of, total=total - finished)
        with contextlib.closing(jobs) as outcomes:
            for (source, target), outcome in outcomes:
                if isinstance(outcome, str):
                    losses.append((source, outcome))
                elif isinstance(outcome, Exception):
                    losses.append((source, reason_of(outcome)))
                else:
                    rate, notes = outcome
                    rates.setdefault(shared_side_file(target), set()).add(rate)
                    irregular |= {(audio_part(source).path, note): None for note in notes}
                finished += 1
                if progress:
                    progress(finished, total)
    finally:
        if not runner:
            used.close()
        side_files.finish(rates)
    for path, heard in rates.items():
        if len(heard) > 1 and config.high_frequency < 0:
            report.remarks[str(path.parent)] = (
                f"audio of {' and '.join(f'{rate:g}' for rate in sorted(heard))} Hz; expected one sample rate or "
                "HIFREQ, because without it the filters reach up to half of each rate"
            )
    for path in side_files.left_out:
        report.remarks[str(path)] = (
            "not written, because it would also describe other files in the directory, whose settings may differ"
        )
    report.done(total - len(losses))
    for source, reason in losses:
        report.fail(source, reason)
    report.marked += [(path, IRREGULAR, note) for path, note in irregular]
    return report


def estimate_speech_mean(
    sources: Iterable[str],
    config: FeatureConfig,
    runner: Runner,
    progress: Callable[..., None] | None = None,
) -> tuple[FeatureConfig, RunReport]:
    """Return a configuration with the mean of the speech in audio files, which _Z then subtracts (SPEECHMEAN).

    Parameters
    ----------
    sources : iterable of path
        Audio files, those of the training.
    config : FeatureConfig
        FBANK, or cepstra with _0, and _Z.
    runner : Runner
    progress : callable, optional
        Called as progress(done, total) when files are finished.

    Returns
    -------
    config : FeatureConfig
    report : RunReport
        Files that cannot be read are failures; the mean is that of the others.

    Raises
    ------
    ConfigError
        For another kind of features.
    FormatError
        If no file has any sound, with the reason of the first one that cannot be read.
    """
    if not config.has("Z") or not (config.base_kind == "FBANK" or config.has("0")):
        raise ConfigError(
            f"TARGETKIND = {config.target_kind}; expected _Z, which subtracts the mean of speech, and FBANK or "
            "cepstra with _0, which tell the level of a frame"
        )
    kind = "_".join(part for part in config.target_kind.split("_") if part not in "ZDATN")
    static = replace(config, target_kind=kind, speech_mean=())
    todo = [str(source) for source in sources]
    report = RunReport("files")
    totals = np.zeros((2, config.num_centred + 1))
    for number, (source, outcome) in enumerate(runner.each(sums_of_speech, todo, static), 1):
        if isinstance(outcome, np.ndarray):
            totals += outcome
            report.done()
        else:
            report.fail(source, outcome if isinstance(outcome, str) else reason_of(outcome))
        if progress:
            progress(number, len(todo))
    # Sound whose level nowhere rises, such as tones without pauses, is taken for speech if there is nothing else.
    speech = totals[0] if totals[0, -1] > 0 else totals[1]
    if not speech[-1] > 0:
        reasons = [f"; {reason}" for _, _, reason in report.lost[:1]]
        raise FormatError(f"no sound in the {len(todo)} audio files; expected speech{''.join(reasons)}")
    return replace(config, speech_mean=tuple(float(f"{mean:.5g}") for mean in speech[:-1] / speech[-1])), report


def sums_of_speech(sources: Sequence[str], config: FeatureConfig) -> list[np.ndarray | str]:
    """Return for each file the sums of its speech, see `sum_of_speech`, or why there are none."""
    return [_or_reason(_sum_of_speech, source, config) for source in sources]


def _sum_of_speech(source: str, config: FeatureConfig) -> np.ndarray:
    from features.tracking.speech_mean import sum_of_speech  # loads numba, which other features do not need

    samples, sample_rate = read_samples(source, config, [])
    sums = sum_of_speech(extract(samples, config, sample_rate), config)
    return sums if samples.any() else 0 * sums  # of digital zeros only the dither would count


def copy_file(source: str, target: str, config: FeatureConfig) -> tuple[float, list[str]]:
    """Write the features of one audio file as an HTK file; return their sample rate in Hz, and notes on the file."""
    notes: list[str] = []
    samples, sample_rate = read_samples(source, config, notes)
    frames = extract(samples, config, sample_rate)
    byte_order = "<" if config.natural_write_order and sys.byteorder == "little" else ">"
    write_htk(target, frames, parse_kind(config.file_kind), frame_period(config, sample_rate), byte_order)
    return sample_rate, notes


def unusable_pairs(pairs: Sequence[Sequence[str | Path]]) -> dict[int, Loss]:
    """Return the losses, by index, of pairs whose target is the target of an earlier pair, or the source itself."""
    doubtful = several(hashes_of(target for _, target in usable(pairs, ())))
    owner: dict[str, str] = {}  # of targets that may be repeated
    losses: dict[int, Loss] = {}
    for index, (source, target) in enumerate(usable(pairs, ())):
        if os.path.basename(source) == os.path.basename(target) and Path(source) == Path(target):  # noqa: PTH119
            losses[index] = source, f"{target}: target and source are the same; expected two files"
        elif doubtful[index] and target in owner:
            losses[index] = source, f"{target}: also the target of {owner[target]}; expected a separate target"
        elif doubtful[index]:
            owner[target] = source
    return losses


def usable(pairs: Sequence[Sequence[str | Path]], unusable: Container[int]) -> Iterator[Pair]:
    """Yield the pairs, as text, whose indices are not in `unusable`."""
    return ((str(source), str(target)) for i, (source, target) in enumerate(pairs) if i not in unusable)


def own_runner(workers: int | None, num_files: int, log: Log) -> Runner:
    """Return a runner in processes, by default one per core, or for few files in this thread."""
    processes = min(available_cores() if workers is None else workers, -(-num_files // FILES_PER_PROCESS))
    return process_runner(processes, log, ONE_BLAS_THREAD, PATIENCE) if processes > 1 else thread_runner(1)


def copy_files(pairs: Sequence[Pair], config: FeatureConfig) -> list[tuple[float, list[str]] | str]:
    """Process files; return for each one the sample rate in Hz and notes, or the reason why it failed.

    Any error, bugs included, is the loss of one file; but a lack of memory or disk space is raised, because another
    worker may have it.
    """
    return [_or_reason(copy_file, source, target, config) for source, target in pairs]


def _or_reason(work: Callable[..., Any], source: str, *others: Any) -> Any:
    """Return what work(source, *others) returns, or the reason why it failed."""
    try:
        return work(source, *others)
    except MemoryError:
        raise
    except OSError as fault:
        if is_shortage(fault):
            raise
        return f"{fault.filename or source}: {os_reason(fault)}"
    except ArgonautError as fault:
        reason = str(fault)
        target = str(others[0]) if len(others) > 1 else source
        named = reason.startswith((source, target, f"{source.rpartition('[')[0] or source}:"))
        return reason if named else f"{source}: {reason}"
    except Exception as fault:  # one file must not stop the others
        return f"{source}: {type(fault).__name__}: {' '.join(str(fault).split())}"


def seconds_of(pair: Pair) -> float:
    """Return about how long the audio of a pair is, from the size of the file or of its part."""
    path, _, part = pair[0].partition("[")
    with contextlib.suppress(ValueError, IndexError):
        first, last = part.rstrip("]").split(",")[:2]
        return (int(last) - int(first) + 1) / GUESSED_RATE
    with contextlib.suppress(OSError):
        return Path(path).stat().st_size / (2 * GUESSED_RATE)
    return 1.0
