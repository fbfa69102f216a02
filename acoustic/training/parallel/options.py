"""Options of training by several jobs: the block parallelTrain of an SGD block.

Source: Povey, Zhang and Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", section
3.1. The names of the block and of its entries for other methods are those of the 2016 tool.
"""

from collections.abc import Callable
from dataclasses import dataclass

from readers.config.config import Config
from readers.config.option_check import KeyedOptions, check_keys, located_faults, not_negative, option, positive
from readers.errors import ConfigError
from readers.minibatches.base import Reader

AVERAGING = "ModelAveragingSGD"
OTHER_METHODS = ("none", "DataParallelSGD", "BlockMomentumSGD")
# Names of the tool's block that have no effect, and why.
WITHOUT_EFFECT = {
    "distributedMBReading": "every job reads its own share",
    "parallelizationStartEpoch": "jobs train all epochs",
    "syncPerfStats": "the history of outer iterations has the times",
    "DataParallelSGD": "it belongs to another method",
}
KEYS = ("parallelizationMethod", AVERAGING, "syncFrequencyInFrames", "scheduler", *WITHOUT_EFFECT)
KEPT = 20  # averaged models, P of the paper's C.4


@dataclass(frozen=True)
class ParallelOptions(KeyedOptions):
    """Options of training by several jobs.

    Parameters
    ----------
    num_jobs : int
        Number of jobs, N in the paper.
    samples : int
        Frames that each job learns from between two averagings, K in the paper.
    threads : int
        Threads per job.
    processes : int
        Jobs that run at a time on this machine; 0: the number of processors.
    retries : int
        How often a lost job is run again.
    keep : int
        Number of averaged models to keep; 0: see `kept`.
    best_first : bool
        Take the best job's model instead of the average after the first outer iteration.
    scheduler : str
        Address of a Dask scheduler, or a file with the address; "" for this machine.
    source : callable, optional
        Opens the training reader in each job. It must be picklable, like functools.partial(open_reader, block, seed),
        and `train` requires it.

    Raises
    ------
    OptionFault
        If a value is out of range.
    """

    num_jobs: int = option("numJobs", fits=positive, expected="1 or more")
    samples: int = option("samplesPerIteration", 400_000, positive, "1 or more")
    threads: int = option("threadsPerJob", 1, positive, "1 or more")
    processes: int = option("maxProcesses", 0, not_negative, "0 or more")
    retries: int = option("jobRetries", 3, not_negative, "0 or more")
    keep: int = option("keepIterations", 0, not_negative, "0 or more")
    best_first: bool = option("bestOfFirstIteration", True)
    scheduler: str = ""
    source: Callable[[], Reader] | None = None

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


def parallel_options(sgd: Config, new: bool = True) -> ParallelOptions | None:
    """Read the block parallelTrain of an SGD block.

    Parameters
    ----------
    sgd : Config
        The SGD block.
    new : bool
        Whether training starts from random parameters, which cannot be averaged after the first iteration.

    Returns
    -------
    ParallelOptions or None
        None without the block, or without numJobs in it.

    Raises
    ------
    ConfigError
        With file and line, for an unknown name or method and a value out of range.
    """
    block = _block(sgd)
    if block is None or not block.has("numJobs"):
        return None
    check_keys(block, [*(key for key, _ in ParallelOptions.keys.values()), *KEYS], {})
    method = block.text("parallelizationMethod", AVERAGING)
    if method.lower() != AVERAGING.lower():
        known = method.lower() in (one.lower() for one in OTHER_METHODS)
        raise ConfigError(
            f"{block.where('parallelizationMethod')}: parallelizationMethod is {method}, "
            f"{'which is not built' if known else 'which is unknown'}; expected {AVERAGING}"
        )
    values = ParallelOptions.values_in(block)
    if "samples" not in values and (samples := _tools_samples(block)):
        values["samples"] = samples
    values.setdefault("best_first", new)
    with located_faults(block):
        return ParallelOptions(**values, scheduler=block.text("scheduler", ""))


def _block(sgd: Config) -> Config | None:
    """Return the block, or None if it is missing or `parallelTrain=false` is set in its place or around it."""
    if sgd.parent is not None and not sgd.parent.is_block("parallelTrain"):
        around = sgd.parent.text("parallelTrain", "")
        if around.lower() in ("false", "none"):
            return None
    if sgd.find("parallelTrain") is None or not sgd.is_block("parallelTrain"):
        return None
    return sgd.block("parallelTrain")


def _tools_samples(block: Config) -> int:
    """Return the frames between two averagings by the name of the tool; 0 if it is not set."""
    inner = block.block(AVERAGING) if block.has_own(AVERAGING) else block
    if inner is not block:
        check_keys(inner, ["syncFrequencyInFrames"], {})
    return inner.int("syncFrequencyInFrames", 0)
