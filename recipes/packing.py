"""The job that makes a bundle, of the output of a recipe or of files that are named one by one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from readers.common.environment import program_version
from readers.common.temporary import temporary_directory
from readers.config.options import Options, group, option
from readers.errors import ConfigError

if TYPE_CHECKING:
    from decoder.recognizer import Bundle, MeasuredErrors

MAX_RATE = 1_000_000  # Hz, as in the description of a bundle
PHONE_MAP = Path(__file__).parent / "timit" / "data" / "phones.61-48-39.txt"
LayoutName = Literal[
    "timit-words", "timit", "lvcsr", "an4", "own", "own-given", "own-lfmmi", "own-lfmmi-given", "an4-blstm",
    "an4-dnn-blstm",
]  # fmt: skip
Files = dict[str, Path]  # by the names in BundleParts, and the tuned options


@dataclass(frozen=True)
class Layout:
    """Where a recipe writes the parts, relative to its output directory.

    fold: map of phones for the error rate; aligner, aligner_graph: a network that aligns, and a graph of its phone
    models; aligner_window, aligner_node: the frames in its input, and its output node.
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
    fold: Path | None = None
    aligner: str | None = None
    aligner_graph: str | None = None
    aligner_window: int | None = None
    aligner_node: str | None = None

    def files(self, root: Path) -> Files:
        """Return the parts of an experiment."""
        names = ("model", "graph", "lm", "features", "dictionary", "tuned", "aligner", "aligner_graph")
        return {name: root / place for name in names if (place := getattr(self, name)) is not None}


