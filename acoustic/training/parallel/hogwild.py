"""Several threads of one process that train one set of parameters without waiting for each other: Hogwild.

Sources: F. Niu, B. Recht, C. Re, S. Wright, "Hogwild!: a lock-free approach to parallelizing stochastic gradient
descent", 2011; D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural gradient and parameter
averaging", 2015, appendices B.3.4 and C.1.

Each thread takes the next minibatch, computes with the parameters as they are, and changes them where they lie while
the others compute.  Which changes a thread sees depends on the moment: two runs with a seed give different models.
Minibatches are to be small, for as many of them are learned from at once as there are threads.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from acoustic.kernels.backend import Backend
from acoustic.network.editing import clone
from acoustic.network.network import Network
from acoustic.runtime import blas
from acoustic.training.evaluation import Totals
from acoustic.training.learner import Each, Learner
from acoustic.training.natural_gradient.updater import NaturalGradientUpdater
from acoustic.training.options import EpochOptions, TrainingOptions
from acoustic.training.parallel.shared_fisher import SharedFisher, ThreadFisher
from acoustic.training.update import Updater
from readers.errors import ModelError


def learner_for(options: TrainingOptions) -> Callable[..., Learner]:
    """What makes the learner that the options ask for; it takes Learner's arguments."""
    threads = options.hogwild_threads
    return partial(HogwildLearner, threads=threads) if threads > 1 else Learner


class HogwildLearner(Learner):
    """A learner of `threads` threads, each with a minibatch of its own.

    What the update rule keeps of a parameter each thread keeps for itself during an epoch: a smoothed gradient that
    several add to at once would be nobody's.  At its end they are averaged.  Of the natural gradient's Fisher matrix
    there is one for all.  Raises ModelError for what threads cannot share.
    """

    def __init__(
        self,
        network: Network,
        reader: Any,
        options: TrainingOptions,
        criterion: str,
        names: list[str],
        seed: int,
        threads: int,
    ) -> None:
        super().__init__(network, reader, options, criterion, names, seed)
        self.network = network
        _check(network, reader, threads)
        self._twins = [_twin(network) for _ in range(threads)]
        self._threads = [_ThreadLearner(twin, reader, options, criterion, names, seed) for twin in self._twins]

    def run(self, epoch: int, values: EpochOptions, each: Each | None = None, num_frames: int = 0) -> Totals:
        """See Learner.run; `each` is called by the threads, one at a time."""
        for twin in self._twins:
            _take_values(self.network, twin)
        for learner in self._threads:
            _copy_state(self.updater, learner.updater)
            learner.place = self.place
        if isinstance(self.updater, NaturalGradientUpdater):
            self.updater.tensors()  # brings in order what is left to do
            shared = SharedFisher(self.updater)
            for learner in self._threads:
                learner.fisher = ThreadFisher(learner.updater, shared)
        queue = _Queue(self, epoch, values, each, num_frames)
        threads = [threading.Thread(target=queue.work, args=(learner,), daemon=True) for learner in self._threads]
        with blas.one_thread:
            for thread in threads:
                thread.start()
            try:
                for thread in threads:
                    thread.join()
            except BaseException:  # interrupted
                queue.stop()
                for thread in threads:
                    thread.join()
                raise
        for node in self.network.stored():
            node.touch()
        if queue.error is not None:
            raise queue.error
        self._require_frames(queue.totals, epoch, values)
        _average_state(self.updater, [learner.updater for learner in self._threads])
        return queue.totals


class _ThreadLearner(Learner):
    """What a thread learns with; fisher: its way to the natural gradient's Fisher matrix, where there is one."""

    fisher: ThreadFisher | None = None

    def _learn(self, epoch: int, index: int, minibatch: Any, values: EpochOptions, first: bool) -> dict[str, float]:
        with self.fisher.minibatch() if self.fisher is not None else contextlib.nullcontext():
            return super()._learn(epoch, index, minibatch, values, first)


