"""The jobs that make new n-gram models of others: interpolation and pruning, from ARPA files to an ARPA file."""

from dataclasses import dataclass, replace

import numpy as np

from decoder.lm.mixing.mixture import interpolate, text_probabilities, weights_for
from decoder.lm.mixing.pruning import prune
from decoder.lm.options import InterpolationOptions, PruningOptions, TextOptions
from decoder.lm.texts.reading import read_sentences
from readers.common.arrays import Float64Array
from readers.common.files import require_writable, write_lines
from readers.common.report import silent
from readers.language.arpa import Arpa, read_arpa, write_arpa


@dataclass(frozen=True)
class Interpolation:
    """An interpolated model, the weights of its components, and how well these predict the held-out text.

    Attributes
    ----------
    model : Arpa or None
        The mixture as one model, if it was to be written.
    weights : tuple of float
    perplexities : tuple of float
        Of each component on the predictions that all components allow; empty without a held-out text.
    perplexity : float
        Of the sum of weighted probabilities on the same predictions; NaN without a held-out text.
    num_predicted : int
        The number of these predictions.
    num_impossible : tuple of int
        Of each component, predictions of probability 0 that another one allows.
    """

    model: Arpa | None
    weights: tuple[float, ...]
    perplexities: tuple[float, ...] = ()
    perplexity: float = float("nan")
    num_predicted: int = 0
    num_impossible: tuple[int, ...] = ()


def interpolate_models(options: InterpolationOptions) -> Interpolation:
    """Interpolate n-gram models; write the mixture as one model, or the list of the models and weights.

    Parameters
    ----------
    options : InterpolationOptions

    Returns
    -------
    Interpolation

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file, and for a text without a word of the models.

    Examples
    --------
    ``interpolate_models(InterpolationOptions(lm=("talks.arpa", "books.arpa"), heldout="dev.txt", output="lm.arpa"))``
    """
    for path in filter(None, (options.output, options.collection)):
        require_writable(path, [*options.lm, options.heldout])
    models = [read_arpa(path) for path in options.lm]
    result = Interpolation(None, options.weights)
    if options.heldout:
        sentences = read_sentences(TextOptions(text=(options.heldout,)), silent)
        result = _weighed(text_probabilities(models, sentences))
    if options.collection:
        entries = [f"{path} {weight:.10g}" for path, weight in zip(options.lm, result.weights) if weight > 0]
        write_lines(options.collection, entries)
    if options.output:
        result = replace(result, model=interpolate(models, result.weights))
        assert result.model is not None
        write_arpa(options.output, result.model)
    return result


def _weighed(probability: Float64Array) -> Interpolation:
    """Return the best weights and the perplexities, given the probabilities (models, predictions) of a text."""
    weights = weights_for(probability)
    possible = probability[:, (probability > 0).all(axis=0)]
    if not possible.size:
        return Interpolation(None, weights)
    mixed = np.array(weights) @ possible
    return Interpolation(
        None,
        weights,
        perplexities=tuple(np.exp(-np.log(possible).mean(axis=1)).tolist()),
        perplexity=float(np.exp(-np.log(mixed).mean())),
        num_predicted=possible.shape[1],
        num_impossible=tuple((probability == 0).sum(axis=1).tolist()),
    )


def prune_model(options: PruningOptions) -> tuple[Arpa, Arpa]:
    """Prune an n-gram model, write the result to `options.output`, and return the model before and after.

    Parameters
    ----------
    options : PruningOptions

    Returns
    -------
    (before, after) : tuple of Arpa

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file, and for a model that lacks the prefix or suffix of an n-gram.
    """
    require_writable(options.output, [options.lm])
    before = read_arpa(options.lm)
    after = prune(before, options.threshold)
    write_arpa(options.output, after)
    return before, after
