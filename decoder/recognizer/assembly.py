"""Assembles recognisers: the one place where files become decoders and front ends.

`Recognizer` and the commands use these functions.  A decoder can be opened without importing `acoustic`, which takes
time, since scores may come from a file.
"""

import functools
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from acoustic.scoring.opening import open_scorer as open_scorer
from decoder.graph import GraphOptions, PhoneModels, build_monophone_graph, build_triphone_graph, has_context
from decoder.graph.compiled_graph import DecodingGraph, precompile
from decoder.graph.cross_word.new_words import add_words
from decoder.graph.cross_word.places import PlacesError
from decoder.graph.graph_file import load_graph, read_silence
from decoder.graph.phone_models import distil
from decoder.graph.transcript import TranscriptGraphs
from decoder.lm.collection import open_collection
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel
from decoder.lm.mapped_model import load_language_model, open_language_model
from decoder.lm.new_words import with_rare_words
from decoder.recognizer.bundle import (
    ALIGNER,
    CALIBRATION,
    CNTKMAP,
    DICTIONARY,
    G2P_MODEL,
    GRAPH,
    IVECTORS,
    LM,
    MODEL,
    PRONUNCIATION,
    SEARCH,
    SECOND_PASS,
    SECOND_PASS_SETTINGS,
    TABLES,
    Bundle,
)
from decoder.search.decoder import Decoder, ready_decoder
from decoder.search.options import NEW_SENTENCE_COST, SearchOptions
from decoder.search.table_file import load_search_tables
from readers.common.faults import listed, naming
from readers.common.file_part import FilePart
from readers.common.report import Figures, Log, silent
from readers.config.hcopy import read_hcopy_config
from readers.config.side_files import read_side_file
from readers.dictionaries.forms import read_any_dictionary
from readers.errors import ConfigError, GraphError
from readers.htk.dictionary import Pronunciation
from readers.htk.frame_labels import read_state_list
from readers.htk.mmf import read_mmf
from readers.language.att import EPSILON
from readers.language.new_words import NewWord
from readers.tables import hmm_tables
from readers.tables.tensor_file import load_tensors

if TYPE_CHECKING:
    from acoustic.scoring.window_scorer import WindowScorer
    from decoder.recognizer.calibration import Calibration
    from decoder.recognizer.front_end import FrontEnd
    from decoder.results.second_pass import SecondPass

STATE_MAP = "state_map"  # of the tables of phone models
WHENCE = (
    "of a model of Kaldi, argonaut pack makes them of its tree and of graph/phones/align_lexicon.int or lexicon.txt; "
    "models with CTC outputs have no phone models"
)
LATTICE_BEAM = 9.0  # in cost; the lattices from which confidences are computed
MMF, STATES, FEATURES = "hmmdefs", "states.list", "features.json"  # of a flat start


def open_bundle(bundle: Bundle) -> tuple["FrontEnd", Decoder]:
    """Return the two halves of a recogniser from a bundle, whose checksums are not compared again."""
    parts = bundle.parts
    about = bundle.description
    name = f"{bundle.path}"
    front_end = open_bundle_scores(bundle, recognising_network(bundle))
    settings: dict[str, Any] = {"new_sentence": NEW_SENTENCE_COST, **about.options}
    options = SearchOptions(**settings, silence=about.silence, lattice_beam=LATTICE_BEAM)
    lm = load_language_model(parts[LM], verify=False) if LM in parts else None
    decoder = open_decoder(parts[GRAPH], parts[CNTKMAP], lm, options, parts[SEARCH], name, verify=False)
    decoder.check_outputs(front_end.scorer.num_outputs, front_end.scorer.source)
    return front_end, decoder


class BundleNetwork(NamedTuple):
    """A network of a bundle.

    Attributes
    ----------
    model : FilePart
    tables : mapping of str to FilePart
        Those of its phone models, and the cntkmap.
    output : str
        Output node.
    window : int
        Frames that the input stacks.
    """

    model: FilePart
    tables: Mapping[str, FilePart]
    output: str
    window: int


