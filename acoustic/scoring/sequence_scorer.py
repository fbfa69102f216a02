"""Scores from ONNX models of whole utterances, such as CTC models of other toolkits.

The model takes a batch of features, (batch, frames, rows) or (batch, rows, frames), and perhaps the number of frames of
each utterance, as whole numbers (batch,); or a batch of samples, (batch, samples), and perhaps their numbers or a mask
(batch, samples), as wav2vec 2.0 does.  It returns (batch, columns, outputs), logarithms of probabilities or inputs
of a softmax, for the same number of columns or fewer, and perhaps the number of columns of each utterance.  NeMo
and icefall export such models.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.scoring.onnx_scorer import (
    OnnxScorer,
    chosen_output,
    feature_record_of,
    first_line,
    log_priors_of,
    open_session,
)
from acoustic.scoring.window_scorer import STEP, PartScorer, WindowScorer
from readers.common.file_part import FilePart
from readers.config.feature_record import MAX_SUBSAMPLING, FeatureRecord
from readers.errors import ModelError, ShapeError

FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64}
COUNTS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
PROBES = 400, 800  # frames of two utterances that tell how many frames are a column
SAMPLES = 40  # in place of a frame
LEAST_SUM = 1e-3  # by which a sum of probabilities differs from 1


class SequenceScorer(WindowScorer):
    """Scorer of whole utterances by an ONNX model; any number of threads may call `score`.

    The scores are logarithms of probabilities, ln softmax of the output, less the log priors if there are some.
    `subsampling` frames are a column.  A model may have a column more or less than `num_columns` says: the last one is
    left out, or repeated.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        See `open_session`; its first input is a batch.
    source : str
        Name in messages.
    output : str, optional
        Name of the output; by default the first one with floating-point numbers.
    priors : array (num_outputs,), optional
        As for `OnnxScorer`.

    Raises
    ------
    ModelError
        For a model of another form.
    ShapeError
        When the model cannot be run.
    """

    def __init__(
        self, session: Any, source: str, output: str | None = None, priors: Sequence[float] | np.ndarray | None = None
    ):
        self.source = source
        self._session = session
        self.window = 1
        features, *counts = session.get_inputs()
        self._features = features.name
        self._counts = counts[0].name if counts else None
        if features.type not in FLOATS or len(counts) > 1 or any(count.type not in COUNTS for count in counts):
            listed = ", ".join(f"{node.name} {node.type} {node.shape}" for node in session.get_inputs())
            raise ModelError(
                f"{source}: inputs {listed}; expected floats (batch, frames, rows), (batch, rows, frames) or (batch, "
                "samples), and at most the numbers of frames"
            )
        self._dtype = FLOATS[features.type]
        self._count_type = COUNTS[counts[0].type] if counts else None
        self._takes_samples = len(features.shape) == 2
        self._takes_mask = bool(counts) and len(counts[0].shape) == 2
        fixed = [axis for axis in range(1, len(features.shape)) if isinstance(features.shape[axis], int)]
        if len(fixed) != 1 and not self._takes_samples:
            raise ModelError(
                f"{source}: input {features.name!r} is {features.shape}; expected one fixed number, the rows of a frame"
            )
        self._rows_first = fixed == [1]
        self.dim = 1 if self._takes_samples else features.shape[fixed[0]]
        floats = [node.name for node in session.get_outputs() if node.type in FLOATS]
        self.output = chosen_output(source, session, output or (floats[0] if floats else None))
        self.num_outputs = 0  # not known yet
        self.record = feature_record_of(session, features.name, source)
        subsampling = self._probe()
        self.record = FeatureRecord(
            self.record.settings, self.record.rates, (0, 0), subsampling, extractor=self.record.extractor
        )
        self._log_priors = None
        if priors is not None:
            self._log_priors = log_priors_of(source, np.asarray(priors, np.float64), self.num_outputs)

    @property
    def posterior_scale(self) -> float:
        """1: fewer columns than frames do not tell of lattice-free MMI here."""
        return 1.0

    def _probe(self) -> int:
        """Run the model on two utterances to find the number of outputs, and of the frames of a column."""
        counts = [count * (SAMPLES if self._takes_samples else 1) for count in PROBES]
        noise = np.random.default_rng(0).normal(size=(counts[-1], self.dim))
        few, many = (self._run(noise[:count]) for count in counts)
        if few.min() >= 0 and np.allclose(few.sum(axis=1), 1, atol=LEAST_SUM):
            raise ModelError(
                f"{self.source}: {self.output!r} has probabilities; expected their logarithms, or inputs of a softmax"
            )
        self.num_outputs = few.shape[1]
        more = len(many) - len(few)
        subsampling = round((counts[1] - counts[0]) / more) if more > 0 else 0
        fits = 1 <= subsampling <= MAX_SUBSAMPLING
        if not fits or any(
            abs(len(rows) - count / subsampling) > 2 + subsampling for rows, count in zip((few, many), counts)
        ):
            raise ModelError(
                f"{self.source}: {len(few)} columns for {counts[0]} frames, {len(many)} for {counts[1]}; expected one "
                f"for every n-th frame, n from 1 to {MAX_SUBSAMPLING}"
            )
        return subsampling

    def score(self, frames: np.ndarray) -> np.ndarray:
        self.check_frames(frames)
        if frames.shape[1] == 0:
            raise ShapeError(f"features: {self._shape_text(frames)}")
        return self.score_windows(frames.T)

    def score_windows(self, stacked: np.ndarray, step: int = STEP) -> np.ndarray:
        """Return scores (num_outputs, num_columns(T)), float32 in Fortran order, for frames (T, dim) of an utterance.

        The model gets all frames at once; `step` has no effect.
        """
        values = self._run(stacked).astype(np.float64)
        top = values.max(axis=1, keepdims=True)
        values -= top + np.log(np.exp(values - top).sum(axis=1, keepdims=True))
        scores = values.astype(np.float32)
        if self._log_priors is not None:
            scores -= self._log_priors
        columns = np.minimum(np.arange(self.num_columns(len(stacked))), len(scores) - 1)
        return scores[columns].T

    def part_scorer(self, size: int) -> PartScorer:
        """Raise ModelError: the model needs whole utterances."""
        raise ModelError(f"{self.source}: scores whole utterances; expected another model, for audio as it arrives")

    def _run(self, rows: np.ndarray) -> np.ndarray:
        """Return the output of the model (columns, outputs) for frames (T, dim)."""
        features = rows.T if self._rows_first else rows[:, 0] if self._takes_samples else rows
        feed: dict[str, np.ndarray] = {self._features: np.ascontiguousarray(features[None], self._dtype)}
        if self._counts is not None:
            mask = np.ones((1, len(rows)), self._count_type)
            feed[self._counts] = mask if self._takes_mask else mask.sum(axis=1, dtype=self._count_type)
        try:
            values = self._session.run([self.output], feed)[0]
        except Exception as fault:  # the exceptions of onnxruntime have no common base
            raise ShapeError(f"{self.source}: cannot be run on {len(rows)} frames: {first_line(fault)}") from fault
        what = f"{self.source}: {self.output!r} of {len(rows)} frames is"
        kind = getattr(values, "dtype", np.dtype(object))
        if kind.kind != "f":
            raise ModelError(f"{what} {kind}; expected floating-point numbers")
        shape: tuple[int, ...] = getattr(values, "shape", ())
        if len(shape) != 3 or shape[0] != 1 or not shape[1] or shape[2] != (self.num_outputs or shape[2]):
            raise ModelError(f"{what} {shape}; expected (1, columns, outputs)")
        if not np.isfinite(values.max(axis=2)).all() or np.isnan(values).any():
            raise ShapeError(f"{what} not finite; expected logarithms of probabilities")
        return values[0]


def takes_sequences(session: Any) -> bool:
    """Return whether the first input of an ONNX model is a batch: of features, or of samples, (batch, samples)."""
    inputs = session.get_inputs()
    shape = inputs[0].shape if inputs else []
    return len(shape) == 3 or (len(shape) == 2 and not isinstance(shape[1], int))


def open_onnx_scorer(
    model: str | Path | FilePart,
    output: str | None = None,
    window: int | None = None,
    priors: Sequence[float] | np.ndarray | None = None,
    ignore_mismatch: bool = False,
) -> WindowScorer:
    """Return the scorer of an ONNX model, for its frames or for whole utterances; see `OnnxScorer` for the arguments.

    Raises ModelError for a window of several frames with a model of whole utterances.
    """
    session = open_session(model)
    if not takes_sequences(session):
        return OnnxScorer(model, output, window, priors, ignore_mismatch, session)
    if window not in (None, 1):
        raise ModelError(f"-dnn_window_size {window}; expected 1: {model} takes whole utterances")
    return SequenceScorer(session, f"{model}", output, priors)
