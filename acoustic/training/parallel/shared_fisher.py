"""One Fisher matrix for several threads: who finds it being brought up to date applies it as it is.

Source: D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging",
2015, appendix B.3.4.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from acoustic.training.natural_gradient.online import OnlineFisher, OnlineSettings
from acoustic.training.natural_gradient.updater import NaturalGradientUpdater


class _AsItIs(OnlineSettings):
    """Settings by which nothing is brought up to date."""

    def updates(self, count: int) -> bool:
        return False


@dataclass
class SharedFisher:
    """The factors of all layers of an updater, whose own they are, so that it saves them.

    right: held by the thread that brings them up to date; memory: held while they are copied, so that nobody reads a
    half of what was and a half of what is; version: rises whenever they change.
    """

    updater: NaturalGradientUpdater
    right: threading.Lock = field(default_factory=threading.Lock)
    memory: threading.Lock = field(default_factory=threading.Lock)
    version: int = 0

    def factors(self) -> list[OnlineFisher]:
        return factors_of(self.updater)


class ThreadFisher:
    """What a thread has of the shared factors: those of its own updater, a copy."""

    def __init__(self, updater: NaturalGradientUpdater, shared: SharedFisher) -> None:
        self.updater, self.shared, self.version = updater, shared, -1
        self._own, self._all = factors_of(updater), shared.factors()
        self._settings = [own.settings for own in self._own]
        self._counts = [own.count for own in self._own]  # when the minibatch began
        self._as_it_is = [_AsItIs(one.alpha, one.history, one.period) for one in self._settings]

    @contextlib.contextmanager
    def minibatch(self) -> Iterator[None]:
        """While the body learns from one, the thread's factors are the shared ones as they were at its beginning.

        If it is time to bring them up to date and nobody is about to, the thread does.
        """
        if not self._own:
            yield
            return
        count = self._all[0].count
        # Before the first minibatch is through there is nothing to apply: the others wait for who has it.
        holds = self._settings[0].updates(count) and self.shared.right.acquire(blocking=not count)
        try:
            self._take()
            for own, settings in zip(self._own, self._settings if holds else self._as_it_is):
                own.settings = settings
            yield
            self._give(holds)
        finally:
            if holds:
                self.shared.right.release()

    def _take(self) -> None:
        with self.shared.memory:
            changed = self.version != self.shared.version
            self.version = self.shared.version
            for own, one in zip(self._own, self._all):
                if changed:
                    own.w[...], own.scales[...] = one.w, one.scales
                else:
                    own.scales[0, -1] = one.scales[0, -1]
            self._counts = [own.count for own in self._own]

    def _give(self, holds: bool) -> None:
        self.updater.tensors()  # brings in order what is left to do
        with self.shared.memory:
            for own, one, before in zip(self._own, self._all, self._counts):
                seen = one.count + own.count - before  # none where the learning rate is 0
                if holds and own.count:
                    one.w[...], one.scales[...] = own.w, own.scales
                one.scales[0, -1] = seen
            if holds:
                self.shared.version += 1
                self.version = self.shared.version


def factors_of(updater: NaturalGradientUpdater) -> list[OnlineFisher]:
    """Those that are estimated from minibatch to minibatch: two for each layer, or none."""
    sides = [side for layer in updater.layers.values() for side in (layer.output_fisher, layer.input_fisher)]
    return [side for side in sides if side is not None]
