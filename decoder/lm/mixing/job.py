"""The jobs that make new n-gram models of others: interpolation and pruning, from ARPA files to an ARPA file."""

from dataclasses import dataclass

from decoder.lm.mixing.mixture import best_weights, interpolate
from decoder.lm.mixing.pruning import prune
from decoder.lm.options import InterpolationOptions, PruningOptions
from decoder.lm.texts import without_marks
from readers.common.files import require_writable
from readers.language.arpa import Arpa, read_arpa, write_arpa
from readers.language.sentences import TextPart, read_part


@dataclass(frozen=True)
class Interpolation:
    """An interpolated model and the weights of its components."""

    model: Arpa
    weights: tuple[float, ...]


def interpolate_models(options: InterpolationOptions) -> Interpolation:
    """Interpolate n-gram models, and write the mixture to `options.output` as one model.

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
    require_writable(options.output, [*options.lm, options.heldout])
    models = [read_arpa(path) for path in options.lm]
    weights = options.weights
    if options.heldout:
        weights = best_weights(models, list(without_marks(read_part(TextPart(options.heldout)))))
    model = interpolate(models, weights)
    write_arpa(options.output, model)
    return Interpolation(model, weights)


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
