"""Converts the directory of a vosk model, or of a chain model of Kaldi, to the parts of a bundle."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.report import Log
from readers.errors import ConfigError, FormatError
from readers.kaldi.feature_options import FeatureKind, KaldiFeatures, read_feature_options
from readers.kaldi.lattice import read_word_table
from readers.kaldi.option_files import read_options
from recipes.foreign.conversion import Conversion, Converter, has_file

if TYPE_CHECKING:
    from features.ivectors.model import IvectorModel
    from readers.config.feature_record import FeatureRecord
    from readers.kaldi.fst import Fst
    from recipes.packing import PackOptions

CONFIGURATIONS: tuple[tuple[str, FeatureKind], ...] = (
    ("mfcc.conf", "mfcc"),
    ("mfcc_hires.conf", "mfcc"),
    ("fbank.conf", "fbank"),
)
IVECTOR_DIRECTORIES = ("ivector", "ivector_extractor", "extractor")
IGNORED = ("rescore", "rnnlm")
# Options of Kaldi's decoders, their defaults, and what they are called here.
DECODING = {"acoustic-scale": ("acweight", 1.0), "beam": ("beam", 16.0), "max-active": ("max_tokens", 7000)}
# Weights and penalties that Kaldi does not have, beams that are the same everywhere, and Kaldi's look-ahead.
SEARCH = {"word_end_beam_frac": 1.0, "sil_cost": 0.0, "slack_decay": 0.0, "lookahead_sums": True}
# A word on an arc with a transition-id makes another token here, before the arc; Kaldi's max-active counts none for it.
TOKENS_PER_ACTIVE = 1.5
MOST_TOKENS = 2**31 - 1
MAX_COUNT = 100.0  # of i-vectors, as vosk and Kaldi's recipes for online decoding set it


@dataclass(frozen=True)
class _Files:
    """Where a model is: its directory, network, directory of the graph, and features; ivectors: with `final.ie`."""

    root: Path
    model: Path
    graph: Path
    configuration: Path
    kind: FeatureKind
    ivectors: Path | None


def _find(root: Path) -> _Files:
    """Return where the files of a model are.  Raises ConfigError for those that are missing."""
    model = root / "am" / "final.mdl" if (root / "am" / "final.mdl").is_file() else root / "final.mdl"
    graphs = [path for path in (root / "graph", root) if (path / "HCLG.fst").is_file() or (path / "HCLr.fst").is_file()]
    if not graphs:
        raise ConfigError(f"{root / 'graph'}: neither HCLG.fst nor HCLr.fst; expected the graph of the model")
    for directory in (root / "conf", root):
        for name, kind in CONFIGURATIONS:
            if (directory / name).is_file():
                found = [path for path in map(root.joinpath, IVECTOR_DIRECTORIES) if (path / "final.ie").is_file()]
                return _Files(root, model, graphs[0], directory / name, kind, found[0] if found else None)
    names = ", ".join(name for name, _ in CONFIGURATIONS)
    raise ConfigError(f"{root / 'conf'}: none of {names}; expected the configuration of the features")


def convert(options: "PackOptions", directory: Path, log: Log) -> Conversion:
    """Convert the network, features, i-vectors, graph and language model."""
    from acoustic.descriptions.kaldi_nnet import FEATURES, network_of_nnet
    from acoustic.network.model_file import save_model
    from decoder.graph.foreign.kaldi_graph import kaldi_graph
    from decoder.graph.foreign.kaldi_language_model import kaldi_language_model
    from decoder.graph.graph_file import GraphDefaults, save_defaults, save_graph
    from decoder.lm.mapped_model import save_language_model
    from features import FeatureConfig, feature_record
    from readers.config.feature_record import FeatureRecord
    from readers.kaldi.fst import read_fst
    from readers.kaldi.nnet3.nnet import read_nnet_model
    from readers.kaldi.option_files import frame_subsampling
    from readers.tables.hmm_tables import write_cntkmap

    assert options.experiment is not None
    root = options.experiment
    files = _find(root)
    graph_directory = directory / "graph"
    converted = {
        "model": directory / "model.dnn",
        "graph": graph_directory / "graph.dg",
        "features": directory / "features",
    }
    search = search_options(root)
    for name in IGNORED:
        if (root / name).is_dir():
            log(f"{root / name}: left out; words are recognised by the graph alone")
    about = read_feature_options(files.configuration, files.kind)
    config = FeatureConfig.from_hcopy(about.settings)
    record = feature_record(config, (about.sample_rate,))
    model = read_nnet_model(files.model)
    network = network_of_nnet(model, frame_subsampling(files.model), first_is_last=about.has_c0)
    records = network.feature_records
    records[FEATURES] = record.updated(records[FEATURES])
    if files.ivectors is not None:
        ivectors = ivector_model(files.ivectors, about, record)
        ivectors.save(directory / "ivectors.safetensors")
        converted["ivector_model"] = directory / "ivectors.safetensors"
        records["ivector"] = FeatureRecord(extractor=ivectors.checksum)
    save_model(network, converted["model"])
    converted["features"].write_text("".join(f"{name} = {value}\n" for name, value in about.settings.items()))
    names = {number: phone for phone, number in read_word_table(files.graph / "phones.txt").items()}
    graph_directory.mkdir()
    is_static = (files.graph / "HCLG.fst").is_file()
    path = files.graph / ("HCLG.fst" if is_static else "HCLr.fst")
    fst = read_fst(path)
    grammar = None if is_static else read_fst(files.graph / "Gr.fst")
    words = _word_names(files.graph, grammar or fst)
    graph, rows = kaldi_graph(fst, model.transitions, names, words, f"{path}")
    save_graph(graph, converted["graph"])
    save_defaults(converted["graph"], GraphDefaults(search))
    write_cntkmap(graph_directory / "cntkmap", rows)
    if grammar is not None:
        lm = kaldi_language_model(grammar, words, f"{files.graph / 'Gr.fst'}")
        converted["lm"] = directory / "lm.mapped"
        save_language_model(lm, converted["lm"])
    silence = tuple(names[number] for number in _silence_phones(files) if names.get(number) in set(graph.models))
    return Conversion({**converted, "rate": options.parts.rate or about.sample_rate}, silence)


def search_options(root: Path) -> dict[str, float]:
    """Return the options of the search of a model, from conf/model.conf if there is one."""
    path = root / "conf" / "model.conf"
    options = read_options(path) if path.is_file() else {}
    search: dict[str, float] = dict(SEARCH)
    for name, (own_name, default) in DECODING.items():
        text = options.get(name, f"{default}")
        try:
            search[own_name] = type(default)(text)
        except ValueError:
            raise ConfigError(f"{path}: {name} is {text[:40]!r}; expected a number") from None
    search["max_tokens"] = min(int(TOKENS_PER_ACTIVE * search["max_tokens"]), MOST_TOKENS)
    return search


def ivector_model(directory: Path, about: KaldiFeatures, record: "FeatureRecord") -> "IvectorModel":
    """Return the model of i-vectors in a directory; record: of the features.

    Raises FormatError for files that do not fit together, and OSError.
    """
    import numpy as np

    from features.ivectors.background import Background
    from features.ivectors.extractor import Extractor
    from features.ivectors.frames import SlidingMean, SplicedProjection
    from features.ivectors.mixtures import DiagonalMixture
    from features.ivectors.model import IvectorModel
    from features.ivectors.options import IvectorOptions
    from readers.kaldi.ivectors import read_gaussian_mixture, read_ivector_extractor
    from readers.kaldi.objects import KaldiObjects

    extractor = read_ivector_extractor(directory / "final.ie")
    mixture = read_gaussian_mixture(directory / "final.dubm")
    objects = KaldiObjects(directory / "final.mat")
    matrix = objects.matrix()
    statistics = KaldiObjects(directory / "global_cmvn.stats").matrix()
    num_values = statistics.shape[1] - 1
    splice = _numbers(directory / "splice.conf", {"left-context": 4, "right-context": 4})
    width = splice["left-context"] + 1 + splice["right-context"]
    num_gaussians, dim = mixture.means.shape
    expected = (dim, num_values * width)
    if matrix.shape == (dim, num_values * width + 1):
        offset = matrix[:, -1]
        matrix = matrix[:, :-1]
    else:
        offset = np.zeros(dim)
    if matrix.shape != expected or extractor.projections.shape[:2] != (num_gaussians, dim) or len(statistics) < 1:
        raise FormatError(
            f"{directory}: final.mat of {matrix.shape}, global_cmvn.stats of {num_values} values, final.dubm of "
            f"{mixture.means.shape}, final.ie of {extractor.projections.shape[:2]}; expected sizes that fit"
        )
    cmvn = _numbers(directory / "online_cmvn.conf", {"cmn-window": 600, "global-frames": 200, "speaker-frames": 600})
    mean = statistics[0, :-1] / statistics[0, -1]
    if about.has_c0:  # the last value here
        mean = np.roll(mean, -1)
        matrix = np.roll(matrix.reshape(dim, width, num_values), -1, axis=2).reshape(expected)
    projection = SplicedProjection(
        np.ascontiguousarray(matrix), offset, splice["left-context"], splice["right-context"]
    )
    background = Background(
        SlidingMean(mean, cmvn["cmn-window"], cmvn["global-frames"]),
        DiagonalMixture(mixture.weights / mixture.weights.sum(), mixture.means, mixture.variances),
        projection=projection,
    )
    covariances = np.linalg.inv(extractor.inverse_covariances)
    covariances = (covariances + covariances.swapaxes(1, 2)) / 2
    own = Extractor(extractor.projections, covariances, extractor.offset)
    return IvectorModel(background, own, IvectorOptions(max_count=MAX_COUNT), record, f"{directory}")


def _numbers(path: Path, defaults: dict[str, int]) -> dict[str, int]:
    """Return whole numbers among the options of a file; the file may be missing."""
    options = read_options(path) if path.is_file() else {}
    numbers = {}
    for name, default in defaults.items():
        text = options.get(name, f"{default}")
        if not text.isascii() or not text.isdigit() or int(text) > 10_000:
            raise ConfigError(f"{path}: {name} is {text[:40]!r}; expected a number from 0 to 10000")
        numbers[name] = int(text)
    return numbers


def _word_names(directory: Path, fst: "Fst") -> dict[int, str]:
    """Return the names of words: those of a transducer, or of words.txt."""
    if fst.symbols:
        return fst.symbols
    return {number: word for word, number in read_word_table(directory / "words.txt").items()}


def _silence_phones(files: _Files) -> list[int]:
    """Return the numbers of the silence phones, from conf/model.conf or phones/silence.csl; none without either."""
    options = files.root / "conf" / "model.conf"
    table = files.graph / "phones" / "silence.csl"
    if options.is_file():
        text, path = read_options(options).get("endpoint.silence-phones", ""), options
    elif table.is_file():
        text, path = table.read_text(encoding="utf-8").strip(), table
    else:
        return []
    if not all(number.isascii() and number.isdigit() for number in text.split(":") if text):
        raise ConfigError(f"{path}: silence phones {text[:40]!r}; expected numbers with colons between them")
    return [int(number) for number in text.split(":") if number]


CONVERTER = Converter(
    "a model of Kaldi",
    lambda options: has_file(options, "am/final.mdl", "final.mdl"),
    convert,
    excluded=("model", "graph", "features", "lm", "ivector_model", "dict"),
)