def recognising_network(bundle: Bundle) -> BundleNetwork:
    """Return the network of the search."""
    about = bundle.description
    members = {name: part for name, part in bundle.parts.items() if name in TABLES or name == CNTKMAP}
    return BundleNetwork(bundle.model, members, about.output, about.window)


def aligning_network(bundle: Bundle) -> BundleNetwork:
    """Return the network that aligns: that of the search, unless the bundle has one for this."""
    about = bundle.description.aligner
    if about is None:
        return recognising_network(bundle)
    members = {name.removeprefix(ALIGNER): part for name, part in bundle.parts.items() if name.startswith(ALIGNER)}
    return BundleNetwork(members.pop(MODEL), members, about.output, about.window)


def open_bundle_scores(bundle: Bundle, network: BundleNetwork) -> "FrontEnd":
    """Return the front end of a bundle: features and a network."""
    about = bundle.description
    scorer = open_scorer(network.model, network.output, network.window, ignore_mismatch=True)
    takes_ivectors = scorer.ivector_dim or network.model == bundle.model
    ivectors = bundle.parts.get(IVECTORS) if takes_ivectors else None
    front_end = open_front_end(about.hcopy, scorer, f"{bundle.path}", about.sample_rate, ivectors=ivectors)
    if about.lowest_rate:
        front_end.lowest_rate = about.lowest_rate
    return front_end


def open_decoder(
    graph: str | Path | FilePart,
    cntkmap: str | Path | FilePart,
    lm: LanguageModel | None = None,
    options: SearchOptions | None = None,
    tables: str | Path | FilePart | None = None,
    where: str = "",
    verify: bool | None = None,
) -> Decoder:
    """Return a decoder of a compiled graph and the network output of each HMM state.

    Without a file of search tables, they are computed.  where: the name of the cntkmap in messages, by default its
    path; verify: whether to compare the checksums of graph and tables.
    """
    compiled = load_graph(graph, verify)
    rows = hmm_tables.read_cntkmap(cntkmap)
    options = options or SearchOptions()
    where = where or f"{cntkmap}"
    if tables is None:
        return Decoder(compiled, lm, options, rows, where)
    return ready_decoder(load_search_tables(tables, compiled, lm, rows, where, verify), options)


def open_lm(
    lm: str | Path | None,
    collection: str | Path | None,
    log: Callable[[str], None] | None = None,
    verify: bool | None = None,
) -> LanguageModel | None:
    """Return the language model of an ARPA file, or the mixture that a list describes; None without either."""
    if lm:
        return open_language_model(lm, log, verify=verify)
    return open_collection(collection, log, verify) if collection else None


def open_front_end(
    settings: str | Path | Mapping[str, Any],
    scorer: "WindowScorer",
    where: str,
    rate: float | None = None,
    on_mismatch: Callable[[str], None] | None = None,
    ivectors: str | Path | FilePart | None = None,
) -> "FrontEnd":
    """Return the front end of a configuration of HCopy, a file or its settings; see `FrontEnd` for the others.

    ivectors: file of the model that estimates i-vectors.
    """
    from decoder.recognizer.front_end import FrontEnd
    from features import FeatureConfig
    from features.ivectors.model import IvectorModel

    if not isinstance(settings, Mapping):
        settings = read_hcopy_config(settings)
    model = None if ivectors is None else IvectorModel.load(ivectors)
    return FrontEnd(FeatureConfig.from_hcopy(settings), scorer, where, rate, on_mismatch, model)


def read_calibration(bundle: Bundle) -> "Calibration | None":
    """Return the map from posteriors to confidences, if a bundle has one."""
    from decoder.recognizer.calibration import Calibration

    return Calibration.read(bundle.parts[CALIBRATION]) if CALIBRATION in bundle.parts else None


