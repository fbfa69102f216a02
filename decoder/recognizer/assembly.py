"""Assembles recognisers: opens the parts of a bundle and gives them the form that `Recognizer` takes."""

from typing import Any

from acoustic.scoring.scorer import AcousticScorer
from decoder.graph import GraphOptions, PhoneModels
from decoder.graph.graph_file import load_graph
from decoder.graph.transcript import TranscriptGraphs
from decoder.lm.mapped_model import load_language_model
from decoder.recognizer.bundle import CNTKMAP, DICTIONARY, GRAPH, LM, MODEL, Bundle
from decoder.search.options import SearchOptions
from features import FeatureConfig
from readers.dictionaries.forms import read_any_dictionary
from readers.tables import hmm_tables

LATTICE_BEAM = 6.0  # in cost; the lattices from which confidences are computed


def bundle_parts(bundle: Bundle) -> dict[str, Any]:
    """Return the arguments of `Recognizer` for a bundle, whose checksums have been compared if they are to be."""
    parts, about = bundle.parts, bundle.description
    return {
        "model": AcousticScorer(parts[MODEL], about.output, about.window, ignore_mismatch=True),
        "graph": load_graph(parts[GRAPH], verify=False),
        "features": FeatureConfig.from_hcopy(about.hcopy),
        "lm": load_language_model(parts[LM], verify=False) if LM in parts else None,
        "cntkmap": hmm_tables.read_cntkmap(parts[CNTKMAP]),
        "options": SearchOptions(**about.options, silence=about.silence, lattice_beam=LATTICE_BEAM),
        "sample_rate": about.sample_rate,
        "name": f"{bundle.path}",
    }


def has_tables(bundle: Bundle) -> bool:
    """Return whether a bundle has the dictionary and the tables of models from which transcripts are compiled."""
    return {DICTIONARY, "state_map"} <= bundle.parts.keys()


def transcript_graphs(bundle: Bundle) -> TranscriptGraphs:
    """Return what alignment needs, from a bundle with tables."""
    parts = bundle.parts
    silence, topology = None, GraphOptions.silence_topology
    if "silence" in parts:
        silence, topology = hmm_tables.read_silence(parts["silence"])
    models = PhoneModels.of_tables(parts)
    options = GraphOptions(silence=silence, silence_topology=topology)
    dictionary, rows = read_any_dictionary(parts[DICTIONARY]), hmm_tables.read_cntkmap(parts[CNTKMAP])
    return TranscriptGraphs(models, dictionary, rows, options)
