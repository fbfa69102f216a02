"""Steps that several recipes have: features of a list of audio files, trainings, a bundle of what was trained."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from decoder import lm
from decoder.recognizer.jobs.decoding import options as decoding
from readers.common.text import read_lines
from recipes.packing import LAYOUTS, AboutOptions, LayoutName, PackOptions, PartOptions
from recipes.stages import call

PRUNING = 1e-7  # of mixed language models: 22 to 7 n-grams of a word, and 5 % more perplexity on speechocean762


def extract(
    config: Path, script: Path, workers: int, *, report: Path | None = None, scp: Path | None = None,
    speech_mean: Path | None = None,
) -> int:  # fmt: skip
    """Extract the features of a list.  report, scp: what is written besides; speech_mean: the only file written."""
    from recipes.cli.hcopy import HcopyCommandOptions

    options = HcopyCommandOptions(config=config, script=script, report=report, scp=scp, speech_mean=speech_mean)
    return call("hcopy", options, workers=workers)


def extract_with_mean(config: Path, with_mean: Path, script: Path, workers: int, *, report: Path) -> int:
    """Write a configuration with the mean of the speech in a list, and extract the features of the list with it."""
    lost = extract(config, script, workers, speech_mean=with_mean)
    return lost | extract(with_mean, script, workers, report=report)


def cntk(arguments: Sequence[str]) -> int:
    """Run the commands of a configuration.  arguments: files and settings, as on the command line of `cntk`."""
    from recipes.cli.cntk import config_options

    return call("cntk", config_options(list(arguments)))


def estimate(
    text: Path, output: Path, dictionary: Path | None = None, *, order: int, method: Literal["kn", "wb"] = "kn",
    vocabulary: Path | None = None, unk: str | None = None,
) -> int:  # fmt: skip
    """Estimate a language model of a text.  dictionary: has its words; the other arguments are as in `argonaut lm`."""
    options = lm.EstimationOptions(
        texts=lm.CountedTexts(text=(text,)), dictionary=lm.VocabularyDictionary(dict=dictionary), output=output,
        order=order, method=method, vocabulary=vocabulary, unk=unk,
    )  # fmt: skip
    return call("lm", options)


def mixture_weights(models: Sequence[Path], heldout: Path) -> tuple[float, ...]:
    """Return the weights, to three decimals, with which a mixture of language models makes a text most likely."""
    from decoder.lm.mixing.mixture import best_weights
    from readers.language.arpa import read_arpa

    sentences = [line.split() for line in read_lines(heldout)]
    *weights, _ = (round(weight, 3) for weight in best_weights([read_arpa(model) for model in models], sentences))
    return (*weights, round(1 - sum(weights), 3))


def mix(models: Sequence[Path], weights: tuple[float, ...], output: Path) -> int:
    """Interpolate language models, and leave out n-grams that matter little."""
    unpruned = output.with_suffix(".whole.arpa")
    lost = call("lm", lm.InterpolationOptions(lm=tuple(models), weights=weights, output=unpruned))
    lost |= call("lm", lm.PruningOptions(lm=unpruned, threshold=PRUNING, output=output))
    unpruned.unlink()
    return lost


def align(
    graph: Path, model: Path, window: int, outmlf: Path, *, infiles: Path, words: Path, dictionary: Path,
    output_node: str = "", acweight: float | None = None,
) -> int:  # fmt: skip
    """Align words with the states of a graph, a directory of `argonaut graph`; the other arguments are as in argon."""
    options = decoding.DecodeOptions(
        graph=graph / "graph.dg", dictionary=decoding.DecodeDictionary(dict=dictionary),
        acoustic=decoding.AcousticOptions(
            infiles=infiles, am=model, cntkmap=graph / "cntkmap", window=window, output_node=output_node
        ),
        output=decoding.DecodeOutputOptions(outmlf=outmlf, detailed_alignment=True),
        search=decoding.DecodeSearchOptions(acweight=acweight),
        transcripts=decoding.TranscriptOptions(alignmlf=words),
    )  # fmt: skip
    return call("argon", options)


def make_bundle(
    experiment: Path, bundle: Path, recipe: LayoutName, *, rate: int, window: int, language: str = "en",
    rescored: bool = False,
) -> int:  # fmt: skip
    """Make a bundle of the output of a recipe.  recipe: the name of its layout; rescored: with its second pass."""
    about = AboutOptions(name=bundle.stem, language=language)
    parts = PartOptions(rate=rate, window=window)
    if rescored and (second := LAYOUTS[recipe].second_pass):
        parts = replace(parts, second_pass=experiment / second.model, second_pass_consensus=second.consensus)
    return call("pack", PackOptions(experiment=experiment, recipe=recipe, parts=parts, about=about, output=bundle))


def score_pronunciation(
    bundle: Path, *, audio: Path, scores: Path, test: Path | None, speakers: Path, also: Sequence[Path] = (),
    also_scores: Sequence[Path] = (),
) -> int:  # fmt: skip
    """Fit a map of pronunciation scores for a bundle; the other arguments are as in `argonaut pronounce --train`."""
    from recipes.cli.pronounce import CommandOptions

    options = CommandOptions(
        bundle=bundle,
        output=bundle,
        audio=(f"{audio}",),
        train=scores,
        also=tuple(also),
        also_scores=tuple(also_scores),
        test=test,
        speakers=speakers,
    )
    return call("pronounce", options)


def calibrate(bundle: Path, *, words: Path, test: Path, list: Path, fold: Path | None = None) -> int:
    """Fit the confidences of a bundle; the other arguments are as in `argonaut calibrate`."""
    from recipes.cli.calibrate import CommandOptions

    options = CommandOptions(bundle=bundle, output=bundle, words=words, test=test, list=list, fold=fold)
    return call("calibrate", options)