def open_second_pass(bundle: Bundle) -> "SecondPass | None":
    """Return the second pass of a bundle; None if it has none."""
    if SECOND_PASS not in bundle.parts:
        return None
    from decoder.results.second_pass import SecondPass, SecondPassOptions

    settings = bundle.parts[SECOND_PASS_SETTINGS]
    return SecondPass(bundle.parts[SECOND_PASS], SecondPassOptions.parse(settings.read_bytes(), f"{settings}"))


def has_tables(bundle: Bundle) -> bool:
    """Return whether a bundle has the dictionary and the tables of models from which transcripts are compiled."""
    return {DICTIONARY, STATE_MAP} <= bundle.parts.keys()


def lacking(members: Container[str], purpose: str) -> str:
    """Return what is missing among the members of a bundle for a purpose that needs words and their phone models."""
    missing = [name for name in (DICTIONARY, STATE_MAP) if name not in members]
    expected = "both" if len(missing) > 1 else "it"
    return f"no {' and '.join(missing)}; expected {expected} in the bundle, for {purpose}; {WHENCE}"


def bundle_dictionary(bundle: Bundle) -> tuple[list[Pronunciation], FilePart | None]:
    """Return the dictionary of a bundle and its pronunciation model, None if it has none.

    Raises ConfigError for a bundle without a dictionary.
    """
    if DICTIONARY not in bundle.parts:
        raise ConfigError(f"{bundle.path}: no dictionary; expected one in the bundle, or one for the words to align")
    return read_any_dictionary(bundle.parts[DICTIONARY]), bundle.parts.get(G2P_MODEL)


def transcript_graphs(
    bundle: Bundle, network: BundleNetwork, dictionary: Sequence[Pronunciation] | None = None
) -> TranscriptGraphs:
    """Return what alignment with a network needs, from a bundle with tables.

    dictionary: instead of that of the bundle.  Raises ConfigError for a bundle without them.
    """
    tables = network.tables
    members = {*tables, *bundle.parts.keys() & {DICTIONARY}, *([] if dictionary is None else [DICTIONARY])}
    if not {DICTIONARY, STATE_MAP} <= members:
        raise ConfigError(f"{bundle.path}: {lacking(members, 'alignment')}")
    options = GraphOptions()
    if "silence" in tables:
        silence, topology = read_silence(tables["silence"])
        options = GraphOptions(silence=silence, silence_topology=topology)
    models = PhoneModels.of_tables(tables)
    dictionary = read_any_dictionary(bundle.parts[DICTIONARY]) if dictionary is None else dictionary
    with naming(f"{tables[CNTKMAP]}"):
        return TranscriptGraphs(models, dictionary, hmm_tables.read_cntkmap(tables[CNTKMAP]), options)


def decoder_with_words(
    decoder: Decoder,
    graphs: TranscriptGraphs,
    entries: Sequence[Pronunciation],
    words: Mapping[str, NewWord],
    note: Log = silent,
) -> Decoder:
    """Return a decoder without hotwords whose graph has the words of some pronunciations, too.

    Words that the language model lacks share the probability of their class, else of its unknown word or of its rarest
    one, by their weights, which `words` has.
    Where the graph has no places for them (see `add_words`), it is built anew with what `argonaut graph` gives without
    options; note: gets a line about this.  Raises GraphError for a decoder without language model, and for words that
    its graph or language model cannot take.
    """
    where = decoder.graph.where
    if decoder.lm is None:
        raise GraphError(f"{where}: no language model; expected one, for a graph with new words")
    unknown = {-1, decoder.lm.unknown_id}
    new_words = {entry.word for entry in entries if decoder.lm.word_id(entry.word) in unknown}
    shares = _shares({word: words.get(word, NewWord()) for word in new_words})
    entries = [
        entry._replace(probability=shares[entry.word] * (entry.probability or 1.0)) if entry.word in shares else entry
        for entry in entries
    ]
    classes = {word: words[word].word_class for word in shares if word in words and words[word].word_class}
    lm = with_rare_words(decoder.lm, (entry.word for entry in entries if entry.word not in classes))
    lm = lm.with_aliases(classes)
    vocabulary = {*decoder.graph.words, SENTENCE_START, SENTENCE_END}
    dictionary = [entry for entry in graphs.dictionary or () if entry.word in vocabulary]
    try:
        graph = add_words(decoder.graph, graphs.models, dictionary, entries, lm, graphs.options)
        rows = {state: graphs.rows[state] for state in graph.states if state in graphs.rows}
    except PlacesError as fault:
        note(f"{fault}; the graph is built anew, as by argonaut graph without options")
        graph, rows = graph_of_words(graphs, [*dictionary, *entries], lm, where)
        note_lost_words(decoder.graph.words, graph, note)
    return Decoder(graph, lm, decoder.options, rows, where)


