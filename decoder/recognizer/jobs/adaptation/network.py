"""Adapts the network of a bundle to speech: all weights, by small steps, close to its own outputs.

The labels of the training are a mixture of an alignment with the outputs of the bundle's network, so that little speech
moves only what it says something about.  This holds for networks that were trained with LF-MMI, too: the softmax of
their outputs is what the gradient of LF-MMI is made of.  Statistics of batch normalisation stay as they are, since
those of a few speakers would replace those of all.

References
----------
Yu, Yao, Su, Li and Seide, KL-divergence regularized deep neural network adaptation for improved large vocabulary
speech recognition, ICASSP 2013.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from acoustic.network.model_file import load_model, save_model, scoring_bytes
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from acoustic.scoring.mixture_scorer import is_mixture_model
from acoustic.scoring.window_scorer import WindowScorer
from acoustic.training.evaluation import evaluate
from acoustic.training.learner import Diverged
from acoustic.training.options import TrainingOptions
from acoustic.training.procedures.adaptation import ReferenceModel
from acoustic.training.rules import AdamW
from acoustic.training.sgd import train
from decoder.recognizer.bundle import MODEL, Bundle
from decoder.recognizer.jobs.adaptation.options import SpeechOptions
from decoder.recognizer.jobs.adaptation.speech import SpokenUtterance
from readers.common.report import Progress
from readers.common.temporary import scratch_directory
from readers.errors import ConfigError
from readers.minibatches.excerpts import ExcerptOptions
from readers.sources.arrays.array_reader import ArrayReader
from readers.sources.arrays.options import ArrayFeatures, ArrayLabels, ArrayReaderOptions

CRITERION, POSTERIORS, LABELS = "cross_entropy", "AdaptationPosteriors", "AdaptationLabels"  # nodes
UTTERANCES = 4  # of a minibatch, with frame subsampling; otherwise each is one
FEWEST, MOST = 3, 15  # epochs
MINUTES = 40.0  # of speech in all epochs, between these bounds
FROZEN = {"blendTimeConstant": 1e30, "normalizationTimeConstant": 1e30}  # statistics of batch normalisation


@dataclass(frozen=True)
class AdaptedNetwork:
    """An adapted network.

    Attributes
    ----------
    model : bytes or None
        For a bundle; None if no epoch has lowered the cross-entropy.
    epoch : int
        The best one, 0 for the network of the bundle.
    before, after : float
        Cross-entropy per column of utterances that were held out, or of the training if none was.
    """

    model: bytes | None
    epoch: int
    before: float
    after: float


def require_network(bundle: Bundle) -> None:
    """Raise ConfigError for a bundle with an ONNX model or Gaussian mixtures."""
    if is_mixture_model(bundle.native_model("adaptation")):
        raise ConfigError(f"{bundle.path}: adaptation to speech needs a network; this bundle has Gaussian mixtures")


def adapt_network(
    bundle: Bundle,
    scorer: WindowScorer,
    training: Sequence[SpokenUtterance],
    held_out: Sequence[SpokenUtterance],
    options: SpeechOptions,
    progress: Progress,
) -> AdaptedNetwork:
    """Train the network of a bundle further, and choose the epoch with the least cross-entropy of what is held out.

    Parameters
    ----------
    bundle : Bundle
    scorer : WindowScorer
        Of its network.
    training, held_out : sequence of SpokenUtterance
        With labels.
    options : SpeechOptions
    progress : callable
        As that of `train`.

    Returns
    -------
    AdaptedNetwork
    """
    network = _with_criterion(bundle, scorer)
    minutes = sum(utterance.seconds for utterance in training) / 60
    epochs = options.epochs or min(max(math.ceil(MINUTES / minutes), FEWEST), MOST)
    reader = _reader(network, training, scorer)
    validation = _reader(network, held_out or training, scorer)
    before = evaluate(network, validation).figures[CRITERION]
    best: tuple[float, int, dict[str, Any]] = (before, 0, {})

    def keep_best(row: Mapping[str, Any]) -> None:
        nonlocal best
        value = row["validation"][CRITERION]
        if value < best[0]:
            best = value, row["epoch"], {node.name: network.backend.to_host(node.value).copy() for node in learnt}

    learnt = [node for node in network.parameters() if node.needs_gradient]
    settings = TrainingOptions(
        max_epochs=epochs,
        learning_rates_per_minibatch=(options.rate,),
        rule=AdamW(decay=0.0),
        adaptation_weight=options.kl_weight,
    )
    reference = ReferenceModel(_with_criterion(bundle, scorer), POSTERIORS)
    with contextlib.suppress(Diverged):  # the epochs before it count
        train(network, reader, settings, validation, progress=progress, on_epoch=keep_best, reference=reference)
    value, epoch, weights = best
    model = _packed(bundle, weights) if epoch else None
    return AdaptedNetwork(model, epoch, before, value)


def _with_criterion(bundle: Bundle, scorer: WindowScorer) -> Network:
    """Return the network of a bundle with a criterion, and the posteriors of its outputs."""
    network = load_model(bundle.native_model("adaptation"))
    for node in network.nodes.values():
        if FROZEN.keys() <= node.settings.keys():
            node.settings.update(FROZEN)
    outputs = _before_priors(network[bundle.description.output])
    network.labels = []  # those of priors, which have values
    network.add_node("InputValue", LABELS, [], {"rows": scorer.num_outputs, "cols": 1, "tag": "label"})
    network.add_node("CrossEntropyWithSoftmax", CRITERION, [LABELS, outputs.name], {})
    network.add_node("Softmax", POSTERIORS, [outputs.name], {})
    network.criteria = [CRITERION]
    network.evaluations = []
    return network


def _before_priors(output: Node) -> Node:
    """Return the node whose softmax has the posteriors: below the subtraction of priors, if there is one."""
    if output.type_name != "Minus":
        return output
    minuend, subtrahend = output.operands
    depends = any(node.type_name == "InputValue" for node in forward_order([subtrahend], _unstored))
    return output if depends else minuend


def _unstored(node: Node) -> list[Node]:
    """Return the operands on which the value of a node depends in a pass."""
    return [] if node.is_stored else list(node.operands)


def _reader(network: Network, utterances: Sequence[SpokenUtterance], scorer: WindowScorer) -> ArrayReader:
    """Return whole utterances in the form in which the network was trained."""
    step = scorer.subsampling
    # The last rows of features are i-vectors, if the network has an input for them.
    num_values = scorer.ivector_dim
    ivector = next(name for name in network.features if network.feature_records[name].extractor) if num_values else None
    (features,) = (name for name in network.features if name != ivector)
    frames: dict[str, npt.ArrayLike] = {}
    ivectors: dict[str, npt.ArrayLike] = {}
    labels: dict[str, npt.ArrayLike] = {}
    for utterance in utterances:
        assert utterance.labels is not None
        rows = np.ascontiguousarray(utterance.features.T)
        frames[utterance.name] = rows[:, : rows.shape[1] - num_values]
        ivectors[utterance.name] = rows[:, rows.shape[1] - num_values :]
        num_frames = utterance.features.shape[1]
        # A column stands for the frames around its own, since training shifts columns by half of their distance.
        nearest = (np.arange(num_frames) + step // 2) // step
        labels[utterance.name] = utterance.labels[np.minimum(nearest, len(utterance.labels) - 1)]
    beside = scorer.window // 2
    excerpts = ExcerptOptions(subsampling=step, context=scorer.edges)
    return ArrayReader(
        {features: frames, LABELS: labels} | ({ivector: ivectors} if ivector else {}),
        ArrayReaderOptions(
            frame_mode=False, parallel=(UTTERANCES if step > 1 else 1,), excerpts=excerpts, ignores_mismatch=True
        ),
        {features: ArrayFeatures(context=(beside, beside)), LABELS: ArrayLabels(num_classes=scorer.num_outputs)},
    )


def _packed(bundle: Bundle, weights: Mapping[str, Any]) -> bytes:
    """Return the model of a bundle with other weights."""
    network = load_model(bundle.native_model("adaptation"))
    for name, value in weights.items():
        network.set_value(network[name], value)
    with scratch_directory() as directory:
        path = directory / MODEL
        save_model(network, path)
        return scoring_bytes(path, bundle.description.output, "bfloat16" if bundle.is_compact else "float32")
