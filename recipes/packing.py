"""The job that makes a bundle, of the output of a recipe or of files that are named one by one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from readers.common.environment import program_version
from readers.common.report import Log, silent
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


@dataclass(frozen=True)
class AlignerLayout:
    """A network that aligns, a graph of its phone models, and the frames in its input."""

    model: str
    graph: str
    window: int


@dataclass(frozen=True)
class SecondPassLayout:
    """A recurrent language model, the scale of the consensus, and what the second pass makes of the test set."""

    model: str
    consensus: float
    hypotheses: str


@dataclass(frozen=True)
class Layout:
    """Where a recipe writes the parts, relative to its output directory; fold: map of phones for the error rate.

    second_pass: what the recipe writes if it is asked for.
    """

    model: str
    graph: str
    lm: str
    features: str
    dict: str
    tuned: str
    references: str
    hypotheses: str
    unit: str
    fold: Path | None = None
    aligner: AlignerLayout | None = None
    second_pass: SecondPassLayout | None = None

    def parts(self, root: Path) -> Mapping[str, Any]:
        """Return the parts of an experiment by the names of PartOptions."""
        names = ("model", "graph", "lm", "features", "dict", "tuned")
        parts: dict[str, Any] = {name: root / getattr(self, name) for name in names}
        if self.aligner is not None:
            parts |= {"aligner": root / self.aligner.model, "aligner_graph": root / self.aligner.graph}
            parts["aligner_window"] = self.aligner.window
        return parts


SECOND_PASS = SecondPassLayout("second/model/lstm.lm", 0.6, "second/decode/trained/test.mlf")
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
        "final/model/own.dnn", "final/graph/trained/graph.dg", "lm/trained.arpa", "config/plain.hcopy",
        "align/spoken/htk.dict",
        "final/tune/trained.json", "labels/test.words.mlf", "final/decode/trained/test.mlf", "WER",
        second_pass=SECOND_PASS,
    ),
}  # fmt: skip
LAYOUTS["own-given"] = replace(
    LAYOUTS["own"], graph="final/graph/given/graph.dg", lm="lm/given.arpa", tuned="final/tune/given.json",
    hypotheses="final/decode/given/test.mlf",
    second_pass=replace(SECOND_PASS, hypotheses="second/decode/given/test.mlf"),
)  # fmt: skip
LAYOUTS["own-lfmmi"], LAYOUTS["own-lfmmi-given"] = (
    replace(
        LAYOUTS[name], model="final/model/own.tdnnf",
        aligner=AlignerLayout("first/model/own.dnn", "graph/trained/graph.dg", window=21),
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
    lm: Path | None = option(None, "language model in ARPA format, or a binary one of CMU Sphinx")
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
    second_pass_consensus: float = option(
        0.0,
        "with {second_pass}, take the words with the fewest expected errors, all scores multiplied by this number; 0: "
        "those of the best path",
        least=0,
    )
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

    def check_pairs(self) -> None:
        """Raise OptionFault for what concerns an aligner or a second pass, without one."""
        for name in ("aligner_graph", "aligner_window", "aligner_node"):
            fits = self.aligner is not None or getattr(self, name) is None
            self.require(name, fits, "is given without {aligner}; expected it, too")
        fits = self.second_pass is not None or not self.second_pass_consensus
        self.require("second_pass_consensus", fits, "is given without {second_pass}; expected it, too")

    def measured(self, root: Path, layout: Layout) -> Path | None:
        """Return the hypotheses of an experiment with these parts; None if a part differs from the experiment's."""
        if any((self.model, self.graph, self.lm, self.features, self.tuned, self.output_node)):
            return None
        if self.second_pass is None:
            return root / layout.hypotheses
        second = layout.second_pass
        if second is None or self.second_pass.resolve() != (root / second.model).resolve():
            return None
        chosen = self.second_pass_weight, self.second_pass_consensus
        return root / second.hypotheses if chosen == (PartOptions.second_pass_weight, second.consensus) else None


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
        "output directory of a recipe, or directory of a model of CMU Sphinx, HTK, vosk or Kaldi",
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
        has_experiment = self.experiment is not None
        self.require("experiment", not (tokens and has_experiment), "is given beside {tokens}; expected one of them")
        for name in ("model", "features", "lm" if tokens else "graph"):
            is_there = has_experiment or getattr(self.parts, name) is not None
            self.parts.require(name, is_there, "is missing; expected it, or an experiment")
        has_graph = self.parts.aligner is None or self.parts.aligner_graph is not None
        self.parts.require("aligner_graph", has_graph, "is missing; expected a graph of the phone models of {aligner}")
        self.parts.require("blank", tokens or self.parts.blank is None, "is given without {tokens}; expected it, too")
        beside = "{tokens}, of which one is made; expected one of them"
        self.parts.require("graph", not tokens or self.parts.graph is None, f"is given beside {beside}")


