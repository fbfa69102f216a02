"""Converts the directory of an acoustic model of CMU Sphinx, and builds its graph."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.report import Log
from recipes.foreign.conversion import (
    GAUSSIAN_SEARCH,
    OF_NETWORK,
    Conversion,
    Converter,
    check_rate,
    has_file,
    tell_dropped,
)

if TYPE_CHECKING:
    from recipes.packing import PackOptions

FILES = {
    **{"model": "model.safetensors", "graph": "graph/graph.dg", "features": "features"},
    **{"dict": "dictionary", "lm": "lm.mapped"},
}


def convert(options: "PackOptions", directory: Path, log: Log) -> Conversion:
    """Convert the model with a dictionary of its phones and a language model."""
    from decoder.gaussians.sphinx import FILLER_PROBABILITY, open_sphinx, phone_models, used_mixtures
    from decoder.graph import GraphOptions, build_triphone_graph
    from decoder.graph.graph_file import GraphDefaults, save_defaults, write_graph_directory
    from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
    from decoder.lm.mapped_model import open_language_model, save_language_model
    from decoder.lm.new_words import with_words
    from readers.dictionaries.forms import read_any_dictionary
    from readers.htk.dictionary import Pronunciation, write_dictionary
    from readers.tables.sphinx.definition import SILENCE

    parts = options.parts
    assert options.experiment is not None
    assert parts.dict is not None
    assert parts.lm is not None
    model = open_sphinx(options.experiment)
    check_rate(options, model.sample_rate)
    ends = [Pronunciation(mark, None, None, (SILENCE,)) for mark in (SENTENCE_START, SENTENCE_END)]
    words = [entry for entry in read_any_dictionary(parts.dict) if entry.word not in (SENTENCE_START, SENTENCE_END)]
    lm = open_language_model(parts.lm)
    cost = -GAUSSIAN_SEARCH["acweight"] * math.log(FILLER_PROBABILITY)
    lm = with_words(lm, sorted({entry.word for entry in model.noises} - {*lm.vocabulary}), cost)
    vocabulary = set(lm.vocabulary)
    words = [entry for entry in [*words, *model.noises] if entry.word in vocabulary]
    dictionary, models, senones = phone_models(model, [*ends, *words])
    mixtures, rows = used_mixtures(model, senones)
    graph_options = GraphOptions(silence=SILENCE, drop_missing=True)
    graph = build_triphone_graph(models, dictionary, lm, graph_options)
    tell_dropped(graph, log)
    write_graph_directory(directory / "graph", graph, models, rows, graph_options.silence_topology)
    mixtures.save(directory / FILES["model"])
    write_dictionary(directory / FILES["dict"], dictionary)
    save_language_model(lm, directory / FILES["lm"])
    (directory / FILES["features"]).write_text("".join(f"{name} = {value}\n" for name, value in model.settings.items()))
    save_defaults(directory / FILES["graph"], GraphDefaults(GAUSSIAN_SEARCH))
    files = {name: directory / path for name, path in FILES.items()}
    return Conversion({**files, "rate": model.sample_rate})


CONVERTER = Converter(
    "a model of CMU Sphinx",
    lambda options: has_file(options, "mdef"),
    convert,
    required=("dict", "lm"),
    excluded=("model", "graph", "features", *OF_NETWORK),
)
