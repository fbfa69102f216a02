"""Makes the lattice of an utterance from its feature file and transcript."""

from typing import Any

from acoustic.scoring.feature_files import FeatureFileScores, open_vectors
from acoustic.scoring.opening import open_scorer
from acoustic.scoring.window_scorer import WindowScorer
from decoder.alignment.aligner import Aligner, check_outputs
from decoder.graph import GraphOptions, PhoneModels
from decoder.graph.graph_file import load_defaults, load_graph, recorded_silence
from decoder.graph.transcript import TranscriptGraphs
from decoder.lm.mapped_model import open_language_model
from decoder.search.decoder import Decoder
from decoder.search.options import NEW_SENTENCE_COST, SearchOptions
from decoder.sequence_training.lattices.maker import LatticeMaker, MadeLattice
from decoder.sequence_training.lattices.options import SEARCH, DenominatorOptions
from features.ivectors.adapted import VectorFiles
from readers.common.faults import naming
from readers.common.report import Log, silent
from readers.errors import ConfigError, FormatError, GraphError
from readers.htk.mlf import MLF, Label, read_mlf
from readers.htk.scp import ScpEntry
from readers.tables.hmm_tables import read_cntkmap

WIDENINGS = 2


class Worker:
    """Makes the lattice of one utterance; all threads share one.

    options: with absolute paths, for workers of a cluster.  note: receives texts about the files.
    """

    def __init__(self, options: DenominatorOptions, note: Log = silent):
        self.options = options
        self.words = read_mlf(options.words)
        self.labels = read_mlf(options.alignment) if options.alignment else None
        search = _search_options(options, note)
        rows = read_cntkmap(options.outputs)
        model = open_language_model(options.lm, note)
        decoder = Decoder(load_graph(options.graph), model, search, rows, str(options.outputs))
        scorer = open_scorer(options.model, options.output_node, options.window)
        self.source = FeatureFileScores(options.features, scorer, _vectors(options, scorer), note=note)
        decoder.check_outputs(self.source.num_outputs, self.source.name)
        aligner = None
        if self.labels is None:
            graphs = _graphs(options, rows, note)
            check_outputs(graphs, self.source.num_outputs, self.source.name)
            aligner = Aligner(graphs, search.acweight)
        self.maker = LatticeMaker(decoder, aligner, options.density)

    def __call__(self, entry: ScpEntry) -> MadeLattice:
        words = [label.name for label in _labels(self.words, entry, self.options.words)]
        labels = None
        where = ""
        if self.labels is not None:
            labels = _labels(self.labels, entry, self.options.alignment)
            where = self.labels.where(f"{entry.key}.lab")
        with naming(entry.path):
            scores, period, *_ = self.source.scores(entry)
        return self.maker.make(entry.key, words, scores, labels, where, period)


def _labels(mlf: MLF, entry: ScpEntry, path: object) -> list[Label]:
    name = f"{entry.key}.lab"  # an extension to be cut, since keys may contain dots
    labels = mlf.lookup(name)
    if not labels:
        raise FormatError(f"{path}: no labels; {mlf.expected_entry(name)}")
    return labels


def _search_options(options: DenominatorOptions, note: Log) -> SearchOptions:
    """Return the options of the search: those given, then those stored in the graph, then the defaults."""
    chosen: dict[str, Any] = {name: value for name in SEARCH if (value := getattr(options, name)) is not None}
    # A narrower beam at word ends would make thin lattices.
    chosen |= {"sil_cost": 0.0, "word_end_beam_frac": 1.0}
    stored = load_defaults(options.graph)
    defaults: dict[str, Any] = {name: value for name, value in stored.options.items() if name not in chosen}
    try:
        SearchOptions(**defaults)
    except ConfigError as fault:
        raise ConfigError(f"{options.graph}: defaults: {fault}") from fault
    if defaults:
        shown = ", ".join(f"{name} {value:g}" for name, value in defaults.items())
        models = stored.tuned_with.values()
        note(f"{options.graph}: defaults {shown}" + (f" (tuned with {' and '.join(models)})" if models else ""))
    if "acweight" not in chosen | defaults:
        note(
            f"no acoustic weight, and {options.graph} has no default for it; {SearchOptions.acweight:g} is used, which "
            "may be far from the best value"
        )
    return SearchOptions(**defaults, **chosen, new_sentence=NEW_SENTENCE_COST, widenings=WIDENINGS, partial=False)


def _vectors(options: DenominatorOptions, scorer: WindowScorer) -> VectorFiles | None:
    """Return the i-vectors; raises ConfigError unless they are given to a network that takes them, and to no other."""
    has_vectors = bool(options.ivectors or not scorer.ivector_dim)
    options.require(
        "ivectors", has_vectors, f"is missing; {scorer.source} takes i-vectors of {scorer.ivector_dim} values"
    )
    fine = bool(scorer.ivector_dim or not options.ivectors)
    options.require("ivectors", fine, f"is {options.ivectors}; {scorer.source} takes no i-vectors; expected none")
    return open_vectors(options.ivectors, scorer)


def _graphs(options: DenominatorOptions, rows: dict[str, int], note: Log) -> TranscriptGraphs:
    """Return the builders of alignment graphs, from the tables beside the graph."""
    directory = options.graph.parent
    if not (directory / "state_map").exists():
        raise ConfigError(
            f"{directory / 'state_map'}: missing; expected the tables that argonaut graph writes beside the graph"
        )
    models = PhoneModels.load(directory)
    silence, topology = recorded_silence(directory)
    graph_options = GraphOptions(silence=silence, silence_topology=topology, silence_probability=options.sil_prob)
    dictionary = options.dictionary.read(note) if options.dictionary.dict else None
    try:
        return TranscriptGraphs(models, dictionary, rows, graph_options, 0.0)
    except GraphError as fault:
        raise GraphError(f"{options.outputs} + {directory}: {fault}") from fault
