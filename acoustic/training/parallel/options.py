"""Options of training by several jobs: the block parallelTrain of an SGD block.

Source: Povey, Zhang and Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", section
3.1. The names of the block and of its entries for other methods are those of the 2016 tool.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from readers.config.config import Config
from readers.config.options import Options, given, idle_notes, option
from readers.config.values import parse_bool
from readers.errors import ConfigError
from readers.minibatches.base import Reader

AVERAGING, DATA_PARALLEL, NONE = "ModelAveragingSGD", "DataParallelSGD", "none"
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
AVERAGING_IDLE = dict.fromkeys(("MAPerfStats", "syncPerfStats"), "the history of outer iterations has the times")
GRADIENT_IDLE = dict.fromkeys(
    ("useZeroThresholdFor1BitQuantization", "zeroThresholdFor1Bit"), "gradients are not quantised"
)
# Options of ParallelOptions that only ModelAveragingSGD reads.
ONLY_AVERAGING = ("samplesPerIteration", "keepIterations", "bestOfFirstIteration", "syncFrequencyInFrames")
KEPT = 20  # averaged models, P of the paper's C.4


@dataclass(frozen=True)
class ParallelOptions(Options):
    """Options of training by several jobs.

    Raises
    ------
    OptionFault
        If a value is out of range.
    """

    num_jobs: int = option(help="number of jobs, N in the paper", unit="jobs", least=1)
    samples: int = option(
        400_000,
        "frames that each job learns from between two averagings, K in the paper",
        unit="frames",
        least=1,
        most=math.inf,
        cntk="samplesPerIteration",
    )
    threads: int = option(1, "threads of each job", unit="threads", least=1, cntk="threadsPerJob")
    processes: int = option(
        0,
        "jobs that run at a time on this machine; 0: the number of processors",
        unit="jobs",
        least=0,
        cntk="maxProcesses",
    )
    retries: int = option(3, "how often a lost job is run again", least=0, cntk="jobRetries")
    keep: int = option(
        0, "averaged models that are kept; 0: at least 20, and those of an epoch", least=0, cntk="keepIterations"
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


@dataclass(frozen=True, kw_only=True)
class MethodOptions(Options):
    """Options of the block parallelTrain that have the names of the 2016 tool."""

    method: Literal["ModelAveragingSGD", "DataParallelSGD", "none"] = option(
        AVERAGING, "how the jobs learn together", cntk="parallelizationMethod"
    )
    samples: int = option(
        0,
        "the tool's name of samplesPerIteration; 0: not given",
        unit="frames",
        least=0,
        most=math.inf,
        cntk="syncFrequencyInFrames",
    )


@dataclass(frozen=True, kw_only=True)
class AveragingOptions(Options):
    """Options of the block ModelAveragingSGD in parallelTrain."""

    samples: int | None = option(
        None,
        "samplesPerIteration, unless parallelTrain has it",
        unit="frames",
        least=1,
        most=math.inf,
        own=True,
        cntk="syncFrequencyInFrames syncPeriod blockSizePerWorker",
    )
    block_size: int | None = option(
        None, "the same for all jobs together", unit="frames", least=1, most=math.inf, own=True
    )


@dataclass(frozen=True, kw_only=True)
class GradientOptions(Options):
    """Options of the block DataParallelSGD in parallelTrain."""

    gradient_bits: int | None = option(None, "bits of a number that jobs send: those of the network")
    late: bool = option(
        False,
        "whether gradients are applied one minibatch late",
        check=lambda wanted: not wanted,
        expected="false: gradients that are applied one minibatch late are not built",
        cntk="useBufferedAsyncGradientAggregation",
    )


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
    keys = [*ParallelOptions.option_keys(), *MethodOptions.option_keys()]
    block.refuse_unknown([*keys, *BLOCKS, *WITHOUT_EFFECT])
    method = _method(block)
    if method == NONE:
        return None
    values = ParallelOptions.values_in(block)
    if method == AVERAGING:
        if "samples" not in values and (samples := _tools_samples(block, values["num_jobs"])):
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
    entry = (sgd.parent if sgd.is_block("parallelTrain") and sgd.parent else sgd).find("parallelTrain")
    if entry is None:
        return []
    where = entry[0].where("parallelTrain")
    value = entry[0].text("parallelTrain")
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
    if around is not None and switched and not _is_on(around):
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
    """Return parallelizationMethod as the tool spells it. Raises ConfigError."""
    name = block.text("parallelizationMethod", "")
    for method, reason in NOT_BUILT.items():
        if name.lower() == method.lower():
            where = block.where("parallelizationMethod")
            raise ConfigError(f"{where}: parallelizationMethod is {name}, which is not built: {reason}")
    return MethodOptions.from_block(block).method


def _tools_samples(block: Config, jobs: int) -> int:
    """Return the frames of a job between two averagings by the names of the tool; 0 if none is set."""
    if not block.has_own(AVERAGING):
        return MethodOptions.from_block(block).samples
    inner = block.block(AVERAGING)
    inner.refuse_unknown([*AveragingOptions.option_keys(), *AVERAGING_IDLE])
    names = [name for name in AveragingOptions.option_keys() if inner.has_own(name)]
    if len(names) > 1:
        raise ConfigError(f"{inner.where(names[1])}: {names[1]} is given beside {names[0]}; expected one of them")
    options = AveragingOptions.from_block(inner)
    if options.block_size is not None:
        return max(1, options.block_size // jobs)
    return options.samples or MethodOptions.from_block(block).samples


def _check_gradients(block: Config, bits: int) -> None:
    """Raise ConfigError for gradients that are quantised or applied late."""
    if not block.has_own(DATA_PARALLEL):
        return
    inner = block.block(DATA_PARALLEL)
    inner.refuse_unknown([*GradientOptions.option_keys(), *GRADIENT_IDLE])
    options = GradientOptions.from_block(inner)
    if options.gradient_bits not in (None, bits):
        raise ConfigError(
            f"{inner.where('gradientBits')}: gradientBits is {options.gradient_bits}, and quantised gradients are not "
            f"built; expected {bits}, the size of a number, or {AVERAGING}, which sends less"
        )