class _Queue:
    """The minibatches of an epoch, each for the thread that asks next, and what became of them."""

    def __init__(
        self, learner: HogwildLearner, epoch: int, values: EpochOptions, each: Each | None, num_frames: int
    ) -> None:
        self.learner, self.epoch, self.values, self.each = learner, epoch, values, each
        self.num_frames, self.given = num_frames, 0
        self.size = max(1, learner.options.epoch_size or learner.reader.num_frames)
        self.totals = Totals(learner.names)
        self.error: BaseException | None = None
        self._reading, self._counting = threading.Lock(), threading.Lock()
        self._minibatches: Iterator[tuple[int, Any]] = enumerate(learner._minibatches(epoch, values))

    def stop(self) -> None:
        """Give out no more."""
        with self._reading:
            self._minibatches = iter(())

    def next(self) -> tuple[int, Any] | None:
        """The next minibatch with its number; None at the end."""
        with self._reading:
            if self.error is not None or 0 < self.num_frames <= self.given:
                return None
            index, minibatch = next(self._minibatches, (0, None))
            if minibatch is None:
                return None
            self.given += minibatch.num_frames
            layout = getattr(minibatch, "layout", None)
            matrices = minibatch.matrices
            if self.learner.transform is not None:  # it has an engine of its own, for one thread
                matrices = self.learner.transform(matrices, layout)
            check = self.learner.before_updates
            if index == 0 and not self.num_frames and check is not None:
                settings = {"dropout_rate": self.values.dropout_rate, "seed": (self.learner.seed, self.epoch, index)}
                check(matrices, layout=layout, **settings)  # nobody learns until the lock is free again
            done = min(1.0, (self.given - minibatch.num_frames) / self.size)
            return index, _Given(matrices, minibatch.num_frames, layout, done)

    def work(self, learner: Learner) -> None:
        """Learn from one minibatch after another; in a thread of its own."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                while (found := self.next()) is not None:
                    index, minibatch = found
                    learner._done = minibatch.done
                    figures = learner._learn(self.epoch, index, minibatch, self.values, first=False)
                    with self._counting:
                        self.totals.add(figures, minibatch.num_frames)
                        if self.each is not None:
                            self.each(figures, minibatch.num_frames)
        except BaseException as error:  # handed to the caller of run
            with self._counting:
                self.error = self.error or error


@dataclass
class _Given:
    """A minibatch as `Learner` takes it; done: how much of the epoch was given out before."""

    matrices: Any
    num_frames: int
    layout: Any
    done: float


def _check(network: Network, reader: Any, threads: int) -> None:
    where = f"hogwildThreads={threads}"
    if network.backend.xp is not np:
        raise ModelError(f"{where}: on device {network.backend.device}; expected cpu, whose memory threads share")
    sockets = [node for node in network.nodes.values() if node.is_socket]
    if sockets:
        raise ModelError(f"{where}: {sockets[0].where} joins two networks; expected a network by itself")
    delays = network.delays()
    if delays and getattr(reader, "cuts", False):
        raise ModelError(
            f"{where}: {delays[0].where} goes on from one minibatch to the next; expected whole sequences, for "
            "HTKMLFReader by truncated=false"
        )


def _twin(network: Network) -> Network:
    """Nodes of its own, so that no thread's engine looks at another's, over the same matrices."""
    twin = clone(network)
    twin.backend = Backend(network.backend.precision, network.backend.device, threads=1)
    return twin


def _take_values(network: Network, twin: Network) -> None:
    """The matrices of the network as they are now: statistics and edits may have come after the twin."""
    for node in network.stored():
        twin[node.name].value = node.value


def _copy_state(source: Updater, target: Updater) -> None:
    target.scalars = dict(source.scalars)
    for name, kept in source.state.items():
        for kind, matrix in kept.items():
            target.state[name][kind][...] = matrix


def _average_state(target: Updater, sources: list[Updater]) -> None:
    """The mean over the threads that have learned anything, of numbers and of matrices."""
    sources = [source for source in sources if source.scalars != target.scalars] or sources
    for name, kept in target.state.items():
        for kind, matrix in kept.items():
            matrix[...] = sum(source.state[name][kind] for source in sources) / len(sources)
    names = sources[0].scalars
    target.scalars = {name: sum(source.scalars[name] for source in sources) / len(sources) for name in names}
