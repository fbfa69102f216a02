"""Assembles recognisers: opens the parts of a bundle and gives them the form that `Recognizer` takes."""

from acoustic.scoring.scorer import AcousticScorer
from decoder.graph import GraphOptions, PhoneModels
from decoder.graph.graph_file import load_graph
from decoder.graph.transcript import TranscriptGraphs
from decoder.lm.mapped_model import load_language_model
from decoder.recognizer.bundle import CNTKMAP, DICTIONARY, GRAPH, LM, MODEL, SEARCH, Bundle
from decoder.recognizer.front_end import FrontEnd
from decoder.search.decoder import Decoder, ready_decoder
from decoder.search.options import SearchOptions
from decoder.search.table_file import load_search_tables
from features import FeatureConfig
from readers.dictionaries.forms import read_any_dictionary
from readers.tables import hmm_tables

LATTICE_BEAM = 6.0  # in cost; the lattices from which confidences are computed


def open_bundle(bundle: Bundle) -> tuple[FrontEnd, Decoder]:
    """Return the two halves of a recogniser from a bundle, whose checksums are not compared again."""
    parts, about, name = bundle.parts, bundle.description, f"{bundle.path}"
    scorer = AcousticScorer(parts[MODEL], about.output, about.window, ignore_mismatch=True)
    front_end = FrontEnd(FeatureConfig.from_hcopy(about.hcopy), scorer, name, about.sample_rate)
    graph = load_graph(parts[GRAPH], verify=False)
    lm = load_language_model(parts[LM], verify=False) if LM in parts else None
    cntkmap = hmm_tables.read_cntkmap(parts[CNTKMAP])
    tables = load_search_tables(parts[SEARCH], graph, lm, cntkmap, name, verify=False)
    options = SearchOptions(**about.options, silence=about.silence, lattice_beam=LATTICE_BEAM)
    decoder = ready_decoder(tables, options)
    decoder.check_outputs(scorer.num_outputs, scorer.source)
    return front_end, decoder


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