def note_lost_words(words: Iterable[str], graph: DecodingGraph, note: Log) -> None:
    """Note which words of a graph a new one lacks; the graph of another toolkit may have more than its lexicon."""
    lost = sorted({*words} - {*graph.words} - {EPSILON, SENTENCE_START, SENTENCE_END})
    if lost:
        note(f"words without a pronunciation, which the new graph lacks: {listed(lost)}")


def _shares(words: Mapping[str, NewWord]) -> dict[str, float]:
    """Return the share of each word of the probability of its class."""
    totals: dict[str, float] = {}
    for entry in words.values():
        totals[entry.word_class] = totals.get(entry.word_class, 0.0) + entry.share
    return {word: entry.share / totals[entry.word_class] for word, entry in words.items()}


def graph_of_words(
    graphs: TranscriptGraphs, dictionary: Sequence[Pronunciation], lm: LanguageModel, where: str
) -> tuple[DecodingGraph, dict[str, int]]:
    """Return the decoding graph of a dictionary, as `argonaut graph` builds it, and the network output of each state.

    graphs: has the phone models; where: the name of the graph in messages.
    """
    models = graphs.models
    options = replace(graphs.options, drop_missing=True)
    if has_context(models):
        built = build_triphone_graph(models, dictionary, lm, options)
    else:
        built = build_monophone_graph(models.states, models.transitions, dictionary, lm, options)
    graph = precompile(built.acceptor, models.transitions, built.lookahead, models.states, built.outputs, where)
    return graph, {state: graphs.rows[state] for state in graph.states if state in graphs.rows}


def open_flat_start(directory: Path, dictionary: Sequence[Pronunciation]) -> tuple["FrontEnd", TranscriptGraphs]:
    """Return the front end and what alignment needs, from a directory of `argonaut flatstart`.

    Raises FormatError for damaged files, GraphError for models that do not fit together, ConfigError without a record
    of the features, and OSError.
    """
    from decoder.gaussians.models import GaussianModels
    from decoder.gaussians.scorer import GaussianScorer
    from decoder.recognizer.front_end import FrontEnd
    from features import config_of

    mmf = directory / MMF
    features = directory / FEATURES
    if not features.is_file():
        raise ConfigError(
            f"{features}: missing; expected how the features are computed, which argonaut flatstart writes if argonaut "
            "hcopy has made them"
        )
    hmm_set = read_mmf(mmf)
    states = read_state_list(directory / STATES)
    record = read_side_file(features)
    scorer = GaussianScorer(GaussianModels.of_hmm_set(hmm_set, states, f"{mmf}"), record, f"{mmf}")
    graphs = TranscriptGraphs(distil(hmm_set), dictionary, {name: row for row, name in enumerate(states)})
    return FrontEnd(config_of(record), scorer, f"{features}"), graphs


