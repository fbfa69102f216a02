"""What the decoder sees of the acoustic model: a matrix of scaled log-likelihoods for the frames of an utterance."""

import threading
from pathlib import Path
from typing import Any

import numpy as np

from acoustic import blas
from acoustic.chunks import forward_in_chunks
from acoustic.engine import Engine
from acoustic.model_file import load_model
from acoustic.network import Network
from readers.context import pad_edges, windows
from readers.errors import ModelError, ShapeError

BLOCK = 512  # columns at a time: enough for the matrix product, little memory
UNSEEN = -1e10  # of an output that training never saw; Kaldi's nnet-forward disables such classes too
STEP = 64  # blocks are rounded up to a multiple of this, whatever lies there, so that few layouts are made


class AcousticScorer:
    """Computes an output node of a model for whole utterances.

    model_path: a model file; output: the node, log-likelihoods (natural log) by convention; window: frames that the
    network's input stacks, the middle one being the frame scored; device: as for Network.  A recurrent network sees an
    utterance as one sequence, or, as latency-controlled training does, in chunks: (frames, more frames that follow and
    are looked at).  Any number of threads may call `score`; each gets its own buffers and uses one
    processor.  Raises ModelError and OSError.
    """

    def __init__(
        self,
        model_path: str | Path,
        output: str = "ScaledLogLikelihood",
        window: int = 11,
        device: str | None = None,
        chunks: tuple[int, int] | None = None,
    ) -> None:
        self.network = load_model(model_path, device=device)
        if window < 1 or window % 2 == 0:
            raise ModelError(f"{model_path}: window of {window} frames; expected an odd number")
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
        if len(inputs) != 1:
            raise ModelError(f"{model_path}: {output!r} depends on inputs {', '.join(inputs) or 'none'}; expected one")
        self.output, self.window, self._input = output, window, inputs[0]
        rows = self.network.shapes[self._input].rows
        if rows % window:
            raise ModelError(
                f"{model_path}: input {self._input!r} has {rows} rows; expected a multiple of the window, {window}"
            )
        self._dim = rows // window
        self._unseen = unseen_outputs(self.network, output)
        self._local = threading.local()

    def _inputs_of(self, output: str) -> list[str]:
        """The inputs of an output that follows from them frame by frame, or along a sequence where it is recurrent.

        What combines frames otherwise is refused: blocks of frames are filled up with others.
        """
        engine = Engine(self.network, [output])
        self._recurrent = bool(self.network.delays())
        mixing = None if self._recurrent else engine.graph.mixing_node()
        if mixing is not None:
            raise ModelError(f"{mixing.where}: combines frames; expected an output that follows from each by itself")
        return engine.inputs

    def _check_node(self, output: str) -> None:
        shape = self.network.shapes[self.network[output].name]
        if shape.cols is not None:
            raise ModelError(f"{self.network[output].where}: {shape}; expected one column per frame")
        for node in self.network.precomputed():
            if node.value is None:
                raise ModelError(f"{node.where}: not computed; expected a trained model")

    @property
    def dim(self) -> int:
        """Rows of the frames that `score` takes, before stacking."""
        return self._dim

    @property
    def num_outputs(self) -> int:
        """Rows of what `score` gives."""
        return self.network.shapes[self.output].rows

    def score(self, frames: np.ndarray) -> np.ndarray:
        """The output node for every frame.

        frames (dim, T), any float type, T > 0; returns (num_outputs, T) float32, Fortran order.  Beyond the ends the
        first and last frame are repeated.  Outputs that never occurred in training get UNSEEN.  Raises ShapeError,
        also for values that are not finite.
        """
        if frames.ndim != 2 or frames.shape[0] != self.dim or frames.shape[1] == 0:
            found = "x".join(map(str, frames.shape))
            raise ShapeError(
                f"features: a matrix of {found}; expected {self.dim}x*, at least one frame, since the model's input of "
                f"{self.dim * self.window} values stacks {self.window} frames"
            )
        if not np.isfinite(frames).all():
            bad = int(np.flatnonzero(~np.isfinite(frames).all(axis=0))[0])
            raise ShapeError(f"features: frame {bad} holds a value that is infinite or no number; expected finite ones")
        num_frames, left = frames.shape[1], self.window // 2
        padded = np.empty((num_frames + self.window - 1, self.dim), np.float32)
        pad_edges(frames.T, padded, left)
        stacked = windows(padded, self.window)
        with blas.one_thread:
            scores = self._score_sequence(stacked) if self._recurrent else self._score_blocks(stacked)
        scores[self._unseen] = UNSEEN
        return scores

    def _score_blocks(self, stacked: np.ndarray) -> np.ndarray:
        """Each of the frames (T, rows) by itself, a block at a time."""
        scores = np.empty((self.num_outputs, len(stacked)), np.float32, order="F")
        engine, block = self._mine()
        for start in range(0, len(stacked), BLOCK):
            count = min(BLOCK, len(stacked) - start)
            filled = min(-(-count // STEP) * STEP, BLOCK)
            block[:, :count] = stacked[start : start + count].T
            engine.forward({self._input: block[:, :filled]})
            value = self.network.backend.to_host(engine.value(self.output))
            scores[:, start : start + count] = value[:, :count]
        return scores

    def _score_sequence(self, stacked: np.ndarray) -> np.ndarray:
        """The frames (T, rows) as one sequence, from beginning to end or in chunks."""
        engine, _ = self._mine()
        values = forward_in_chunks(engine, {self._input: stacked.T}, [self.output], *self._chunks)
        return np.asarray(values[self.output], np.float32)

    def _mine(self) -> tuple[Engine, Any]:
        """This thread's engine and input block."""
        if not hasattr(self._local, "engine"):
            rows = self.dim * self.window
            self._local.engine = Engine(self.network, [self.output], threads=1)
            self._local.block = np.zeros((rows, BLOCK), np.float32, order="F")
        return self._local.engine, self._local.block


def unseen_outputs(network: Network, output: str) -> np.ndarray:
    """Rows of the output whose prior, the mean of the labels, is 0: divided by it they would outscore everything."""
    rows = network.shapes[output].rows
    priors = [
        network.backend.to_host(node.value).ravel()
        for node in network.precomputed()
        if node.type_name == "Mean" and node.operands[0].name in network.labels
    ]
    return np.flatnonzero(np.any([prior == 0 for prior in priors if prior.size == rows], axis=0))
