"""The HCopy job: extracts HTK feature files from many audio files in parallel."""

import contextlib
import itertools
import multiprocessing
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from features.audio import read_samples
from features.config import FeatureConfig
from features.extraction import extract, frame_period, make_plan
from features.record import SideFileWriter
from readers.common.environment import available_cores, environment_variables
from readers.common.faults import os_reason
from readers.common.processes import as_they_end, end_with_parent
from readers.common.report import RunReport
from readers.common.stop_signals import interrupts_held_back
from readers.config.feature_record import side_file
from readers.errors import ArgonautError
from readers.htk.parameter_file import parse_kind, write_htk
from readers.htk.units import TICKS_PER_SECOND

FILES_PER_TASK = 8  # a file takes milliseconds, the transfer of a task about one
BLAS_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

Pair = tuple[str, str]
Loss = tuple[str, str]  # (source, reason)
Rates = dict[Path, set[float]]  # sample rates in Hz, by the side file of the feature files


class TaskResult(NamedTuple):
    """Losses of a task, and the sample rates of its other files."""

    losses: list[Loss]
    rates: Rates


def hcopy(
    pairs: Iterable[Sequence],
    config: FeatureConfig,
    workers: int | None = None,
    progress: Callable[..., None] | None = None,
    executor: Executor | None = None,
) -> RunReport:
    """Extract the features of audio files and write them as HTK files.

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
    executor : concurrent.futures.Executor, optional
        Used instead of a process pool; its workers must have access to the files.

    Returns
    -------
    RunReport
        A file that cannot be read or written, or is too short, is a failure; the others are processed.  Remarks name
        the files features.EXT.json that could not be written.

    Raises
    ------
    ConfigError
        Before anything is written, for options that do not match SOURCERATE.
    ChildProcessError
        If a process of the pool was killed.  Finished files are kept.

    References
    ----------
    HTK Book 3.4, section 5.16 and reference section of HCopy.
    """
    if config.source_rate:
        make_plan(config, TICKS_PER_SECOND / config.source_rate)
    report = RunReport("files")
    todo, losses = split_duplicates([(str(source), str(target)) for source, target in pairs])
    order = {source: position for position, (source, _) in enumerate(todo)}
    total, finished = len(todo) + len(losses), len(losses)
    rates: Rates = {}
    side_files = SideFileWriter((target for _, target in todo), config)
    try:
        with contextlib.closing(run_tasks(todo, config, workers, executor)) as tasks:
            for task_size, result in tasks:
                losses.extend(result.losses)
                for path, found in result.rates.items():
                    rates.setdefault(path, set()).update(found)
                finished += task_size
                if progress:
                    progress(finished, total)
    except BrokenExecutor as fault:
        raise ChildProcessError(
            f"a worker process was killed or ran out of memory after {finished} of {total} files; run again, "
            "with fewer processes if memory is short"
        ) from fault
    finally:
        side_files.finish(rates)
    for path, found in rates.items():
        if len(found) > 1 and config.high_frequency < 0:
            report.remarks[str(path.parent)] = (
                f"audio of {' and '.join(f'{rate:g}' for rate in sorted(found))} Hz; expected one sample rate or "
                "HIFREQ, because without it the filters reach up to half of each rate"
            )
    for path in side_files.left_out:
        report.remarks[str(path)] = (
            "not written, because it would also describe other files in the directory, whose settings may differ"
        )
    report.done(total - len(losses))
    for source, reason in sorted(losses, key=lambda loss: order.get(loss[0], -1)):
        report.fail(source, reason)
    return report


def copy_file(source: str, target: str, config: FeatureConfig) -> float:
    """Write the features of one audio file as an HTK file; return the sample rate of the features in Hz."""
    samples, sample_rate = read_samples(source, config)
    frames = extract(samples, config, sample_rate)
    byte_order = "<" if config.natural_write_order and sys.byteorder == "little" else ">"
    write_htk(target, frames, parse_kind(config.file_kind), frame_period(config, sample_rate), byte_order)
    return sample_rate


