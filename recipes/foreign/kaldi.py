"""Converts the directory of a vosk model, or of an experiment of Kaldi, to the parts of a bundle."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.faults import listed
from readers.common.report import Log
from readers.common.text import is_count, read_lines
from readers.errors import ConfigError
from readers.kaldi.feature_options import FeatureKind
from readers.kaldi.hmm.phones import Boundary, read_word_boundary
from readers.kaldi.lattice import read_word_table
from readers.kaldi.option_files import number_of, read_options
from recipes.foreign.conversion import OF_NETWORK, Conversion, Converter, check_rate, has_file
from recipes.foreign.kaldi_alignment import DICTIONARY, convert_alignment, read_lexicon, tell_unknown
from recipes.foreign.kaldi_models import convert_acoustic_model

if TYPE_CHECKING:
    from readers.kaldi.fst import Fst
    from readers.kaldi.transition_model import TransitionModel
    from recipes.packing import PackOptions

CONFIGURATIONS: tuple[tuple[str, FeatureKind], ...] = (
    ("mfcc.conf", "mfcc"),
    ("mfcc_hires.conf", "mfcc"),
    ("fbank.conf", "fbank"),
)
IVECTOR_DIRECTORIES = ("ivector", "ivector_extractor", "extractor")
IGNORED = ("rescore", "rnnlm")
NUM_PDFS = "num_pdfs"  # that mkgraph.sh writes beside the graph
BOUNDARIES = ("word_boundary.int", "word_boundary.txt")
# Options of Kaldi's decoders, their defaults, and what they are called here.
DECODING = {"acoustic-scale": ("acweight", 1.0), "beam": ("beam", 16.0), "max-active": ("max_tokens", 7000)}
# Weights and penalties that Kaldi does not have, beams that are the same everywhere, and Kaldi's look-ahead.
SEARCH = {"word_end_beam_frac": 1.0, "sil_cost": 0.0, "slack_decay": 0.0, "lookahead_sums": True}
# A word on an arc with a transition-id makes a token of its own here, before the arc, which Kaldi's max-active does not
# count; and Kaldi backs off between two words, where the tokens of many histories become one.
TOKENS_PER_ACTIVE = 6
MOST_TOKENS = 2**31 - 1
GAUSSIAN_DECODING = {"acoustic-scale": 0.083333, "beam": 13.0}  # defaults of decode.sh for mixtures


@dataclass(frozen=True)
class _Files:
    """Where a model is: its directory, network, directory of the graph, and features; ivectors: with `final.ie`."""

    root: Path
    model: Path
    graph: Path
    configurations: list[tuple[Path, FeatureKind]]
    ivectors: Path | None


def _find(root: Path) -> _Files:
    """Return where the files of a model are.  Raises ConfigError for those that are missing."""
    model = root / "am" / "final.mdl" if (root / "am" / "final.mdl").is_file() else root / "final.mdl"
    graphs = [path for path in (root / "graph", root) if (path / "HCLG.fst").is_file() or (path / "HCLr.fst").is_file()]
    if not graphs:
        graphs = sorted(path.parent for path in root.glob("graph*/HCLG.fst"))
        if len(graphs) > 1:
            raise ConfigError(f"{root}: {listed([path.name for path in graphs])}; expected one of them as graph")
    if not graphs:
        raise ConfigError(f"{root / 'graph'}: neither HCLG.fst nor HCLr.fst; expected the graph of the model")
    configurations: list[tuple[Path, FeatureKind]] = [
        (path, kind) for name, kind in CONFIGURATIONS for path in (root / "conf" / name, root / name) if path.is_file()
    ]
    if not configurations:
        names = ", ".join(name for name, _ in CONFIGURATIONS)
        raise ConfigError(f"{root / 'conf'}: none of {names}; expected the configuration of the features")
    extractors = [path for path in map(root.joinpath, IVECTOR_DIRECTORIES) if (path / "final.ie").is_file()]
    return _Files(root, model, graphs[0], configurations, extractors[0] if extractors else None)


def convert(options: "PackOptions", directory: Path, log: Log) -> Conversion:
    """Convert the network or the mixtures, features, i-vectors, graph, language model, and what alignment needs."""
    from decoder.graph.foreign.kaldi_graph import kaldi_graph
    from decoder.graph.foreign.kaldi_language_model import kaldi_language_model
    from decoder.graph.graph_file import GraphDefaults, save_defaults, save_graph
    from decoder.lm.mapped_model import save_language_model
    from readers.kaldi.fst import read_fst
    from readers.tables.hmm_tables import write_cntkmap

    assert options.experiment is not None
    root = options.experiment
    files = _find(root)
    graph_directory = directory / "graph"
    for name in IGNORED:
        if (root / name).is_dir():
            log(f"{root / name}: left out; words are recognised by the graph alone")
    model = convert_acoustic_model(files.model, files.ivectors, files.configurations, directory, log)
    check_rate(options, model.about.sample_rate)
    converted = {**model.parts, "graph": graph_directory / "graph.dg"}
    search = search_options(root, {} if model.is_network else GAUSSIAN_DECODING)
    phone_numbers = read_word_table(files.graph / "phones.txt")
    names = {number: phone for phone, number in phone_numbers.items()}
    graph_directory.mkdir()
    is_static = (files.graph / "HCLG.fst").is_file()
    path = files.graph / ("HCLG.fst" if is_static else "HCLr.fst")
    fst = read_fst(path)
    _check_graph(files, fst, model.transitions, path, is_static)
    grammar = None if is_static else read_fst(files.graph / "Gr.fst")
    words = _word_names(files.graph, grammar or fst)
    boundaries = _word_boundaries(files.graph, phone_numbers, log)
    graph, rows = kaldi_graph(fst, model.transitions, names, words, f"{path}", boundaries)
    save_graph(graph, converted["graph"])
    save_defaults(converted["graph"], GraphDefaults(search))
    phones_directory = files.graph / "phones"
    dictionary = read_lexicon(options.parts.dict, root, phones_directory, words, names, log)
    tree = files.model.parent / "tree"
    write_cntkmap(graph_directory / "cntkmap", rows)
    if convert_alignment(tree, dictionary, model.transitions, names, phones_directory, graph_directory, log):
        converted["dict"] = graph_directory / DICTIONARY
        tell_unknown(graph.words, dictionary or (), log)
    if grammar is not None:
        lm = kaldi_language_model(grammar, words, f"{files.graph / 'Gr.fst'}")
        converted["lm"] = directory / "lm.mapped"
        save_language_model(lm, converted["lm"])
    silence = tuple(names[number] for number in _silence_phones(files) if names.get(number) in set(graph.models))
    return Conversion({**converted, "rate": model.about.sample_rate}, silence)


def _check_graph(files: _Files, fst: "Fst", transitions: "TransitionModel", path: Path, is_static: bool) -> None:
    """Raise ConfigError for the graph of another model; only graphs for look-ahead have labels of no transition-id."""
    largest = fst.input.max(initial=0)
    if is_static and largest > transitions.num_transition_ids:
        raise ConfigError(
            f"{path}: transition-id {largest}; expected 1 to {transitions.num_transition_ids}, those of {files.model}"
        )
    num_pdfs = files.graph / NUM_PDFS
    text = " ".join(line.strip() for line in read_lines(num_pdfs)) if num_pdfs.is_file() else f"{transitions.num_pdfs}"
    if text.strip() != f"{transitions.num_pdfs}":
        raise ConfigError(f"{num_pdfs}: {text[:40]!r}; expected {transitions.num_pdfs}, the pdfs of {files.model}")


def search_options(root: Path, defaults: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return the options of the search of a model, from conf/model.conf if there is one.

    defaults: of Kaldi's options, in place of those of nnet3.
    """
    path = root / "conf" / "model.conf"
    options = read_options(path) if path.is_file() else {}
    search: dict[str, float] = dict(SEARCH)
    for name, (own_name, default) in DECODING.items():
        text = options.get(name, f"{(defaults or {}).get(name, default)}")
        number = number_of(path, name, text)
        if number <= 0 or (isinstance(default, int) and not is_count(text)):
            raise ConfigError(f"{path}: {name} is {text[:40]}; expected a number above 0")
        search[own_name] = number
    search["max_tokens"] = min(TOKENS_PER_ACTIVE * int(search["max_tokens"]), MOST_TOKENS)
    return search


