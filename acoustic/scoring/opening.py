"""Opens the network of a model file, a native model or an ONNX model; and the form of its scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from readers.common.file_part import FilePart
from readers.tables.priors import read_priors

if TYPE_CHECKING:
    from acoustic.scoring.window_scorer import WindowScorer

OUTPUT = "ScaledLogLikelihood"  # node of a network, unless another one is named


class Scores(NamedTuple):
    """Acoustic scores of one utterance.

    matrix: (num_outputs, T), scaled log-likelihoods.
    period: time between columns in 100 ns units.
    seconds: duration of the audio or, if features or scores are read, of the frames.
    last: end of the last frame in 100 ns units; with frame subsampling, the last column may end later.
    """

    matrix: Any
    period: int
    seconds: float
    last: int


def open_scorer(
    model: str | Path | FilePart,
    output: str | None = None,
    window: int | None = None,
    chunks: tuple[int, int] | None = None,
    priors: str | Path | None = None,
    ignore_mismatch: bool = False,
    int8: bool = False,
) -> "WindowScorer":
    """Return the scorer of a native model, of Gaussian mixtures or, if the name ends in .onnx, of an ONNX model.

    See `AcousticScorer` for chunks and int8, which only native models take, and `OnnxScorer` for priors, which only
    ONNX models take; here they are a file.  An ONNX model may score frames or whole utterances (`SequenceScorer`).
    """
    from acoustic.scoring.window_scorer import ONNX_SUFFIX

    if not f"{model}".endswith(ONNX_SUFFIX):
        from acoustic.scoring.mixture_scorer import MixtureModel, MixtureScorer, is_mixture_model
        from acoustic.scoring.scorer import AcousticScorer

        if is_mixture_model(model):
            return MixtureScorer(MixtureModel.load(model), f"{model}")
        return AcousticScorer(
            model, output or OUTPUT, window, chunks=chunks, ignore_mismatch=ignore_mismatch, int8=int8
        )
    from acoustic.scoring.sequence_scorer import open_onnx_scorer

    return open_onnx_scorer(model, output or None, window, read_priors(priors) if priors else None, ignore_mismatch)
