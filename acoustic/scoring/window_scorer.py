"""What scorers have in common: a network that takes a window of stacked frames and scores the middle one."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from readers.config.feature_record import FeatureRecord
from readers.errors import ModelError, ShapeError
from readers.minibatches.context import subsampled_windows

# Lattice-free MMI, with frame subsampling, tells the states of a frame apart by a few nats only: on AN4, confidences of
# right words in a transcript are above those of replaced ones in 98.5 % of the pairs, with a scale of 1 in 95.9 %.
LATTICE_FREE_SCALE = 4.0
GAUSSIAN_SCALE = 0.4  # with which confidences of Gaussians and of networks have about the same values
ONNX_SUFFIX = ".onnx"  # of model files for OnnxScorer
WINDOW = 11  # frames that an input stacks by default
LARGEST_SHOWN = 61  # window, in a message about those that fit
STEP = 16  # block sizes are rounded up to a multiple of it, with arbitrary columns, so that few sizes occur


class PartScorer(NamedTuple):
    """Scores an utterance in parts, in order.

    Attributes
    ----------
    size : int
        Columns of every part except the last.
    ahead : int
        Columns of look-ahead that a part needs, if the utterance has them.
    score : callable
        ``score(stacked, num_ahead, ends)`` returns scores (num_outputs, size), float32, for stacked frames
        (size + num_ahead, window * dim). ``ends`` says whether the last frame is the last of the utterance.
    """

    size: int
    ahead: int
    score: Callable[[np.ndarray, int, bool], np.ndarray]


class WindowScorer:
    """Base of scorers whose network takes a window of stacked frames and scores the middle one.

    Attributes
    ----------
    source : str
        The name of the model in messages.
    window : int
        Frames that the input stacks, an odd number.
    dim : int
        Rows of a frame: features and, below them, the i-vector of a network that takes one.
    ivector_dim : int
        Rows of the i-vector; 0 for a network that takes none.
    ivector_record : FeatureRecord
        Which model estimated the i-vectors of the training.
    num_outputs : int
        Rows of the scores.
    record : FeatureRecord
        How the features of the model's training were computed, as far as the model says.
    edges : (int, int)
        Columns of repeated frames that the network needs before and after an utterance, as in its training.
    """

    source: str
    window: int
    dim: int
    num_outputs: int
    ivector_dim: int = 0
    ivector_record: FeatureRecord = FeatureRecord()
    record: FeatureRecord = FeatureRecord()
    edges: tuple[int, int] = (0, 0)

    @property
    def num_values(self) -> int:
        """Values of the features of a frame, without an i-vector."""
        return self.dim - self.ivector_dim

    @property
    def subsampling(self) -> int:
        """Frames per column of scores."""
        return self.record.subsampling

    @property
    def posterior_scale(self) -> float:
        """Factor on the scores with which posteriors of phones are neither too sure nor too flat."""
        return LATTICE_FREE_SCALE if self.subsampling > 1 else 1.0

    def num_columns(self, num_frames: int) -> int:
        """Return the number of columns of scores of an utterance."""
        return -(-num_frames // self.subsampling)

    def score_windows(self, stacked: np.ndarray, step: int = STEP) -> np.ndarray:
        """Return scores (num_outputs, T), float32 in Fortran order, for stacked frames (T, window * dim), float32.

        Blocks of columns are rounded up to a multiple of `step`, so that few different sizes occur.
        """
        raise NotImplementedError

    def part_scorer(self, size: int) -> "PartScorer":
        """Return a scorer for parts of about `size` columns. Raises ModelError if it needs whole utterances."""
        return PartScorer(size, 0, lambda stacked, num_ahead, ends: self.score_windows(stacked, size))

    def score(self, frames: np.ndarray) -> np.ndarray:
        """Return the scores of an utterance: of all frames or, with frame subsampling, of every n-th from the first on.

        The first and last frame are repeated beyond the ends.

        Parameters
        ----------
        frames : array (dim, T)
            Of any float type, T > 0.

        Returns
        -------
        array (num_outputs, num_columns(T))
            float32, Fortran order.

        Raises
        ------
        ShapeError
            For frames of another dimension, no frames, or values that are not finite.
        """
        self.check_frames(frames)
        if frames.shape[1] == 0:
            raise ShapeError(f"features: {self._shape_text(frames)}")
        before, after = self.edges
        beside = self.window // 2
        count = self.num_columns(frames.shape[1])
        rows = np.ascontiguousarray(frames.T, np.float32)
        stacked = subsampled_windows(rows, (beside, beside), self.subsampling, -before, before + count + after)
        scores = self.score_windows(stacked)
        return scores[:, before : before + count]

    def require_features(self, record: FeatureRecord, where: str = "features") -> None:
        """Raise ModelError if features differ from those of the model's training, as far as both are known.

        Parameters
        ----------
        record : FeatureRecord
            How the features were computed, such as ``feature_record(config, [rate])``.
        where : str
            The name of the features in the message.

        Raises
        ------
        ModelError
        """
        fault = record.mismatch(where, self.record, f"with which {self.source} was trained")
        if fault:
            raise ModelError(fault)

    def check_frames(self, frames: np.ndarray) -> None:
        """Raise ShapeError unless `frames` (dim, T) are finite; T may be 0."""
        if frames.ndim != 2 or frames.shape[0] != self.dim:
            raise ShapeError(f"features: {self._shape_text(frames)}")
        if not np.isfinite(frames).all():
            bad = int(np.flatnonzero(~np.isfinite(frames).all(axis=0))[0])
            raise ShapeError(f"features: frame {bad} has a value that is infinite or NaN; expected finite values")

    def window_hint(self, rows: int) -> str:
        """Return the end of a message about frames with `rows` rows: the window that fits them, "" if there is none."""
        window, remainder = divmod(self.num_values * self.window, rows) if rows else (0, 1)
        return f"; -dnn_window_size {window} fits" if not remainder and window % 2 and window != self.window else ""

    def _shape_text(self, frames: np.ndarray) -> str:
        return (
            f"a matrix of {'x'.join(map(str, frames.shape))}; expected {self.dim} rows and at least "
            f"one column (frame): the model's input of {self.num_values * self.window} values is a window of "
            f"{self.window} frames{self.window_hint(frames.shape[0] - self.ivector_dim)}"
            f"{f', and its i-vector has {self.ivector_dim}' if self.ivector_dim else ''}"
        )


def chosen_window(where: str, record: FeatureRecord, window: int | None, ignore_mismatch: bool) -> int:
    """Return the number of stacked frames: `window`, by default that of the model, or 11 if the model has no record.

    Raises ModelError if both are given and differ, unless `ignore_mismatch`, and if the window of the model is not
    symmetric.
    """
    if record.context is None or (window is not None and ignore_mismatch):
        return WINDOW if window is None else window
    past, future = record.context
    if past != future:
        raise ModelError(
            f"{where}: was trained with {past} frames of context on the left and {future} on the right; expected as "
            "many on both sides"
        )
    if window not in (None, record.window):
        raise ModelError(
            f"-dnn_window_size {window}; expected {record.window}, the window with which {where} was trained"
        )
    return past + 1 + future


def frame_rows(where: str, rows: int, window: int) -> int:
    """Return the rows of one of the `window` frames that an input stacks. Raises ModelError if they do not divide."""
    if window < 1 or window % 2 == 0:
        raise ModelError(f"{where}: window of {window} frames (-dnn_window_size); expected an odd number")
    if rows % window:
        fitting = [f"{n} ({rows // n} values per frame)" for n in range(1, LARGEST_SHOWN + 1, 2) if rows % n == 0]
        raise ModelError(
            f"{where} has {rows} rows; expected a multiple of the window, {window} (-dnn_window_size); these fit: "
            f"{', '.join(fitting)}"
        )
    return rows // window