def make_bundle(options: PackOptions, log: Log = silent) -> "Bundle":
    """Make a bundle of an experiment or of single parts; it appears completely or not at all.

    Parameters
    ----------
    options : PackOptions
    log : callable
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
    from recipes.foreign.converters import CONVERTERS

    converter = next((converter for converter in CONVERTERS if converter.recognises(options)), None)
    if converter is None:
        return _pack_parts(options)
    options.parts.check_pairs()
    converter.check(options)
    with temporary_directory(options.output) as directory:
        conversion = converter.convert(options, directory, log)
        about = options.about
        if options.experiment is not None:
            about = replace(about, name=about.name or options.experiment.resolve().name)
        parts = replace(options.parts, **conversion.parts, tokens=None, blank=None)
        return _pack_parts(replace(options, experiment=None, parts=parts, about=about), conversion.silence)


def _pack_parts(options: PackOptions, silence: tuple[str, ...] | None = None) -> "Bundle":
    """Make a bundle of files of ours; silence: names of the silence models of a converted model."""
    from decoder.recognizer import AlignerParts, BundleParts, ModelCard, SecondPassOptions, pack
    from decoder.recognizer.description import read_card
    from recipes.decoding import read_choice

    parts = options.parts
    about = options.about
    errors: tuple[MeasuredErrors, ...] = ()
    if options.experiment is not None:
        layout = LAYOUTS[options.recipe or recipe_of(options.experiment)]
        errors = _measured_errors(options.experiment, layout, parts.measured(options.experiment, layout))
        written = layout.parts(options.experiment)
        files = [path for name, path in written.items() if isinstance(path, Path) and getattr(parts, name) is None]
        if missing := next((path for path in files if not path.exists()), None):
            raise ConfigError(f"{missing}: no such file; expected the result of the whole recipe; run the recipe again")
        parts = replace(parts, **{name: value for name, value in written.items() if getattr(parts, name) is None})
    parts.check_pairs()
    card = ModelCard()
    if about.card is not None:
        card, measured = read_card(about.card)
        errors = (*errors, *measured)
    aligner = None
    if parts.aligner is not None:
        assert parts.aligner_graph is not None
        output = parts.aligner_node or AlignerParts.output
        aligner = AlignerParts(parts.aligner, parts.aligner_graph, parts.aligner_window, output)
    assert parts.model is not None  # as PackOptions has checked
    assert parts.graph is not None
    assert parts.features is not None
    bundle_parts = BundleParts(
        model=parts.model,
        graph=parts.graph,
        features=parts.features,
        sample_rate=_sample_rate(parts.model, parts),
        lm=parts.lm,
        dictionary=parts.dict,
        ivectors=parts.ivector_model,
        g2p=parts.g2p,
        second_pass=parts.second_pass,
        aligner=aligner,
        second_pass_options=SecondPassOptions(weight=parts.second_pass_weight, consensus=parts.second_pass_consensus),
        window=parts.window,
        output=parts.output_node or BundleParts.output,
        options=read_choice(parts.tuned) if parts.tuned is not None else {},
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
    return pack(bundle_parts, options.output)


def recipe_of(root: Path) -> LayoutName:
    """Return the recipe that wrote an experiment.  Raises ConfigError if there is no complete one."""
    for name, layout in LAYOUTS.items():
        if (root / layout.model).exists() and (name != "timit-words" or (root / layout.graph).exists()):
            return name
    root.stat()  # a missing directory is no directory without a model
    models = ", ".join(dict.fromkeys(layout.model for layout in LAYOUTS.values()))
    raise ConfigError(
        f"{root}: none of {models}; expected the output of one of the recipes {', '.join(LAYOUTS)}, or a model with "
        "final.mdl or am/final.mdl (Kaldi, vosk), mdef (CMU Sphinx) or hmmdefs (HTK)"
    )


def _measured_errors(root: Path, layout: Layout, hypotheses: Path | None) -> "tuple[MeasuredErrors, ...]":
    """Return the error rate of hypotheses of the test set; nothing if it has not been decoded."""
    from decoder.recognizer import MeasuredErrors
    from decoder.scoring.error_counts import score
    from decoder.scoring.words import read_words
    from readers.tables.timit import read_phone_map

    references = root / layout.references
    if hypotheses is None or not references.exists() or not hypotheses.exists():
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
