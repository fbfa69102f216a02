"""Make a bundle: one file with everything that a recogniser needs, for `argonaut transcribe` and for Python.

worked example: pack the result of a recipe
  argonaut pack exp/an4 -o an4.argo
prints
  an4.argo: 12.3 MB, WER 4.9% (test, 130 utterances, 773 words)
after which
  argonaut transcribe an4.argo speech.wav
prints the words of speech.wav.

Without a recipe, name the parts:
  argonaut pack --model net.dnn --graph graph/graph.dg --lm words.arpa --features fbank.hcopy --dict words.dict \\
                --rate 16000 -o my.argo
The tables that `argonaut graph` wrote beside the graph are packed, too.  The search options are those that
`argon --save-defaults` stored in the graph, or those of --tuned.

The result is a zip file without compression, whose members are mapped into memory where they lie; a name that does not
end in .argo becomes a directory.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from readers.errors import ConfigError


@dataclass(frozen=True)
class Layout:
    """Where a recipe writes the parts, relative to its output directory.

    fold: map of phones for the error rate.
    """

    model: str
    graph: str
    lm: str
    features: str
    dictionary: str
    tuned: str
    references: str
    hypotheses: str
    unit: str
    fold: str = ""


LAYOUTS = {
    "timit-words": Layout(
        "model/cntkSpeech.dnn", "words/graph.dg", "words/lm.arpa", "config/plain.hcopy", "words/words.dict",
        "tune/words.json", "labels/test.words.mlf", "decode/words/test.mlf", "WER",
    ),
    "timit": Layout(
        "model/cntkSpeech.dnn", "graph/graph.dg", "lm.arpa", "config/plain.hcopy", "labels/phones.dict",
        "tune/phones.json", "labels/test.phones.mlf", "decode/phones/test.mlf", "PER", "timit39",
    ),
    "lvcsr": Layout(
        "lvcsr/tied/model/tied.dnn", "lvcsr/tied/graph/trained/graph.dg", "lm/trained.arpa", "config/plain.hcopy",
        "words.dict", "lvcsr/tied/tune/trained.json", "labels/test.words.mlf",
        "lvcsr/tied/decode/trained/test.mlf", "WER",
    ),
    "an4": Layout(
        "model/an4.dnn", "graph/trained/graph.dg", "lm/trained.arpa", "config/plain.hcopy", "words.dict",
        "tune/trained.json", "labels/test.words.mlf", "decode/trained/test.mlf", "WER",
    ),
    "own": Layout(
        "final/model/own.dnn", "graph/trained/graph.dg", "lm/trained.arpa", "config/plain.hcopy", "words.dict",
        "final/tune/trained.json", "labels/test.words.mlf", "final/decode/trained/test.mlf", "WER",
    ),
}  # fmt: skip
LAYOUTS["own-given"] = replace(
    LAYOUTS["own"], graph="graph/given/graph.dg", lm="lm/given.arpa", tuned="final/tune/given.json",
    hypotheses="final/decode/given/test.mlf",
)  # fmt: skip
for _network in ("blstm", "dnn-blstm"):
    LAYOUTS[f"an4-{_network}"] = replace(
        LAYOUTS["an4"], model=f"{_network}/model/an4.{_network}", tuned=f"{_network}/tune/trained.json",
        hypotheses=f"{_network}/decode/trained/test.mlf",
    )  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", metavar="EXPERIMENT", help="output directory of a recipe")
    parser.add_argument("-o", "--output", required=True, metavar="BUNDLE", help="NAME.argo, or a new directory")
    parser.add_argument("--recipe", choices=LAYOUTS, help="recipe of EXPERIMENT (default: from its files)")
    parts = parser.add_argument_group("parts, instead of those of EXPERIMENT")
    parts.add_argument("--model", metavar="FILE", help="acoustic model")
    parts.add_argument("--graph", metavar="FILE", help="compiled graph, with the tables of argonaut graph beside it")
    parts.add_argument("--lm", metavar="FILE", help="language model in ARPA format")
    parts.add_argument("--features", metavar="FILE", help="configuration of HCopy")
    parts.add_argument("--dict", metavar="FILE", help="pronunciation dictionary, for alignment")
    parts.add_argument(
        "--ivector-model", metavar="FILE", help="model of i-vectors, for an acoustic model that takes them"
    )
    parts.add_argument("--tuned", metavar="FILE", help="search options, tune.json of a recipe")
    parts.add_argument("--window", type=int, metavar="N", help="frames in the input of the model (default: as trained)")
    parts.add_argument("--output-node", metavar="NODE", help="node of the log-likelihoods (ScaledLogLikelihood)")
    parts.add_argument("--rate", type=int, metavar="HZ", help="sampling rate of the audio (default: as trained)")
    about = parser.add_argument_group("description")
    about.add_argument("--name", default="", help="name of the bundle (default: that of the model)")
    about.add_argument("--language", default="", metavar="TAG", help="language, such as en or de-AT")
    about.add_argument("--licence", default="", metavar="TEXT", help="terms of use")


def run(arguments: argparse.Namespace) -> int:
    from decoder.recognizer import pack

    bundle = pack(bundle_parts(arguments), arguments.output)
    measured = "".join(f", {one}" for one in bundle.description.errors)
    print(f"{bundle.path}: {bundle.size / 1e6:.1f} MB{measured}")
    return 0


def bundle_parts(arguments: argparse.Namespace):
    """Return the parts that the arguments name, the others from the experiment."""
    from decoder.recognizer import BundleParts
    from recipes.cli.parser import version_text

    found: dict[str, Path] = {}
    errors = ()
    if arguments.experiment is not None:
        root = Path(arguments.experiment)
        layout = LAYOUTS[arguments.recipe or recipe_of(root)]
        found = files_of(root, layout)
        if not any((arguments.model, arguments.graph, arguments.lm, arguments.tuned, arguments.output_node)):
            errors = measured_errors(root, layout)
    given = {"model": arguments.model, "graph": arguments.graph, "lm": arguments.lm, "features": arguments.features}
    given |= {"dictionary": arguments.dict, "tuned": arguments.tuned, "ivectors": arguments.ivector_model}
    found |= {name: Path(path) for name, path in given.items() if path}
    for name in ("model", "graph", "features"):
        if name not in found:
            raise ConfigError(f"command line: --{name} is missing; expected it, or an EXPERIMENT")
    tuned = found.pop("tuned", None)
    return BundleParts(
        **found,
        sample_rate=sample_rate(found["model"], arguments.rate),
        window=arguments.window,
        **({"output": arguments.output_node} if arguments.output_node else {}),
        options={} if tuned is None else tuned_options(tuned),
        name=arguments.name,
        language=arguments.language,
        licence=arguments.licence,
        errors=errors,
        created_by=version_text("argonaut"),
    )


def recipe_of(root: Path) -> str:
    """Return the recipe that wrote an experiment.  Raises ConfigError if there is no complete one."""
    for name, layout in LAYOUTS.items():
        if (root / layout.model).exists() and (name != "timit-words" or (root / layout.graph).exists()):
            return name
    root.stat()  # a missing directory is no directory without a model
    models = ", ".join(dict.fromkeys(layout.model for layout in LAYOUTS.values()))
    raise ConfigError(f"{root}: none of {models}; expected the output of one of the recipes {', '.join(LAYOUTS)}")


def files_of(root: Path, layout: Layout) -> dict[str, Path]:
    """Return the parts of an experiment by their names in BundleParts, and the tuned options."""
    return {name: root / getattr(layout, name) for name in ("model", "graph", "lm", "features", "dictionary", "tuned")}


def measured_errors(root: Path, layout: Layout) -> tuple:
    """Return the error rate on the test set; nothing if it has not been decoded."""
    from decoder.recognizer import MeasuredErrors
    from decoder.scoring.error_counts import score
    from readers.tables.timit import read_phone_map
    from recipes.cli.score import FOLDS, read_words

    references, hypotheses = root / layout.references, root / layout.hypotheses
    if not references.exists() or not hypotheses.exists():
        return ()
    fold = read_phone_map(FOLDS[layout.fold], -1) if layout.fold else None
    words = read_words(references)
    total = score(words, read_words(hypotheses), fold=fold).total
    return (MeasuredErrors("test", layout.unit, round(total.word_error_rate, 2), len(words), total.num_words),)


def sample_rate(model: Path, given: int | None) -> int:
    """Return the sample rate of a model's training: the one given, or the only one that the model knows.

    Raises ConfigError if there is none, and for a given one that is not among those of the model.
    """
    from acoustic.network.model_file import load_model
    from decoder.recognizer.description import MAX_RATE
    from decoder.recognizer.packing import refuse_onnx

    refuse_onnx(model)
    rates = {round(rate) for record in load_model(model).feature_records.values() for rate in record.rates}
    if given is not None:
        if not 1 <= given <= MAX_RATE:
            raise ConfigError(f"command line: --rate {given}; expected 1 to {MAX_RATE}")
        if rates and given not in rates:
            known = " or ".join(str(rate) for rate in sorted(rates))
            raise ConfigError(f"command line: --rate {given}; expected {known}, with which {model} was trained")
        return given
    if len(rates) != 1:
        raise ConfigError(f"{model}: does not know one sample rate; expected --rate, that of the audio of its training")
    return rates.pop()


def tuned_options(path: Path) -> dict[str, float]:
    from recipes.decoding import read_choice

    return read_choice(path)
