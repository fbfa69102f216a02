"""Converts the directory of an HTK model set with Gaussian mixtures, and builds its graph."""

from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.report import Log
from readers.errors import ConfigError, GraphError, ModelError
from recipes.foreign.conversion import GAUSSIAN_SEARCH, OF_NETWORK, Conversion, Converter, has_file, tell_dropped

if TYPE_CHECKING:
    from recipes.packing import PackOptions

DEFINITIONS = ("macros", "hmmdefs")  # in the order in which HTK's tools read them
LISTS = ("tiedlist", "hmmlist", "monophones1", "monophones")
SILENCES = ("sil", "SIL")  # HTK Book, chapter 3; the pronunciation of <s> takes precedence


def convert(options: "PackOptions", directory: Path, log: Log) -> Conversion:
    """Convert the mixtures of the states that the list of models, or trees, give to a dictionary's words."""
    from decoder.gaussians.mixtures import mixtures_of
    from decoder.gaussians.models import GaussianModels
    from decoder.graph import GraphOptions, build_triphone_graph, distil
    from decoder.graph.graph_file import GraphDefaults, save_defaults, write_graph_directory
    from decoder.graph.options import SHORT_PAUSE
    from decoder.lm.language_model import SENTENCE_START
    from decoder.lm.mapped_model import open_language_model
    from features import FeatureConfig, feature_record
    from readers.config.feature_record import plain_kind
    from readers.config.hcopy import read_hcopy_config
    from readers.dictionaries.forms import read_any_dictionary
    from readers.htk.hmm_list import read_hmm_list
    from readers.htk.mmf import read_mmf
    from readers.htk.trees import read_trees

    parts = options.parts
    root = options.experiment
    assert root is not None
    assert parts.lm is not None
    assert parts.rate is not None
    files = {name: root / name for name in (*DEFINITIONS, *LISTS, "trees") if (root / name).is_file()}
    dictionary_path = parts.dict or _only_file(root, "dict", "*.dict")
    features = parts.features or _only_file(root, "config", "*.hcopy")
    for name, path, file in (("dict", dictionary_path, "dict"), ("features", features, "config")):
        parts.require(name, path is not None, f"is missing; expected it, or {root / file}")
    assert dictionary_path is not None
    assert features is not None
    config = FeatureConfig.from_hcopy(read_hcopy_config(features))
    definitions = [files[name] for name in DEFINITIONS if name in files]
    hmm_set = read_mmf(definitions)
    kind = plain_kind(hmm_set.options.kind or "")
    if kind not in ("", plain_kind(config.target_kind)):
        raise ConfigError(f"{features}: TARGETKIND = {config.target_kind}; expected {kind}, as in {definitions[-1]}")
    names = next((read_hmm_list(files[name]) for name in LISTS if name in files), None)
    trees = read_trees(files["trees"]) if "trees" in files else None
    lm = open_language_model(parts.lm)
    vocabulary = {*lm.vocabulary}
    dictionary = [entry for entry in read_any_dictionary(dictionary_path) if entry.word in vocabulary]
    starts = [entry.phones[0] for entry in dictionary if entry.word == SENTENCE_START and entry.phones]
    silence = next((phone for phone in (*starts, *SILENCES) if phone in hmm_set.hmms), SILENCES[0])
    contexts = {silence: None} | {phone: None for entry in dictionary for phone in entry.phones if phone != SHORT_PAUSE}
    graph_options = GraphOptions(silence=silence, drop_missing=True)
    try:
        models = distil(hmm_set, names, trees, contexts, log)
        graph = build_triphone_graph(models, dictionary, lm, graph_options)
    except GraphError as fault:
        raise GraphError(f"{root}: {fault}") from fault
    tell_dropped(graph, log)
    rows = models.rows_of()
    write_graph_directory(directory / "graph", graph, models, rows, graph_options.silence_topology)
    save_defaults(directory / "graph" / "graph.dg", GraphDefaults(GAUSSIAN_SEARCH))
    gaussians = GaussianModels.of_hmm_set(hmm_set, list(dict.fromkeys(models.senones.values())), f"{definitions[-1]}")
    if gaussians.dim != config.dim:
        raise ConfigError(
            f"{features}: frames of {config.dim} values; expected {gaussians.dim}, as in {definitions[-1]}"
        )
    try:
        mixtures = mixtures_of(gaussians, feature_record(config, (parts.rate,)))
    except ModelError as fault:
        expected = "expected values that float32 can hold"
        raise ModelError(f"{definitions[-1]}: a mean or variance is out of range; {expected}") from fault
    mixtures.save(directory / "model.safetensors")
    model = {"model": directory / "model.safetensors", "graph": directory / "graph" / "graph.dg"}
    return Conversion({**model, "features": features, "dict": dictionary_path})


def _only_file(root: Path, name: str, pattern: str) -> Path | None:
    """Return a file of a directory, or else the only one of a pattern; None without one."""
    others = list(root.glob(pattern))
    if (root / name).is_file():
        return root / name
    return others[0] if len(others) == 1 else None


CONVERTER = Converter(
    "a model set of HTK",
    lambda options: has_file(options, "hmmdefs"),
    convert,
    required=("lm", "rate"),
    excluded=("model", "graph", *OF_NETWORK),
)