LAYOUTS: dict[LayoutName, Layout] = {
    "timit-words": Layout(
        "model/cntkSpeech.dnn", "words/graph.dg", "words/lm.arpa", "config/plain.hcopy", "words/words.dict",
        "tune/words.json", "labels/test.words.mlf", "decode/words/test.mlf", "WER",
    ),
    "timit": Layout(
        "model/cntkSpeech.dnn", "graph/graph.dg", "lm.arpa", "config/plain.hcopy", "labels/phones.dict",
        "tune/phones.json", "labels/test.phones.mlf", "decode/phones/test.mlf", "PER", PHONE_MAP,
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
LAYOUTS["own-lfmmi"], LAYOUTS["own-lfmmi-given"] = (
    replace(
        LAYOUTS[name], model="final/model/own.tdnnf", graph=f"final/{LAYOUTS[name].graph}",
        aligner="first/model/own.dnn", aligner_graph="graph/trained/graph.dg",
        aligner_window=21, aligner_node="HLast",
    )
    for name in ("own", "own-given")
)  # fmt: skip
LAYOUTS["an4-blstm"], LAYOUTS["an4-dnn-blstm"] = (
    replace(
        LAYOUTS["an4"], model=f"{network}/model/an4.{network}", tuned=f"{network}/tune/trained.json",
        hypotheses=f"{network}/decode/trained/test.mlf",
    )
    for network in ("blstm", "dnn-blstm")
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PartOptions(Options):
    """The files of a bundle, and how its model is used."""

    model: Path | None = option(None, "acoustic model; also an ONNX model, NAME.onnx")
    graph: Path | None = option(None, "compiled graph, with the tables of argonaut graph beside it")
    lm: Path | None = option(None, "language model in ARPA format")
    features: Path | None = option(None, "configuration of HCopy")
    dict: Path | None = option(None, "pronunciation dictionary, for alignment")
    tokens: Path | None = option(
        None,
        "outputs of a model with CTC, as `argonaut graph` reads them: the graph is made of them, {lm} and {dict}, in "
        "place of {graph}",
    )
    blank: str | None = option(None, "name of the blank among {tokens}, as for `argonaut graph`", metavar="TOKEN")
    ivector_model: Path | None = option(None, "model of i-vectors, for an acoustic model that takes them")
    g2p: Path | None = option(None, "model of argonaut g2p train, for words that the dictionary lacks")
    second_pass: Path | None = option(None, "recurrent language model that rescores lattices")
    second_pass_weight: float = option(0.5, "share of {second_pass} in ln P of a word", least=0, most=1)
    aligner: Path | None = option(
        None, "network that aligns instead of {model}; with shorter frames, its boundaries are better"
    )
    aligner_graph: Path | None = option(None, "a graph of its phone models; only the tables beside it are taken")
    aligner_window: int | None = option(None, "frames in its input (default: as trained)", least=1)
    aligner_node: str | None = option(None, "node of its log-likelihoods (ScaledLogLikelihood)", metavar="NODE")
    tuned: Path | None = option(None, "search options, tune.json of a recipe")
    window: int | None = option(None, "frames in the input of the model (default: as trained)", least=1)
    output_node: str | None = option(None, "node of the log-likelihoods (ScaledLogLikelihood)", metavar="NODE")
    rate: int | None = option(
        None, "sampling rate of the audio (default: as trained)", least=1, most=MAX_RATE, metavar="HZ"
    )

    @property
    def are_measured(self) -> bool:
        """Whether the error rate of an experiment holds: nothing that changes it is given."""
        return not any((self.model, self.graph, self.lm, self.tuned, self.output_node, self.second_pass))

    def files(self) -> Files:
        """Return the files that are given."""
        names = {"dictionary": "dict", "ivectors": "ivector_model"}
        parts = (
            *("model", "graph", "lm", "features", "dictionary", "ivectors", "g2p", "second_pass", "tuned"),
            *("aligner", "aligner_graph"),
        )
        return {part: path for part in parts if (path := getattr(self, names.get(part, part))) is not None}


@dataclass(frozen=True, kw_only=True)
class AboutOptions(Options):
    """What a bundle says about itself."""

    name: str = option("", "name of the bundle (default: that of the model)", metavar="NAME")
    language: str = option("", "language, such as en or de-AT", metavar="TAG")
    licence: str = option("", "terms of use")
    card: Path | None = option(
        None, "JSON with data, hours, speakers, weaknesses and errors of the model, as the page on bundles describes it"
    )
    lowest_rate: int | None = option(
        None,
        "sampling rate from which audio is accepted without --upsample, as the model was trained on such audio, too",
        least=1,
        most=MAX_RATE,
        metavar="HZ",
    )


@dataclass(frozen=True, kw_only=True)
class PackOptions(Options):
    """What a bundle is made of.

    Raises
    ------
    OptionFault
        For a value out of range, and for parts that are missing.
    """

    experiment: Path | None = option(
        None,
        "output directory of a recipe, or directory of a model of CMU Sphinx, vosk or Kaldi",
        flag="experiment",
        metavar="EXPERIMENT",
    )
    output: Path = option(help="NAME.argo, or a new directory", flag="-o --output", metavar="BUNDLE")
    recipe: LayoutName | None = option(None, "recipe of the experiment (default: from its files)")
    compact: bool = option(
        False, "make a small file: weights of 16 bits, rounded costs, compressed; unpacked when it is first opened"
    )
    parts: PartOptions = group(PartOptions, heading="parts, instead of those of EXPERIMENT")
    about: AboutOptions = group(AboutOptions, heading="description")

    def __post_init__(self) -> None:
        super().__post_init__()
        tokens = self.parts.tokens is not None
        for name in ("model", "features", "lm" if tokens else "graph"):
            is_there = self.experiment is not None or getattr(self.parts, name) is not None
            self.parts.require(name, is_there, "is missing; expected it, or an experiment")
        has_graph = self.parts.aligner is None or self.parts.aligner_graph is not None
        self.parts.require("aligner_graph", has_graph, "is missing; expected a graph of the phone models of {aligner}")
        self.parts.require("blank", tokens or self.parts.blank is None, "is given without {tokens}; expected it, too")
        beside = "{tokens}, of which one is made; expected one of them"
        self.parts.require("graph", not tokens or self.parts.graph is None, f"is given beside {beside}")


def make_bundle(options: PackOptions, log: Callable[[str], None] | None = None) -> "Bundle":
    """Make a bundle of an experiment or of single parts; it appears completely or not at all.

    Parameters
    ----------
    options : PackOptions
    log : callable, optional
        log(line) is told what of a model of others is left out.

    Returns
    -------
    Bundle
        Its `description` has the error rate on the test set of an experiment that has been decoded.

    Raises
    ------
    ArgonautError, OSError
        For an experiment that is none, for parts that are damaged or do not fit together, and for a directory that
        exists.

    Examples
    --------
    ``make_bundle(PackOptions(experiment="exp/an4", output="an4.argo")).description.errors``
    """
    from recipes.kaldi_models import convert_kaldi_model, is_kaldi_directory

    root = options.experiment
    if root is not None and ((root / "mdef").is_file() or is_kaldi_directory(root)):
        about = replace(options.about, name=options.about.name or root.resolve().name)
        with temporary_directory(options.output) as directory:
            if (root / "mdef").is_file():
                parts = sphinx_parts(options, directory)
                return _pack_parts(replace(options, experiment=None, parts=parts, about=about))
            parts = options.parts
            for name in ("model", "graph", "features", "lm", "ivector_model", "dict"):
                parts.require(name, getattr(parts, name) is None, "is given; expected none for a model of Kaldi")
            model = convert_kaldi_model(root, directory, log or (lambda line: None))
            converted: dict[str, Any] = {**model.files, "rate": parts.rate or model.sample_rate}
            parts = replace(parts, **converted)
            return _pack_parts(replace(options, experiment=None, parts=parts, about=about), model.search, model.silence)
    if options.parts.tokens is not None:
        with temporary_directory(options.output) as directory:
            return _pack_parts(replace(options, parts=ctc_parts(options.parts, directory)))
    return _pack_parts(options)


def _pack_parts(
    options: PackOptions, search: Mapping[str, float] | None = None, silence: tuple[str, ...] | None = None
) -> "Bundle":
    """Make a bundle of files of ours; search: options of a converted model; silence: its silence models."""
    from decoder.recognizer import AlignerParts, BundleParts, ModelCard, SecondPassOptions, pack
    from decoder.recognizer.description import read_card
    from recipes.decoding import read_choice

    files = options.parts.files()
    about = options.about
    aligner_window = options.parts.aligner_window
    aligner_node = options.parts.aligner_node
    errors: tuple[MeasuredErrors, ...] = ()
    if options.experiment is not None:
        layout = LAYOUTS[options.recipe or recipe_of(options.experiment)]
        aligner_window = aligner_window or layout.aligner_window
        aligner_node = aligner_node or layout.aligner_node
        files = layout.files(options.experiment) | files
        errors = _measured_errors(options.experiment, layout) if options.parts.are_measured else ()
    card = ModelCard()
    if about.card is not None:
        card, measured = read_card(about.card)
        errors = (*errors, *measured)
    aligner = None
    if "aligner" in files:
        output = aligner_node or AlignerParts.output
        aligner = AlignerParts(files["aligner"], files["aligner_graph"], aligner_window, output)
    parts = BundleParts(
        model=files["model"],
        graph=files["graph"],
        features=files["features"],
        sample_rate=_sample_rate(files["model"], options.parts),
        lm=files.get("lm"),
        dictionary=files.get("dictionary"),
        ivectors=files.get("ivectors"),
        g2p=files.get("g2p"),
        second_pass=files.get("second_pass"),
        aligner=aligner,
        second_pass_options=SecondPassOptions(weight=options.parts.second_pass_weight),
        window=options.parts.window,
        output=options.parts.output_node or BundleParts.output,
        options={**(search or {}), **(read_choice(files["tuned"]) if "tuned" in files else {})},
        silence=silence,
        name=about.name,
        language=about.language,
        licence=about.licence,
        errors=errors,
        created_by=f"argonaut {program_version()}",
        lowest_rate=about.lowest_rate or 0,
        card=card,
        compact=options.compact,
    )
    return pack(parts, options.output)


def ctc_parts(parts: PartOptions, directory: Path) -> PartOptions:
    """Build the graph of a model with CTC outputs, and return the parts of its bundle.

    Parameters
    ----------
    parts : PartOptions
        With tokens and a language model, and perhaps a dictionary.
    directory : Path
        For the graph.

    Returns
    -------
    PartOptions
        With a graph instead of tokens and the dictionary, which is of no use for alignment.

    Raises
    ------
    ArgonautError, OSError
        For damaged files, and files that do not fit together.
    """
    from decoder.grammars import GraphDictionary, GraphFiles, make_graph
    from decoder.graph import GraphOptions

    files = GraphFiles(
        tokens=parts.tokens,
        blank=parts.blank,
        dictionary=GraphDictionary(dict=parts.dict),
        lm=parts.lm,
        graph=GraphOptions(drop_missing=True),
        out=directory / "graph",
    )
    make_graph(files)
    return replace(parts, graph=directory / "graph" / "graph.dg", tokens=None, blank=None, dict=None)


# Of the search, for Gaussians of Sphinx, chosen with en-us on training speakers of AN4: 21.4 % word errors there; an
# acoustic weight of 0.125 has 20.8 % and is slower.
SPHINX_OPTIONS = {"acweight": 0.15, "word_penalty": 0.0, "beam": 20.0, "word_end_beam_frac": 0.8}


def sphinx_parts(options: PackOptions, directory: Path) -> PartOptions:
    """Convert an acoustic model of CMU Sphinx, build its graph, and return the parts of its bundle.

    Parameters
    ----------
    options : PackOptions
        Its experiment is the directory of the model; its parts have a dictionary, of Sphinx's phones, and a language
        model.
    directory : Path
        For the files.

    Returns
    -------
    PartOptions

    Raises
    ------
    ArgonautError, OSError
        For damaged files, and files that do not fit together.
    """
    from decoder.gaussians.sphinx import open_sphinx, phone_models, used_mixtures
    from decoder.graph import GraphOptions, build_triphone_graph
    from decoder.graph.graph_file import GraphDefaults, save_defaults, write_graph_directory
    from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
    from decoder.lm.mapped_model import open_language_model
    from readers.dictionaries.forms import read_any_dictionary
    from readers.htk.dictionary import Pronunciation, write_dictionary
    from readers.tables.sphinx.definition import SILENCE

    parts = options.parts
    for name in ("dict", "lm"):
        parts.require(name, getattr(parts, name) is not None, "is missing; expected one for a model of CMU Sphinx")
    for name in ("model", "graph", "features"):
        parts.require(name, getattr(parts, name) is None, "is given; expected none for a model of CMU Sphinx")
    assert options.experiment is not None
    assert parts.dict is not None
    assert parts.lm is not None
    model = open_sphinx(options.experiment)
    ends = [Pronunciation(mark, None, None, (SILENCE,)) for mark in (SENTENCE_START, SENTENCE_END)]
    words = [entry for entry in read_any_dictionary(parts.dict) if entry.word not in (SENTENCE_START, SENTENCE_END)]
    lm = open_language_model(parts.lm)
    vocabulary = set(lm.vocabulary)
    dictionary, models, senones = phone_models(model, [*ends, *(entry for entry in words if entry.word in vocabulary)])
    mixtures, rows = used_mixtures(model, senones)
    graph_options = GraphOptions(silence=SILENCE, drop_missing=True)
    graph = build_triphone_graph(models, dictionary, lm, graph_options)
    write_graph_directory(directory / "graph", graph, models, rows, graph_options.silence_topology)
    mixtures.save(directory / "model.safetensors")
    write_dictionary(directory / "dictionary", dictionary)
    (directory / "features").write_text("".join(f"{name} = {value}\n" for name, value in model.settings.items()))
    save_defaults(directory / "graph" / "graph.dg", GraphDefaults(dict(SPHINX_OPTIONS)))
    return replace(
        parts,
        model=directory / "model.safetensors",
        graph=directory / "graph" / "graph.dg",
        features=directory / "features",
        dict=directory / "dictionary",
        rate=parts.rate or model.sample_rate,
    )


def recipe_of(root: Path) -> LayoutName:
    """Return the recipe that wrote an experiment.  Raises ConfigError if there is no complete one."""
    for name, layout in LAYOUTS.items():
        if (root / layout.model).exists() and (name != "timit-words" or (root / layout.graph).exists()):
            return name
    root.stat()  # a missing directory is no directory without a model
    models = ", ".join(dict.fromkeys(layout.model for layout in LAYOUTS.values()))
    raise ConfigError(f"{root}: none of {models}; expected the output of one of the recipes {', '.join(LAYOUTS)}")


def _measured_errors(root: Path, layout: Layout) -> "tuple[MeasuredErrors, ...]":
    """Return the error rate on the test set; nothing if it has not been decoded."""
    from decoder.recognizer import MeasuredErrors
    from decoder.scoring.error_counts import score
    from decoder.scoring.words import read_words
    from readers.tables.timit import read_phone_map

    references = root / layout.references
    hypotheses = root / layout.hypotheses
    if not references.exists() or not hypotheses.exists():
        return ()
    fold = read_phone_map(layout.fold, -1) if layout.fold else None
    words = read_words(references)
    total = score(words, read_words(hypotheses), fold=fold).total
    return (MeasuredErrors("test", layout.unit, round(total.word_error_rate, 2), len(words), total.num_words),)


def _sample_rate(model: Path, parts: PartOptions) -> int:
    """Return the sample rate of a model's training: the one given, or the only one that the model knows.

    Raises ConfigError if there is none, and for a given one that is not among those of the model.
    """
    from acoustic.network.model_file import load_model
    from acoustic.scoring.mixture_scorer import is_mixture_model
    from acoustic.scoring.opening import open_scorer
    from acoustic.scoring.window_scorer import ONNX_SUFFIX

    if is_mixture_model(model) and parts.rate is not None:
        return parts.rate
    if model.suffix == ONNX_SUFFIX:
        records = [open_scorer(model, parts.output_node, parts.window).record]
    else:
        records = list(load_model(model).feature_records.values())
    rates = {round(rate) for record in records for rate in record.rates}
    if parts.rate is not None:
        trained = " or ".join(str(rate) for rate in sorted(rates))
        fits = not rates or parts.rate in rates
        parts.require("rate", fits, f"is {parts.rate}; expected {trained}, with which {model} was trained")
        return parts.rate
    if len(rates) != 1:
        raise ConfigError(
            f"{model}: does not know one sample rate; expected the option rate, that of the audio of its training"
        )
    return rates.pop()