def _word_names(directory: Path, fst: "Fst") -> dict[int, str]:
    """Return the names of words: those of a transducer, or of words.txt."""
    if fst.symbols:
        return fst.symbols
    return {number: word for word, number in read_word_table(directory / "words.txt").items()}


def _word_boundaries(directory: Path, phones: Mapping[str, int], log: Log) -> dict[int, Boundary] | None:
    """Return the places of phones in words; None, which log is told, if no file of a graph has them."""
    paths = [parent / name for parent in (directory / "phones", directory) for name in BOUNDARIES]
    for path in paths:
        if path.is_file():
            return read_word_boundary(path, phones)
    log(f"{paths[0]}: missing; a word ends with the phone after its label in the graph")
    return None


def _silence_phones(files: _Files) -> list[int]:
    """Return the numbers of the silence phones, from conf/model.conf or phones/silence.csl; none without either."""
    options = files.root / "conf" / "model.conf"
    table = files.graph / "phones" / "silence.csl"
    if options.is_file():
        text, path = read_options(options).get("endpoint.silence-phones", ""), options
    elif table.is_file():
        text, path = "".join(read_lines(table)).strip(), table
    else:
        return []
    if not all(is_count(number) for number in text.split(":") if text):
        raise ConfigError(f"{path}: silence phones {text[:40]!r}; expected numbers with colons between them")
    return [int(number) for number in text.split(":") if number]


CONVERTER = Converter(
    "a model of Kaldi",
    lambda options: has_file(options, "am/final.mdl", "final.mdl"),
    convert,
    excluded=("model", "graph", "features", "lm", "ivector_model", *OF_NETWORK),
)
