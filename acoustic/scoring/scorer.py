"""Scores for the decoder: a matrix of scaled log-likelihoods for the frames of an utterance."""

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model
from acoustic.network.traversal import time_reach
from acoustic.network.unseen_classes import UNSEEN, unseen_outputs
from acoustic.scoring.chunked_forward import forward_in_chunks
from readers.common.environment import one_blas_thread
from readers.common.file_part import FilePart
from readers.config.feature_record import FeatureRecord
from readers.errors import ModelError, ShapeError
from readers.minibatches.context import subsampled_windows
from readers.minibatches.sequence_layout import SequenceLayout

BLOCK = 512  # columns at a time: enough for an efficient matrix product
WINDOW = 11  # frames that an input stacks if nobody says
LARGEST_SHOWN = 61  # window, in a message about those that fit
STEP = 64  # block sizes are rounded up to a multiple of it, with arbitrary columns, so that few sizes occur


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
        (before, after), beside = self.edges, self.window // 2
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
        window, rest = divmod(self.num_values * self.window, rows) if rows else (0, 1)
        return f"; -dnn_window_size {window} fits" if not rest and window % 2 and window != self.window else ""

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
    left, right = record.context
    if left != right:
        raise ModelError(
            f"{where}: was trained with {left} frames of context on the left and {right} on the right; expected as "
            "many on both sides"
        )
    if window not in (None, record.window):
        raise ModelError(
            f"-dnn_window_size {window}; expected {record.window}, the window with which {where} was trained"
        )
    return record.window


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


