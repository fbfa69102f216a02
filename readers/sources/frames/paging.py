"""Chunks of features in a limited amount of memory, loaded ahead in the background."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

Load = Callable[[int, list[np.ndarray]], None]


class ChunkCache:
    """Memory for chunks in slots of equal size; the least recently used slot is reused.

    load(chunk, outs): fills outs[stream] (frames, dim) float32, C order, of one chunk; called by one thread at a time.
    sizes[stream]: (num_chunks,) frames of each chunk with repeated frames.
    dims: values per frame of each stream.
    buffers[stream]: (num_slots * slot frames, dim), read by the caller; base(stream)[chunk] is the first row of a
    chunk, valid for the chunks of the last `hold`.
    """

    def __init__(self, load: Load, sizes: Sequence[np.ndarray], dims: Sequence[int], num_slots: int, ahead: bool):
        self._load = load
        self._sizes = sizes
        self._slot_frames = [int(size.max()) for size in sizes]
        self.buffers = [np.zeros((num_slots * frames, dim), np.float32) for frames, dim in zip(self._slot_frames, dims)]
        self.num_slots = num_slots
        self.num_loads = 0
        self._slots: OrderedDict[int, int] = OrderedDict()  # chunk -> slot, least recently used first
        self._free = list(range(num_slots))
        self._slot_of = np.zeros(len(sizes[0]), np.int64)
        self._held: list[int] = []
        self._pending: dict[int, Future[None]] = {}
        self._executor = ThreadPoolExecutor(1, "chunks") if ahead else None

    def base(self, stream: int) -> np.ndarray:
        """Return the first row in buffers[stream] of every chunk, (num_chunks,) int64."""
        return self._slot_of * self._slot_frames[stream]

    def hold(self, chunks: Iterable[int]) -> None:
        """Load these chunks and keep them until the next call.  Raises the errors of `load`."""
        chunks = list(chunks)
        if len(chunks) > self.num_slots:
            raise RuntimeError(f"{len(chunks)} chunks to hold in {self.num_slots} slots")
        self._settle(chunks)
        for chunk in chunks:
            if chunk in self._slots:
                self._slots.move_to_end(chunk)
        for chunk in chunks:
            if chunk not in self._slots:
                slot = self._take_slot(chunks)
                assert slot is not None
                try:
                    self._fill(chunk, slot)
                except BaseException:
                    self._free.append(slot)
                    raise
                self._slots[chunk] = slot
                self._slot_of[chunk] = slot
        self._held = chunks

    def expect(self, chunks: Iterable[int]) -> None:
        """Load these chunks in the background, as far as there is room beside those that are held."""
        if self._executor is None:
            return
        chunks = list(chunks)
        keep = [*self._held, *self._pending, *chunks]
        for chunk in chunks:
            if chunk in self._slots:
                continue
            slot = self._take_slot(keep)
            if slot is None:
                return
            self._slots[chunk] = slot
            self._slot_of[chunk] = slot
            self._pending[chunk] = self._executor.submit(self._fill, chunk, slot)

    def close(self) -> None:
        """Wait for the background thread and release the memory."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
        self._executor = None
        self.buffers = []

    def _settle(self, wanted: list[int]) -> None:
        """Wait for the background thread.  An error is raised only if its chunk is needed; otherwise the chunk is not
        loaded.
        """
        exceptions = {chunk: future.exception() for chunk, future in self._pending.items()}
        self._pending = {}
        faults = {chunk: fault for chunk, fault in exceptions.items() if fault is not None}
        for chunk in faults:
            self._free.append(self._slots.pop(chunk))
        for chunk, fault in faults.items():
            if chunk in wanted:
                raise fault

    def _take_slot(self, keep: list[int]) -> int | None:
        """Return a free slot, else that of the least recently used chunk outside of `keep`; None if there is none."""
        if self._free:
            return self._free.pop()
        for chunk in self._slots:
            if chunk not in keep:
                return self._slots.pop(chunk)
        return None

    def _fill(self, chunk: int, slot: int) -> None:
        outs = []
        for buffer, frames, sizes in zip(self.buffers, self._slot_frames, self._sizes):
            outs.append(buffer[slot * frames : slot * frames + int(sizes[chunk])])
        self._load(chunk, outs)
        self.num_loads += 1
