"""The sequences of a minibatch and the state that recurrent networks keep between minibatches (CNTK book 2.6.2).

Column t * S + s is step t of slot s. For a sequence that continues from an earlier minibatch, the last values of every
delayed node are held. Nothing is known of later minibatches, and gradients do not cross minibatches.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from readers.errors import ModelError, ShapeError

if TYPE_CHECKING:
    from readers.minibatches.sequence_layout import SequenceLayout


class SequenceState(NamedTuple):
    """What the sequences of a minibatch continue.

    Attributes
    ----------
    length : (S,) int
        The steps so far of the sequence in each slot; 0 for none.
    held : dict of str to array (rows, delay * S)
        The last values of each delayed node.
    """

    length: Any
    held: dict[str, Any]


class Sequences:
    """The sequences in the minibatches of one engine, one minibatch after another.

    Attributes
    ----------
    num_steps, num_slots : int
        T and S of the current minibatch.
    num_kept : int
        Steps without the context at the end that the next minibatch repeats.
    gaps : (N,) bool or None
        Columns that sums over frames leave out, without a frame or in the context; None if there are none.
    idle : (N,) bool or None
        Those of them that no gradient reaches: all but the context within sequences; None if there are none.
    whole : bool
        Whether every sequence begins and ends in this minibatch.
    """

    layout: "SequenceLayout"  #: of the current minibatch

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.num_steps = self.num_slots = self.num_kept = 0
        self.gaps: Any = None
        self.idle: Any = None
        self._length = np.zeros(0, int)  # per slot, steps so far of the current sequence; 0 for none
        self._begin = self._end = np.zeros((0, 0), int)
        self._usable: dict[int, Any] = {}
        self._usable_by: dict[tuple[int, ...], Any] = {}
        self._sources: dict[tuple[int, ...], Any] = {}
        self._held: dict[str, Any] = {}
        self.whole = False
        self._marks: tuple[object, ...] = ()  # the layout as bytes, to recognise an equal one
        self._reversal: Any = None

    def begin(self, layout: "SequenceLayout", num_columns: int) -> None:
        """Start the next minibatch.

        Raises ShapeError if the columns do not fit, ModelError for a continued sequence whose beginning is missing.
        """
        if layout.num_columns != num_columns:
            raise ShapeError(
                f"sequences of {layout.num_columns} columns; expected {num_columns}, the columns of the inputs"
            )
        slots = layout.num_sequences
        steps = layout.num_steps
        starts, ends, gaps = (np.asarray(flags, bool) for flags in (layout.starts, layout.ends, layout.gaps))
        uncounted = b"" if layout.uncounted is None else layout.uncounted.tobytes()
        marks = (slots, steps, layout.num_kept, *(flags.tobytes() for flags in (starts, ends, gaps)), uncounted)
        if self.whole and marks == self._marks:
            self.layout = layout
            return
        length = self._length if self._length.size == slots else np.zeros(slots, int)
        lost = ~starts[0] & ~gaps[0] & (length == 0)
        if lost.any():
            raise ModelError(
                f"slot {int(np.flatnonzero(lost)[0])}: continues a sequence that the previous minibatch did not hold; "
                "expected its beginning first"
            )
        self._marks = marks
        if length is not self._length:
            self._held.clear()
        step = np.arange(steps)[:, np.newaxis]
        latest = np.where(starts, step, np.iinfo(int).min)
        latest[0] = np.where(starts[0], 0, -length)
        self._begin = np.maximum.accumulate(latest, axis=0)
        self._end = np.minimum.accumulate(np.where(ends, step, steps - 1)[::-1], axis=0)[::-1]
        self._frames = ~gaps
        num_kept = layout.num_kept
        self._length = np.where(ends[num_kept - 1] | gaps[num_kept - 1], 0, num_kept - self._begin[num_kept - 1])
        self.layout = layout
        self.num_steps = steps
        self.num_slots = slots
        self.num_kept = num_kept
        self.gaps = self.idle = layout.gap_columns
        if layout.uncounted is not None:
            self.idle = replace(layout, uncounted=None).gap_columns
        self._usable.clear()
        self._usable_by.clear()
        self._sources.clear()
        self._reversal = None
        self.whole = bool((starts[0] | gaps[0]).all() and (ends[-1] | gaps[-1]).all() and num_kept == steps)
        if self.whole:
            self._held.clear()

    def forget(self) -> None:
        """Drop the held state: the next minibatch starts anew."""
        self._length = np.zeros(0, int)
        self._held.clear()

    @property
    def state(self) -> SequenceState | None:
        """What continues in the next minibatch; None if nothing does. The arrays are not changed later."""
        return SequenceState(self._length, dict(self._held)) if self._length.any() else None

    @state.setter
    def state(self, state: SequenceState | None) -> None:
        self.forget()
        if state is not None:
            self._length = state.length
            self._held = {name: self.xp.asarray(held) for name, held in state.held.items()}

    def reorder(self, slots: np.ndarray) -> None:
        """Let slot s of the next minibatch continue with the state of slot slots[s]."""
        self._length = self._length[slots]
        for name, held in self._held.items():
            steps = np.arange(held.shape[1] // self.num_slots)[:, np.newaxis]
            self._held[name] = held[:, self.xp.asarray((steps * self.num_slots + slots).ravel())]

    def usable(self, delay: int) -> Any:
        """Return (T, S) bool: where the step `delay` back (ahead if negative) belongs to the same sequence."""
        if delay not in self._usable:
            step = np.arange(self.num_steps)[:, np.newaxis]
            room = step - self._begin >= delay if delay > 0 else self._end - step >= -delay
            self._usable[delay] = self.xp.asarray(room & self._frames)
        return self._usable[delay]

    def reversal(self) -> Any:
        """Return the source column of every column when each sequence is reversed, (N,) int; gaps stay in place.

        None if a sequence is not whole.
        """
        if not self.whole:
            return None
        if self._reversal is None:
            step = np.arange(self.num_steps)[:, np.newaxis]
            steps = np.where(self._frames, self._begin + self._end - step, step)
            self._reversal = self.xp.asarray((steps * self.num_slots + np.arange(self.num_slots)).ravel())
        return self._reversal

    def usable_by(self, delays: Sequence[int]) -> Any:
        """Return (D, T, S) bool: `usable` for several delays."""
        key = tuple(delays)
        if key not in self._usable_by:
            self._usable_by[key] = self.xp.stack([self.usable(delay) for delay in delays])
        return self._usable_by[key]

    def sources(self, offsets: Sequence[int]) -> Any:
        """Return the column that lies each offset further in the same sequence, (N, K) int; its end if it is shorter.

        A negative number counts from the end of the values that are held from before. Gaps are their own source.
        """
        key = tuple(offsets)
        if key not in self._sources:
            step = np.arange(self.num_steps)[:, np.newaxis, np.newaxis]
            source_steps = np.clip(step + np.array(key), self._begin[..., np.newaxis], self._end[..., np.newaxis])
            source_steps = np.where(self._frames[..., np.newaxis], source_steps, step)
            columns = source_steps * self.num_slots + np.arange(self.num_slots)[:, np.newaxis]
            self._sources[key] = columns.reshape(-1, len(key))
        return self._sources[key]

    def held(self, name: str, rows: int, delay: int, like: Any) -> Any:
        """Return the delayed values from before this minibatch, (rows, delay * S), zeros where there are none."""
        held = self._held.get(name)
        if held is None or held.shape != (rows, delay * self.num_slots):
            held = self.xp.zeros((rows, delay * self.num_slots), dtype=like.dtype, order="F")
        return held

    def hold(self, name: str, delay: int, before: Any, values: Any) -> None:
        """Keep the last `delay` steps of a delayed node's values, which follow the values held `before`.

        The context is left out, because the next minibatch repeats it.
        """
        count = delay * self.num_slots
        values = values[:, : self.num_kept * self.num_slots]
        fewer = count - values.shape[1]
        if fewer > 0:
            values = self.xp.concatenate([before[:, before.shape[1] - fewer :], values], axis=1)
        self._held[name] = self.xp.array(values[:, values.shape[1] - count :], order="F")
