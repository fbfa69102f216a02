"""Scores for the decoder: a matrix of scaled log-likelihoods for the frames of an utterance."""

import math
import threading
from pathlib import Path

import numpy as np

from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model
from acoustic.network.traversal import time_reach
from acoustic.network.unseen_classes import UNSEEN, unseen_outputs
from acoustic.scoring.chunked_forward import forward_in_chunks
from acoustic.scoring.int8_layers import use_int8
from acoustic.scoring.window_scorer import STEP, PartScorer, WindowScorer, chosen_window, frame_rows
from readers.common.environment import one_blas_thread
from readers.common.file_part import FilePart
from readers.config.feature_record import FeatureRecord
from readers.errors import ModelError
from readers.minibatches.sequence_layout import SequenceLayout

BLOCK = 512  # columns at a time: enough for an efficient matrix product


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
    int8 : bool
        Multiply weights and frames as 8-bit integers, which takes a third of the time on processors with AVX-512 VNNI
        and changes the scores slightly; see int8_layers.py.

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
        int8: bool = False,
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
            output = self.network[output].name
            self._check_node(output)
            inputs = self._inputs_of(output)
        except ModelError as error:
            raise ModelError(f"{model_path}: {error}") from error
        features, self._ivector = self._told_apart(inputs, output)
        self.record = self.network.feature_records.get(features, FeatureRecord())
        window = chosen_window(self.source, self.record, window, ignore_mismatch)
        self.output = output
        self.window = window
        self._input = features
        self._reach = time_reach(self.network[output])
        first, last = self.record.edges
        past, future = self._reach
        self.edges = int(min(first, past)), int(min(last, future))
        rows = self.network.shapes[self._input].rows
        self.ivector_dim = self.network.shapes[self._ivector].rows if self._ivector else 0
        self.ivector_record = self.network.feature_records.get(self._ivector or "", FeatureRecord())
        self.dim = frame_rows(f"{model_path}: input {self._input!r}", rows, window) + self.ivector_dim
        self.num_outputs = self.network.shapes[output].rows
        self._unseen = unseen_outputs(self.network, output)
        if int8:
            use_int8(self.network, output, self.source)
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
        requested = size
        size, ahead = self._chunks
        if not size:
            node = next((node for node in self.network.delays() if node.reach[1]), None)
            if node is not None and math.isinf(self._reach[1]):
                raise ModelError(
                    f"{self.source}: {node.where}: looks ahead to the end of the utterance; expected a network without "
                    "look-ahead, or chunks as in its training"
                )
            ahead = int(self._reach[1])
            size = max(requested, ahead)  # so that a column is computed twice at most
        engine = Engine(self.network, [self.output], threads=1)
        begins = True

        def score(stacked: np.ndarray, num_ahead: int, ends: bool) -> np.ndarray:
            nonlocal begins
            starts, stops = np.zeros((2, len(stacked), 1), bool)
            starts[0] = begins
            stops[-1] = ends
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
        num_blocks = max(-(-len(stacked) // BLOCK), 1)
        size = -(-len(stacked) // num_blocks) or 1  # equal blocks, because products with few columns are slow
        for start in range(0, len(stacked), size):
            count = min(size, len(stacked) - start)
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