class AcousticScorer(WindowScorer):
    """Scorer of utterances by an output node of a model.

    Any number of threads may call `score`; each has its own buffers and uses one processor.

    Parameters
    ----------
    model_path : str, Path or FilePart
    output : str
        The output node, by convention log-likelihoods (natural logarithm) up to a constant.
    window : int, optional
        Frames that the network's input stacks; the middle one is scored. By default as the model was trained, or 11 if
        the model does not say.
    device : str, optional
        See Network.
    chunks : (int, int), optional
        For a recurrent network: score in chunks of so many frames with so many frames of look-ahead, as in
        latency-controlled training. By default an utterance is one sequence.
    ignore_mismatch : bool
        Take a window that is not that of the training.

    Raises
    ------
    ModelError
        When the file is not a trained model, or the output cannot be computed from one input of stacked frames.
    OSError
    """

    def __init__(
        self,
        model_path: str | Path | FilePart,
        output: str = "ScaledLogLikelihood",
        window: int | None = None,
        device: str | None = None,
        chunks: tuple[int, int] | None = None,
        ignore_mismatch: bool = False,
    ) -> None:
        self.network = load_model(model_path, device=device)
        self.source = str(model_path)
        if window is not None:
            frame_rows(self.source, window, window)
        if chunks is not None and (chunks[0] < 1 or chunks[1] < 0):
            raise ModelError(
                f"chunks of {chunks[0]} frames, {chunks[1]} ahead; expected at least 1, and 0 or more ahead"
            )
        self._chunks = chunks or (0, 0)
        try:
            self._check_node(output)
            inputs = self._inputs_of(output)
        except ModelError as error:
            raise ModelError(f"{model_path}: {error}") from error
        features, self._ivector = self._told_apart(inputs, output)
        self.record = self.network.feature_records.get(features, FeatureRecord())
        window = chosen_window(self.source, self.record, window, ignore_mismatch)
        self.output, self.window, self._input = output, window, features
        self._reach = time_reach(self.network[output])
        self.edges = tuple(int(min(pair)) for pair in zip(self.record.edges, self._reach))
        rows = self.network.shapes[self._input].rows
        self.ivector_dim = self.network.shapes[self._ivector].rows if self._ivector else 0
        self.ivector_record = self.network.feature_records.get(self._ivector or "", FeatureRecord())
        self.dim = frame_rows(f"{model_path}: input {self._input!r}", rows, window) + self.ivector_dim
        self.num_outputs = self.network.shapes[output].rows
        self._unseen = unseen_outputs(self.network, output)
        self._local = threading.local()

    def _inputs_of(self, output: str) -> list[str]:
        """Return the inputs of an output that depends on each frame alone, or on a sequence in a recurrent network.

        Other combinations of frames are refused, because blocks are filled up with unrelated frames.
        """
        engine = Engine(self.network, [output])
        self._recurrent = bool(self.network.delays())
        mixing = None if self._recurrent else engine.graph.mixing_node()
        if mixing is not None:
            raise ModelError(f"{mixing.where}: combines frames; expected an output that depends on each frame alone")
        return engine.inputs

    def _told_apart(self, inputs: list[str], output: str) -> tuple[str, str | None]:
        """Return the inputs of features and of i-vectors, which are repeated frames, without settings in the record."""
        if len(inputs) == 1:
            return inputs[0], None
        records = self.network.feature_records
        repeated = [name for name in inputs if name not in records or records[name].extractor]
        if len(inputs) == 2 and len(repeated) == 1:
            return next(name for name in inputs if name not in repeated), repeated[0]
        raise ModelError(
            f"{self.source}: {output!r} depends on inputs {', '.join(inputs) or 'none'}; expected one, or features and "
            "i-vectors, a stream with expandToUtterance or framesPerVector in the training"
        )

    def _check_node(self, output: str) -> None:
        shape = self.network.shapes[self.network[output].name]
        if shape.cols is not None:
            raise ModelError(f"{self.network[output].where}: {shape}; expected one column per frame")
        for node in self.network.precomputed():
            if node.value is None:
                raise ModelError(f"{node.where}: not computed; expected a trained model")

    def score_windows(self, stacked: np.ndarray, step: int = STEP) -> np.ndarray:
        """Return scores (num_outputs, T), float32 in Fortran order, for stacked frames (T, window * dim), float32.

        A recurrent network takes the frames as one utterance. Classes without training data get the score UNSEEN.
        """
        with one_blas_thread:
            scores = self._score_sequence(stacked) if self._recurrent else self._score_blocks(stacked, step)
        scores[self._unseen] = UNSEEN
        return scores

    def part_scorer(self, size: int) -> PartScorer:
        """Return a scorer for parts of about `size` columns of one utterance.

        A recurrent network keeps its state from part to part in an engine of its own.

        Parameters
        ----------
        size : int
            Columns; a network that runs in chunks keeps their size, and one with look-ahead takes no fewer than that.

        Returns
        -------
        PartScorer

        Raises
        ------
        ModelError
            For a recurrent network that needs the whole utterance.
        """
        if not self._recurrent:
            return super().part_scorer(size)
        given, (size, ahead) = size, self._chunks
        if not size:
            node = next((node for node in self.network.delays() if node.reach[1]), None)
            if node is not None and math.isinf(self._reach[1]):
                raise ModelError(
                    f"{self.source}: {node.where}: looks ahead to the end of the utterance; expected a network without "
                    "look-ahead, or chunks as in its training"
                )
            ahead = int(self._reach[1])
            size = max(given, ahead)  # so that a column is computed twice at most
        engine, begins = Engine(self.network, [self.output], threads=1), True

        def score(stacked: np.ndarray, num_ahead: int, ends: bool) -> np.ndarray:
            nonlocal begins
            starts, stops = np.zeros((2, len(stacked), 1), bool)
            starts[0], stops[-1] = begins, ends
            layout = SequenceLayout(1, len(stacked), starts, stops, np.zeros_like(starts), num_ahead)
            begins = False
            with one_blas_thread:
                engine.forward(self._inputs(stacked), layout=layout)
                value = self.network.backend.to_host(engine.value(self.output))
            scores = np.array(value[:, : layout.num_kept], np.float32, order="F")
            scores[self._unseen] = UNSEEN
            return scores

        return PartScorer(size, ahead, score)

    def _score_blocks(self, stacked: np.ndarray, step: int) -> np.ndarray:
        """Score the frames (T, rows) independently, a block at a time."""
        scores = np.empty((self.num_outputs, len(stacked)), np.float32, order="F")
        engine, blocks = self._thread_state()
        inputs = self._inputs(stacked)
        for start in range(0, len(stacked), BLOCK):
            count = min(BLOCK, len(stacked) - start)
            filled = min(-(-count // step) * step, BLOCK)
            for name, block in blocks.items():
                block[:, :count] = inputs[name][:, start : start + count]
            engine.forward({name: block[:, :filled] for name, block in blocks.items()})
            value = self.network.backend.to_host(engine.value(self.output))
            scores[:, start : start + count] = value[:, :count]
        return scores

    def _score_sequence(self, stacked: np.ndarray) -> np.ndarray:
        """Score the frames (T, rows) as one sequence, whole or in chunks."""
        engine, _ = self._thread_state()
        values = forward_in_chunks(engine, self._inputs(stacked), [self.output], *self._chunks)
        return np.asarray(values[self.output], np.float32)

    def _inputs(self, stacked: np.ndarray) -> dict[str, np.ndarray]:
        """Return the inputs of the network for stacked frames (T, window * dim); the i-vector is that of the middle."""
        if self._ivector is None:
            return {self._input: stacked.T}
        frames = stacked.reshape(len(stacked), self.window, self.dim)
        features = frames[:, :, : self.num_values].reshape(len(stacked), -1)
        return {self._input: features.T, self._ivector: frames[:, self.window // 2, self.num_values :].copy().T}

    def _thread_state(self) -> tuple[Engine, dict[str, np.ndarray]]:
        """Return this thread's engine and input blocks."""
        if not hasattr(self._local, "engine"):
            self._local.engine = Engine(self.network, [self.output], threads=1)
            shapes = {name: self.network.shapes[name].rows for name in self._local.engine.inputs}
            self._local.blocks = {name: np.zeros((rows, BLOCK), np.float32, "F") for name, rows in shapes.items()}
        return self._local.engine, self._local.blocks