def open_alignment(
    path: Path, dictionary: str | Path | Sequence[Pronunciation] | None = None
) -> tuple[dict[str, Any], Callable[[], dict[str, Any]] | None]:
    """Return the parts of an aligner by the names of its arguments, and its `searching`.

    path: a bundle or a directory of a flat start; dictionary: instead of that of the bundle, with its pronunciation
    model.
    """
    if isinstance(dictionary, (str, Path)):
        dictionary = read_any_dictionary(dictionary)
    if (path / MMF).is_file():
        if dictionary is None:
            raise ConfigError(f"{path}: models without a dictionary; expected one for the words to align")
        front_end, graphs = open_flat_start(path, dictionary)
        return {"front_end": front_end, "graphs": graphs}, None
    bundle = Bundle.open(path)
    options: dict[str, Any] = dict(bundle.description.options)
    searching = None
    if bundle.description.aligner is not None and STATE_MAP in bundle.parts:
        searching = functools.partial(network_alignment, bundle, recognising_network(bundle), dictionary)
    parts = network_alignment(bundle, aligning_network(bundle), dictionary)
    parts["search"] = SearchOptions(**options, silence=bundle.description.silence)
    parts["g2p"] = bundle.parts.get(G2P_MODEL) if dictionary is None else None
    return parts, searching


def network_alignment(
    bundle: Bundle, network: BundleNetwork, dictionary: Sequence[Pronunciation] | None = None
) -> dict[str, Any]:
    """Return front end and graphs of alignment with a network; dictionary: instead of that of the bundle."""
    return {
        "front_end": open_bundle_scores(bundle, network),
        "graphs": transcript_graphs(bundle, network, dictionary),
    }


def _confidences(bundle: Bundle) -> Figures:
    """Return how the confidences were calibrated and measured."""
    calibration = read_calibration(bundle)
    if calibration is None:
        return [("confidences", "posteriors, not calibrated")]
    share = f"{100 * calibration.correct / calibration.words:.1f}% right" if calibration.words else "none"
    fitted = (
        f"calibrated, {calibration.method} map, {calibration.utterances} utterances, {calibration.words} words, {share}"
    )
    return [("confidences", fitted), *(("confidences", str(measurement)) for measurement in calibration.measured)]


def _pronunciation(bundle: Bundle) -> Figures:
    """Return to what the map of pronunciation scores was fitted, if there is one."""
    if PRONUNCIATION not in bundle.parts:
        return []
    about = load_tensors(bundle.parts[PRONUNCIATION])[1].get("about")
    counts = about if isinstance(about, dict) else {}
    size = f"{counts.get('utterances')} utterances of {counts.get('speakers')} speakers"
    return [("pronunciation", f"scores, from {size}")]


def _aligner(bundle: Bundle) -> Figures:
    """Return which network aligns, if it is not that of the search."""
    about = bundle.description.aligner
    return [] if about is None else [("aligner", f"network of its own, window {about.window} frames")]


def _second_pass(bundle: Bundle) -> Figures:
    """Return how lattices are rescored, if they are."""
    if SECOND_PASS not in bundle.parts:
        return []
    from decoder.results.second_pass import SecondPassOptions

    part = bundle.parts[SECOND_PASS_SETTINGS]
    options = SecondPassOptions.parse(part.read_bytes(), f"{part}")
    histories = f"{options.order - 1} words" if options.order else "all words"
    words = f", fewest expected errors at scale {options.consensus:g}" if options.consensus else ""
    shown = f"network with weight {options.weight:g}, histories of {histories}, beam {options.beam:g}{words}"
    return [("second pass", shown)]


def summary(path: str) -> Figures:
    """Open the bundle, with its checksums, and return what it says about itself."""
    opened = Bundle.open(path, verify=True)
    about = opened.description
    options = ", ".join(f"{name} {value:g}" for name, value in about.options.items())
    return [
        *about.figures(),
        ("features", f"{about.hcopy.get('TARGETKIND', '')}, window {about.window} frames"),
        ("options", options or "none"),
        *_aligner(opened),
        *_confidences(opened),
        *_pronunciation(opened),
        *_second_pass(opened),
        ("members", f"{len(opened.parts)}, {opened.size / 1e6:.1f} MB, checksums correct"),
        *((f"+{name}", f"{part.size} bytes at {part.offset}") for name, part in opened.parts.items()),
        ("made by", about.created_by or "not named"),
        *((f"+{name}", value) for name, value in about.hcopy.items()),
    ]
