"""Steps that several recipes have: features of a list of audio files, trainings, a bundle of what was trained."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from decoder import lm
from decoder.recognizer.jobs.decoding import options as decoding
from recipes.packing import AboutOptions, PackOptions, PartOptions
from recipes.stages import call


def extract(config: Path, script: Path, workers: int, **files: Path) -> int:
    """Extract the features of a list.  files: what is written besides, `report`, `scp`, or only `speech_mean`."""
    from recipes.cli.hcopy import HcopyCommandOptions

    return call("hcopy", HcopyCommandOptions(config=config, script=script, **files), workers=workers)


def extract_with_mean(config: Path, with_mean: Path, script: Path, workers: int, **files: Path) -> int:
    """Write a configuration with the mean of the speech in a list, and extract the features of the list with it."""
    lost = extract(config, script, workers, speech_mean=with_mean)
    return lost | extract(with_mean, script, workers, **files)


def cntk(arguments: Sequence[str]) -> int:
    """Run the commands of a configuration.  arguments: files and settings, as on the command line of `cntk`."""
    from recipes.cli.cntk import config_options

    return call("cntk", config_options(list(arguments)))


def estimate(text: Path, output: Path, dictionary: Path | None = None, **model: Any) -> int:
    """Estimate a language model of a text.  dictionary: has its words; model: order, method, vocabulary and unk."""
    texts, words = lm.TextOptions(text=text), lm.VocabularyDictionary(dict=dictionary)
    return call("lm", lm.EstimationOptions(texts=texts, dictionary=words, output=output, **model))


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


def make_bundle(experiment: Path, bundle: Path, recipe: str, *, rate: int, window: int, language: str = "en") -> int:
    """Make a bundle of the output of a recipe.  recipe: the name of its layout."""
    about = AboutOptions(name=bundle.stem, language=language)
    parts = PartOptions(rate=rate, window=window)
    return call("pack", PackOptions(experiment=experiment, recipe=recipe, parts=parts, about=about, output=bundle))


def calibrate(bundle: Path, **recordings: Path) -> int:
    """Fit the confidences of a bundle.  recordings: words, test, list and fold of `argonaut calibrate`."""
    from recipes.cli.calibrate import CommandOptions

    return call("calibrate", CommandOptions(bundle=bundle, output=bundle, **recordings))
