"""Scores from networks of other toolkits: ONNX models, run by onnxruntime.

The model takes (frames, rows) and returns (frames, outputs), one row per frame, for any number of frames, as
`action=export` writes it. onnxruntime is imported when a model is opened.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.export.onnx_export import FEATURE_RECORDS, require_package
from acoustic.network.model_file import read_feature_records
from acoustic.network.unseen_classes import UNSEEN
from acoustic.scoring.window_scorer import STEP, PartScorer, WindowScorer, chosen_window, frame_rows
from readers.common.file_part import FilePart
from readers.common.text import parse_json
from readers.config.feature_record import FeatureRecord
from readers.errors import ArgonautError, ModelError, ShapeError

SAME_SCORES = 1e-3  # largest difference, relative to the largest score, between a frame alone and among others


class OnnxScorer(WindowScorer):
    """Scorer of utterances by an output of an ONNX model.

    Any number of threads may call `score`; each call uses one processor. If the scores of a frame depend on its
    neighbours, the model always gets whole utterances.

    Parameters
    ----------
    model_path : str or Path
    output : str, optional
        The name of the output; by default the only one.
    window : int, optional
        Frames that the input stacks; the middle one is scored. By default as the model was trained, or 11 if the model
        does not say.
    priors : array (num_outputs,), optional
        Priors or counts of the outputs, if these are log posteriors (natural logarithm): the log priors are subtracted,
        and outputs with a prior of 0 get the score UNSEEN.
    ignore_mismatch : bool
        Take a window that is not that of the training.
    session : onnxruntime.InferenceSession, optional
        That of the model, if it has been opened.

    Raises
    ------
    ModelError
        When the file is not such a model, or onnxruntime is not installed.
    ShapeError
        When the model cannot be run.
    """

    def __init__(
        self,
        model_path: str | Path | FilePart,
        output: str | None = None,
        window: int | None = None,
        priors: Sequence[float] | np.ndarray | None = None,
        ignore_mismatch: bool = False,
        session: Any = None,
    ):
        self.source = str(model_path)
        if window is not None:
            frame_rows(self.source, window, window)
        self._session = session or open_session(model_path)
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            input_names = ", ".join(node.name for node in inputs) or "none"
            raise ModelError(f"{self.source}: inputs {input_names}; expected one")
        self.output = chosen_output(self.source, self._session, output)
        self._input = inputs[0].name
        self._dtype = {"tensor(float)": np.float32, "tensor(double)": np.float64}.get(inputs[0].type)
        shape = inputs[0].shape
        if self._dtype is None or len(shape) != 2 or not isinstance(shape[1], int) or isinstance(shape[0], int):
            raise ModelError(
                f"{self.source}: input {self._input!r} is {inputs[0].type} {shape}; expected floats, (any number of "
                "frames, rows)"
            )
        self.record = feature_record_of(self._session, self._input, self.source)
        self.window = chosen_window(self.source, self.record, window, ignore_mismatch)
        self.dim = frame_rows(f"{self.source}: input {self._input!r}", shape[1], self.window)
        self.num_outputs = 0  # not known yet
        self._probe()
        self.edges = self.record.edges if self._recurrent else (0, 0)
        self._log_priors = (
            None if priors is None else log_priors_of(self.source, np.asarray(priors, np.float64), self.num_outputs)
        )

    def _probe(self) -> None:
        """Run the model on a few frames to find the number of outputs and whether frames influence each other."""
        probe = np.random.default_rng(0).normal(size=(4, self.dim * self.window))
        together = self._run(probe)
        self.num_outputs = together.shape[1]
        alone = np.concatenate([self._run(frame[None]) for frame in probe])
        largest = np.abs(together).max(initial=1.0, where=np.isfinite(together))
        self._recurrent = not np.allclose(alone, together, atol=SAME_SCORES * float(largest))

    def score_windows(self, stacked: np.ndarray, step: int = STEP) -> np.ndarray:
        """Return scores (num_outputs, T), float32 in Fortran order, for stacked frames (T, window * dim), float32.

        The model gets all frames at once; `step` has no effect.
        """
        scores = np.array(self._run(stacked), np.float32)
        if self._log_priors is not None:
            scores -= self._log_priors
            scores[:, np.isinf(self._log_priors)] = UNSEEN
        return scores.T

    def part_scorer(self, size: int) -> PartScorer:
        """Return a scorer for parts of about `size` frames. Raises ModelError if frames influence each other."""
        if self._recurrent:
            raise ModelError(
                f"{self.source}: scores of a frame depend on the frames around it; expected a network that scores "
                "each frame alone, as streaming requires"
            )
        return super().part_scorer(size)

    def _run(self, rows: np.ndarray) -> np.ndarray:
        """Return the output of the model (frames, outputs) for rows (frames, window * dim)."""
        try:
            values = self._session.run([self.output], {self._input: np.ascontiguousarray(rows, self._dtype)})[0]
        except Exception as fault:  # the exceptions of onnxruntime have no common base
            raise ShapeError(f"{self.source}: cannot be run on {len(rows)} frames: {first_line(fault)}") from fault
        what = f"{self.source}: {self.output!r} of {len(rows)} frames is"
        if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
            kind = getattr(values, "dtype", type(values).__name__)
            raise ModelError(f"{what} {kind}; expected floating-point numbers")
        if (
            values.ndim != 2
            or len(values) != len(rows)
            or not 0 < values.shape[1] == (self.num_outputs or values.shape[1])
        ):
            raise ModelError(f"{what} {values.shape}; expected (frames, outputs)")
        return values


def open_session(model: str | Path | FilePart) -> Any:
    """Return the onnxruntime.InferenceSession of a model.

    Raises ModelError for what is no model, and without onnxruntime.
    """
    require_package("onnxruntime", f"{model}")
    import onnxruntime

    if not isinstance(model, FilePart) and not Path(model).is_file():
        raise ModelError(f"{model}: no such file; expected an ONNX model")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # utterances run in parallel
    options.log_severity_level = 4
    try:
        content = model.read_bytes() if isinstance(model, FilePart) else f"{model}"
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        for port in (*session.get_inputs(), *session.get_outputs()):
            _ = port.name, port.type, port.shape  # raises if names are not UTF-8
        _ = session.get_modelmeta().custom_metadata_map
        return session
    except Exception as fault:  # as above
        raise ModelError(f"{model}: {first_line(fault)}; expected an ONNX model") from fault


def chosen_output(source: str, session: Any, output: str | None) -> str:
    """Return the name of an output of a model, by default the only one.  Raises ModelError."""
    names = [node.name for node in session.get_outputs()]
    if output is None and len(names) != 1:
        output_names = ", ".join(names) or "none"
        raise ModelError(f"{source}: outputs {output_names}; expected one, or a name to choose it by")
    if output is not None and output not in names:
        raise ModelError(f"{source}: no output {output!r}; expected one of {', '.join(names)}")
    return output or names[0]


def log_priors_of(source: str, priors: np.ndarray, num_outputs: int) -> np.ndarray:
    """Return the log of the normalised priors (num_outputs,), float32.  Raises ModelError for others."""
    if priors.shape != (num_outputs,) or not (priors >= 0).all() or not 0 < priors.sum() < np.inf:
        raise ModelError(
            f"{source}: priors of shape {priors.shape}, sum {priors.sum():g}; expected {num_outputs} of at least 0, "
            "one for each output"
        )
    with np.errstate(divide="ignore"):
        return np.log(priors / priors.sum()).astype(np.float32)


def feature_record_of(session: Any, name: str, path: str) -> FeatureRecord:
    """Return the record of an input's features in the metadata of a model; an empty one if there is none."""
    text = session.get_modelmeta().custom_metadata_map.get(FEATURE_RECORDS)
    if text is None:
        return FeatureRecord()
    try:
        records = read_feature_records({FEATURE_RECORDS: parse_json(text)}, (name,))
    except (ArgonautError, ValueError) as fault:
        raise ModelError(f"{path}: metadata: {fault}") from fault
    return records.get(name, FeatureRecord())


def first_line(fault: Exception) -> str:
    return " ".join(str(fault).split())[:200]
