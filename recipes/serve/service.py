"""What all clients share: one recogniser, threads that decode, limits, figures, and the end of the server."""

import asyncio
import contextlib
import functools
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from decoder.recognizer.bundle import PRONUNCIATION
from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.recognizer.jobs.pronunciation.assessor import PronunciationAssessor
from decoder.recognizer.recognizer import Recognizer
from readers.common.temporary import scratch_directory
from readers.errors import ArgonautError
from recipes.serve.limits import BusyError, Limits
from recipes.serve.metrics import Metrics

T = TypeVar("T")

WARM_SECONDS = 1.0  # of noise, which is recognised before the first client connects


class Service:
    """A recogniser that many clients use at the same time.

    Audio of WebSockets is decoded in steps, by one thread per core, in the order in which the steps are asked for;
    since a stream waits for its step before it asks for the next one, all streams get their turn.  Files have threads
    of their own, so that a long file does not delay the streams.

    Parameters
    ----------
    recognizer : Recognizer
        Made inside `using_cores(1)`, so that each thread computes alone.
    limits : Limits
    cores : int
        Number of threads for streams, and of threads for files.

    Attributes
    ----------
    aligner : ForcedAligner or None
        None for a bundle without dictionary or tables of models.
    assessor : PronunciationAssessor or None
        None for a bundle without a map of pronunciation scores.

    Raises
    ------
    ArgonautError
        For tables or a map that are damaged or do not fit the model.
    """

    def __init__(self, recognizer: Recognizer, limits: Limits, cores: int):
        self.recognizer = recognizer
        self.aligner: ForcedAligner | None = recognizer.aligner() if recognizer.can_align() else None
        self.assessor: PronunciationAssessor | None = None
        bundle = recognizer.bundle
        if self.aligner is not None and bundle is not None and PRONUNCIATION in bundle.parts:
            self.assessor = PronunciationAssessor.of(bundle, self.aligner)
        self.limits = limits
        self.metrics = Metrics()
        self.stopping = asyncio.Event()
        self.progress: dict[str, tuple[float, float | None]] = {}  # of files by id: seconds done, all
        self._streams = ThreadPoolExecutor(cores, thread_name_prefix="stream")
        self._files = ThreadPoolExecutor(cores, thread_name_prefix="file")
        self._running: set[Future[Any]] = set()
        self._directories: set[Path] = set()

    @property
    def name(self) -> str:
        """The name of the model, from its bundle."""
        bundle = self.recognizer.bundle
        return Path(self.recognizer.name).stem if bundle is None else bundle.description.name

    @property
    def language(self) -> str:
        """The language of the bundle, "" if it does not say."""
        bundle = self.recognizer.bundle
        return "" if bundle is None else bundle.description.language

    @property
    def rate(self) -> float:
        """The sample rate of the audio of the training, in Hz."""
        bundle = self.recognizer.bundle
        return self.recognizer.front_end.expected.rates[0] if bundle is None else bundle.description.sample_rate

    @functools.cached_property
    def with_phones(self) -> Recognizer:
        """The recogniser whose transcripts have phones; raises ConfigError for a bundle without what `align` needs."""
        return self.recognizer.with_phones()

    @functools.cached_property
    def words(self) -> list[str]:
        """The different words that can be recognised, in the order of the graph."""
        outputs = self.recognizer.decoder.graph.outputs
        return list(dict.fromkeys(word for word in outputs if word and word[0] != "<"))

    @property
    def num_open(self) -> int:
        """Number of streams."""
        return self.metrics.streams_open.total()

    @property
    def is_decoding(self) -> bool:
        """Whether a thread decodes."""
        return bool(self._running)

    def warm_up(self) -> None:
        """Recognise noise, so that the first client does not wait for kernels to be compiled or loaded."""
        noise = np.random.default_rng(0).integers(-300, 300, round(WARM_SECONDS * self.rate)).astype(np.int16)
        stream = self.recognizer.stream(self.rate)
        stream.push(noise)
        stream.finish()
        _ = self.recognizer.transcribe(noise, self.rate).words
        if self.aligner is not None:
            with contextlib.suppress(ArgonautError):
                self.aligner.align(noise, self.words[:1], self.rate)

    @contextlib.contextmanager
    def stream(self, kind: str) -> Iterator["Usage"]:
        """Take one of the streams while the body runs.

        Raises BusyError if there is none left, or the server stops.
        """
        if self.num_open >= self.limits.streams or self.stopping.is_set():
            self.metrics.streams_refused[kind] += 1
            if self.stopping.is_set():
                raise BusyError("the server is stopping; connect again later")
            raise BusyError(f"{self.limits.streams} streams are open, as many as allowed; try again later")
        self.metrics.streams_open[kind] += 1
        self.metrics.streams_total[kind] += 1
        usage = Usage()
        try:
            yield usage
        finally:
            self.metrics.streams_open[kind] -= 1
            if usage.audio_seconds:
                self.metrics.factors.observe(usage.decoding_seconds / usage.audio_seconds)

    async def decode(self, usage: "Usage", seconds: float, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a thread for streams, and count the audio (seconds) and the time that it takes."""
        return await self._call(self._streams, usage, seconds, function, arguments)

    async def decode_file(self, usage: "Usage", function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a thread for files, and count its time."""
        return await self._call(self._files, usage, 0.0, function, arguments)

    @contextlib.contextmanager
    def directory(self) -> Iterator[Path]:
        """Make a directory for a file, which is removed after the body."""
        with scratch_directory() as directory:
            self._directories.add(directory)
            try:
                yield directory
            finally:
                self._directories.discard(directory)

    def remove_files(self) -> None:
        """Remove the files that threads still read; called before the process ends without them."""
        for directory in tuple(self._directories):
            shutil.rmtree(directory, ignore_errors=True)

    def count_audio(self, usage: "Usage", seconds: float) -> None:
        """Count audio that was recognised."""
        usage.audio_seconds += seconds
        self.metrics.audio_seconds += seconds

    async def _call(
        self,
        pool: ThreadPoolExecutor,
        usage: "Usage",
        seconds: float,
        function: Callable[..., T],
        arguments: tuple[Any, ...],
    ) -> T:
        def timed() -> tuple[T, float]:
            begin = time.perf_counter()
            return function(*arguments), time.perf_counter() - begin

        future = pool.submit(timed)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        outcome, spent = await asyncio.wrap_future(future)
        usage.decoding_seconds += spent
        self.metrics.decoding_seconds += spent
        self.count_audio(usage, seconds)
        return outcome

    async def stop(self) -> bool:
        """Let open streams end; returns whether all have ended within the grace period."""
        self.stopping.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.grace):
                while self.num_open:
                    await asyncio.sleep(0.02)
        for pool in (self._streams, self._files):
            pool.shutdown(wait=False, cancel_futures=True)
        return not self.num_open


class Usage:
    """What one stream has used.

    Attributes
    ----------
    audio_seconds, decoding_seconds : float
    """

    def __init__(self) -> None:
        self.audio_seconds = self.decoding_seconds = 0.0
