"""Options of training by several jobs: the block parallelTrain of an SGD block.

Source: Povey, Zhang and Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", section
3.1. The names of the block and of its entries for other methods are those of the 2016 tool.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from readers.config.config import Config
from readers.config.options import Options, check_keys, given, idle_notes, option
from readers.config.options.names import at_least
from readers.config.values import did_you_mean, parse_bool
from readers.errors import ConfigError
from readers.minibatches.base import Reader

AVERAGING, DATA_PARALLEL, NONE = "ModelAveragingSGD", "DataParallelSGD", "none"
METHODS = (AVERAGING, DATA_PARALLEL, NONE)
# Methods of CNTK that are refused, and what to use instead.
NOT_BUILT = {
    "DataParallelASGD": f"asynchronous updates are not reproducible; expected {DATA_PARALLEL} or {AVERAGING}",
    "BlockMomentumSGD": f"it averages models with momentum; expected {AVERAGING}",
}
# Names of the tool's block that have no effect, and why.
WITHOUT_EFFECT = {
    "distributedMBReading": "jobs read their own shares, or share the minibatches that one process reads",
    "syncPerfStats": "the histories have the times",
}
MPI_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")  # variables of Open MPI, and of MPICH and Intel MPI
BLOCKS = (AVERAGING, DATA_PARALLEL, *NOT_BUILT)  # of the methods; only that of the chosen method is read
AVERAGING_KEYS = ("syncFrequencyInFrames", "syncPeriod", "blockSizePerWorker", "blockSize")
AVERAGING_IDLE = dict.fromkeys(("MAPerfStats", "syncPerfStats"), "the history of outer iterations has the times")
GRADIENT_KEYS = ("gradientBits", "useBufferedAsyncGradientAggregation")
GRADIENT_IDLE = dict.fromkeys(
    ("useZeroThresholdFor1BitQuantization", "zeroThresholdFor1Bit"), "gradients are not quantised"
)
# Options of ParallelOptions that only ModelAveragingSGD reads.
ONLY_AVERAGING = ("samplesPerIteration", "keepIterations", "bestOfFirstIteration", "syncFrequencyInFrames")
KEYS = ("parallelizationMethod", *BLOCKS, "syncFrequencyInFrames", "scheduler", *WITHOUT_EFFECT)
KEPT = 20  # averaged models, P of the paper's C.4


@dataclass(frozen=True)
class ParallelOptions(Options):
    """Options of training by several jobs.

    Raises
    ------
    OptionFault
        If a value is out of range.
    """

    num_jobs: int = option(help="number of jobs, N in the paper", least=1)
    samples: int = option(
        400_000,
        "frames that each job learns from between two averagings, K in the paper",
        least=1,
        cntk="samplesPerIteration",
    )
    threads: int = option(1, "threads of each job", least=1, cntk="threadsPerJob")
    processes: int = option(
        0,
        "jobs that run at a time on this machine; 0: the number of processors",
        least=0,
        cntk="maxProcesses",
    )
    retries: int = option(3, "how often a lost job is run again", least=0, cntk="jobRetries")
    keep: int = option(
        0,
        "averaged models that are kept; 0: at least 20, and those of an epoch",
        least=0,
        cntk="keepIterations",
    )
    best_first: bool = option(
        True,
        "take the best job's model instead of the average after the first outer iteration",
        cntk="bestOfFirstIteration",
    )
    scheduler: str = option("", "address of a Dask scheduler, or a file with the address; empty: this machine")
    source: Callable[[], Reader] | None = given(
        None,
        "opens the training reader in each job; picklable, like functools.partial(open_reader, block, seed), and "
        "required by `train`",
    )
    start_epoch: int = option(
        1,
        "first epoch, counted from 1, that the jobs train; one process trains those before",
        least=1,
        cntk="parallelizationStartEpoch",
    )
    averages: bool = given(
        True, "whether the jobs train copies of the network, which are averaged, instead of sharing every minibatch"
    )

    def plan(self, num_frames: int) -> tuple[int, int]:
        """Return the outer iterations of an epoch and the frames of each job in each of them.

        The number of iterations brings the frames nearest to `samples`; together they have at least num_frames.
        """
        iterations = max(1, round(num_frames / (self.num_jobs * self.samples)))
        return iterations, -(-num_frames // (self.num_jobs * iterations))

    def kept(self, iterations: int) -> int:
        """Return how many averaged models to keep for this number of outer iterations per epoch.

        Section C.4 combines the last P models, or P averages over parts of the last epoch if it has more iterations.
        """
        return self.keep or max(KEPT, iterations)


def parallel_options(sgd: Config, new: bool = True, bits: int = 32) -> ParallelOptions | None:
    """Read the block parallelTrain of an SGD block.

    Parameters
    ----------
    sgd : Config
        The SGD block.
    new : bool
        Whether training starts from random parameters, which cannot be averaged after the first iteration.
    bits : int
        Bits of a number of the network, 32 or 64.

    Returns
    -------
    ParallelOptions or None
        None without the block, or if it requests no jobs; see `parallel_notes`.

    Raises
    ------
    ConfigError
        With file and line, for an unknown name or method and a value out of range.
    """
    block = _block(sgd)
    if block is not None and (processes := _mpi_processes()) > 1:
        raise ConfigError(
            f"{block.where()}: {block.full_name()} of {processes} MPI processes, which would all train alone; expected "
            f"one process, and numJobs={processes}"
        )
    if block is None or not block.has("numJobs"):
        return None
    check_keys(block, [*ParallelOptions.option_keys(), *KEYS], {})
    method = _method(block)
    if method == NONE:
        return None
    values = ParallelOptions.values_in(block)
    if method == AVERAGING:
        if "samples" not in values and (samples := _tools_samples(block, block.int("numJobs"))):
            values["samples"] = samples
    else:
        _check_gradients(block, bits)
    values.setdefault("best_first", new)
    return ParallelOptions.from_block(block, **values, averages=method == AVERAGING)


def parallel_notes(sgd: Config) -> list[str]:
    """Return a note for each setting of the block parallelTrain that has no effect.

    Call it after `parallel_options`, which raises the faults of the block.

    Parameters
    ----------
    sgd : Config
        The SGD block.

    Returns
    -------
    list of str
        With file and line.
    """
    block = _block(sgd)
    if block is None:
        return _notes_without_block(sgd)
    where = f"{block.where()}: {block.full_name()}"
    if not block.has("numJobs"):
        return [f"{where} has no effect without numJobs: one process trains"]
    method = _method(block)
    if method == NONE:
        return [f"{where} has no effect with parallelizationMethod=none: one process trains"]
    notes = idle_notes(block, WITHOUT_EFFECT)
    unread = dict.fromkeys((name for name in BLOCKS if name != method), f"parallelizationMethod is {method}")
    if method == DATA_PARALLEL:
        unread |= dict.fromkeys(ONLY_AVERAGING, f"parallelizationMethod is {method}")
    notes += idle_notes(block, unread)
    if block.has_own(method):
        inner = block.block(method)
        idle = AVERAGING_IDLE if method == AVERAGING else GRADIENT_IDLE
        notes += idle_notes(inner, idle)
    return notes


def _notes_without_block(sgd: Config) -> list[str]:
    """Return a note if parallelTrain is set, but not to a block, or if it is switched off."""
    found = (sgd.parent if sgd.is_block("parallelTrain") and sgd.parent else sgd).find("parallelTrain")
    if found is None:
        return []
    where, value = found[0].where("parallelTrain"), found[0].text("parallelTrain")
    if sgd.is_block("parallelTrain"):
        return [f"{where}: parallelTrain={value}: one process trains"]
    if not _is_on(sgd):
        return []
    return [f"{where}: parallelTrain={value} has no effect without a block parallelTrain=[numJobs=...] in SGD"]


def _is_on(config: Config) -> bool:
    """Return the switch parallelTrain, a plain value. Raises ConfigError if it is no truth value."""
    value = config.text("parallelTrain", "")
    return value.lower() != NONE and parse_bool(value, config.where("parallelTrain"), "parallelTrain")


def _block(sgd: Config) -> Config | None:
    """Return the block, or None if it is missing or `parallelTrain=false` is set in its place or around it."""
    around = sgd.parent
    switched = around is not None and around.has("parallelTrain") and not around.is_block("parallelTrain")
    if switched and not _is_on(around):
        return None
    if not sgd.is_block("parallelTrain"):
        _is_on(sgd)
        return None
    return sgd.block("parallelTrain")


def _mpi_processes() -> int:
    """Return the number of processes that mpiexec has started, as far as the environment tells."""
    sizes = [os.environ.get(name, "") for name in MPI_SIZES]
    return max((int(size) for size in sizes if size.isdecimal()), default=1)


def _method(block: Config) -> str:
    """Return parallelizationMethod as spelled in METHODS. Raises ConfigError."""
    name = block.text("parallelizationMethod", AVERAGING)
    for method in METHODS:
        if name.lower() == method.lower():
            return method
    where = f"{block.where('parallelizationMethod')}: parallelizationMethod is {name}"
    for method, reason in NOT_BUILT.items():
        if name.lower() == method.lower():
            raise ConfigError(f"{where}, which is not built: {reason}")
    raise ConfigError(f"{where}, which is unknown; expected {', '.join(METHODS)}{did_you_mean(name, METHODS)}")


def _tools_samples(block: Config, jobs: int) -> int:
    """Return the frames of a job between two averagings by the names of the tool; 0 if none is set."""
    inner = block.block(AVERAGING) if block.has_own(AVERAGING) else None
    if inner is None:
        return block.int("syncFrequencyInFrames", 0)
    check_keys(inner, [*AVERAGING_KEYS, *AVERAGING_IDLE], {})
    given = [name for name in AVERAGING_KEYS if inner.has_own(name)]
    if len(given) > 1:
        raise ConfigError(f"{inner.where(given[1])}: {given[1]} is given beside {given[0]}; expected one of them")
    if not given:
        return block.int("syncFrequencyInFrames", 0)
    frames = at_least(inner, given[0], inner.int(given[0]), 1)
    return max(1, frames // jobs) if given[0] == "blockSize" else frames


def _check_gradients(block: Config, bits: int) -> None:
    """Raise ConfigError for gradients that are quantised or applied late."""
    if not block.has_own(DATA_PARALLEL):
        return
    inner = block.block(DATA_PARALLEL)
    check_keys(inner, [*GRADIENT_KEYS, *GRADIENT_IDLE], {})
    found = inner.int("gradientBits", bits)
    if found != bits:
        raise ConfigError(
            f"{inner.where('gradientBits')}: gradientBits is {found}, and quantised gradients are not built; expected "
            f"{bits}, the size of a number, or {AVERAGING}, which sends less"
        )
    if inner.bool("useBufferedAsyncGradientAggregation", False):
        raise ConfigError(
            f"{inner.where('useBufferedAsyncGradientAggregation')}: useBufferedAsyncGradientAggregation=true, which "
            "applies gradients one minibatch late, is not built; expected false"
        )