def split_duplicates(pairs: list[Pair]) -> tuple[list[Pair], list[Loss]]:
    """Return the pairs to process, and losses: pairs whose target is the target of an earlier pair, or the source
    itself.
    """
    owner: dict[str, str] = {}
    todo, losses = [], []
    for source, target in pairs:
        if Path(source) == Path(target):
            losses.append((source, f"{target}: target and source are the same; expected two files"))
        elif target in owner:
            losses.append((source, f"{target}: also the target of {owner[target]}; expected a separate target"))
        else:
            owner[target] = source
            todo.append((source, target))
    return todo, losses


def run_tasks(
    pairs: list[Pair], config: FeatureConfig, workers: int | None, executor: Executor | None
) -> Generator[tuple[int, TaskResult], None, None]:
    """Yield (number of files, result) of each task as it finishes."""
    tasks = [list(task) for task in batched(pairs, FILES_PER_TASK)]
    workers = min(available_cores() if workers is None else workers, len(tasks))
    if executor is None and workers <= 1:
        for pair in pairs:
            yield 1, copy_files([pair], config)
    elif executor is not None:
        yield from finished_tasks(executor, tasks, config)
    else:
        spawn = multiprocessing.get_context("spawn")
        with interrupts_held_back():  # the pool starts a process that tracks its semaphores
            pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=end_with_parent)
        try:
            yield from finished_tasks(pool, tasks, config)
        finally:
            with interrupts_held_back():
                pool.shutdown(cancel_futures=True)


def finished_tasks(executor: Executor, tasks: list[list[Pair]], config: FeatureConfig) -> Iterator:
    futures: dict[Future, list[Pair]] = {}
    try:
        with one_blas_thread_per_process(), interrupts_held_back():
            for task in tasks:
                futures[executor.submit(copy_files, task, config)] = task
        for future in as_they_end(futures):
            task = futures[future]
            fault = future.exception()
            if fault is None:
                yield len(task), future.result()
            elif isinstance(fault, BrokenExecutor):  # nothing else will be done
                raise fault
            else:  # the process died: the current file is unknown
                reason = f"worker process: {type(fault).__name__}: {' '.join(str(fault).split())}"
                yield len(task), TaskResult([(source, reason) for source, _ in task], {})
    finally:  # do not wait for thousands of queued tasks after an interrupt
        with interrupts_held_back():
            for future in futures:
                future.cancel()


def copy_files(pairs: list[Pair], config: FeatureConfig) -> TaskResult:
    """Process the files of one task; any error, bugs included, is the loss of one file."""
    losses: list[Loss] = []
    rates: Rates = {}
    for source, target in pairs:
        try:
            rate = copy_file(source, target, config)
            rates.setdefault(side_file(target), set()).add(rate)
        except OSError as fault:
            losses.append((source, f"{fault.filename or source}: {os_reason(fault)}"))
        except ArgonautError as fault:
            reason = str(fault)
            named = reason.startswith((source, target, f"{source.rpartition('[')[0] or source}:"))
            losses.append((source, reason if named else f"{source}: {reason}"))
        except Exception as fault:  # one file must not stop the others
            losses.append((source, f"{source}: {type(fault).__name__}: {' '.join(str(fault).split())}"))
    return TaskResult(losses, rates)


def one_blas_thread_per_process() -> contextlib.AbstractContextManager[None]:
    """Limit matrix products to one thread in processes that are started while the result is entered.

    The library reads its environment variables when it is loaded, so they are set in the environment that the processes
    inherit; without them each worker would use a thread per core.
    """
    return environment_variables(**dict.fromkeys(BLAS_THREAD_VARIABLES, "1"))


def batched(items: list, size: int) -> Iterator[tuple]:
    """Yield consecutive groups of at most `size` items."""
    iterator = iter(items)
    while group := tuple(itertools.islice(iterator, size)):
        yield group
