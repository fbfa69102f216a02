"""Graph, language model and search together: alignments turned into scores must decode to their words."""

import numpy as np
import pytest

from decoder.graph import GraphOptions, build_monophone_graph
from decoder.graph.compiled_graph import precompile
from decoder.graph.transitions import estimate_transitions
from decoder.lm.estimation import estimate
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from readers.htk.dictionary import Pronunciation, read_dictionary
from readers.htk.frame_labels import frame_labels, read_state_list
from readers.htk.mlf import read_mlf
from readers.results.trn import read_trn
from readers.tables.state_names import state_map_of

WIDE = SearchOptions(acweight=1.0, beam=60.0, word_end_beam_frac=1.0, sil_cost=0.0)
SENTENCES = [["NO", "A"], ["ONE", "OH"], ["O", "NO"], ["TWO", "OH", "A"]]  # OH and O differ by their neighbours only
WRONG_STATE = -8.0  # log-likelihood of every state but the aligned one


def scores_of(frames, num_states):
    scores = np.full((num_states, len(frames)), WRONG_STATE, dtype=np.float32, order="F")
    scores[frames, np.arange(len(frames))] = 0.0
    return scores


@pytest.mark.parametrize("seed", range(10))
def test_states_of_a_sentence_decode_to_the_sentence(seed):
    rng = np.random.default_rng(seed)
    phones = {
        "ONE": [("w", "ah", "n"), ("hh", "w", "ah", "n")],
        "TWO": [("t", "uw")],
        "A": [("ah",)],
        "OH": [("ow",)],
        "O": [("ow",)],
        "NO": [("n", "ow")],
    }
    names = ["w", "ah", "n", "hh", "t", "uw", "ow", "sil"]
    state_map = {name: [f"{name}_s{k}" for k in (2, 3, 4)] for name in names}
    states = [state for of_phone in state_map.values() for state in of_phone]
    dictionary = [Pronunciation(mark, "", None, ("sil",)) for mark in ("<s>", "</s>")]
    dictionary += [Pronunciation(word, None, None, p) for word, all_of in phones.items() for p in all_of]
    arpa = estimate(SENTENCES, 2, "kn", list(phones))
    graph = build_monophone_graph(state_map, None, dictionary, arpa, GraphOptions())
    decoder = Decoder(
        precompile(graph.acceptor, None, graph.lookahead, state_map),
        LanguageModel.from_arpa(arpa),
        WIDE,
        {state: i for i, state in enumerate(states)},
    )
    words = SENTENCES[seed % len(SENTENCES)]
    spoken = ["sil"]
    for i, word in enumerate(words):
        spoken += ["sil"] if i and rng.random() < 0.5 else []
        spoken += phones[word][rng.integers(len(phones[word]))]
    frames = [
        states.index(s) for phone in [*spoken, "sil"] for s in state_map[phone] for _ in range(rng.integers(1, 4))
    ]
    result = decoder.decode(scores_of(np.array(frames), len(states)))
    assert [word.text for word in result.words] == result.text == words


@pytest.mark.corpus
def test_an4_alignments_decode_to_their_transcripts(an4_dir):
    """Silence in any order: the alignments visit its states in many."""
    states = read_state_list(an4_dir / "align" / "ci_states.list")
    ids = {state: i for i, state in enumerate(states)}
    alignments = read_mlf(an4_dir / "align" / "train.ci_states.mlf")
    transcripts = read_trn(an4_dir / "etc" / "an4_train.transcription")
    dictionary = read_dictionary(an4_dir / "align" / "an4.dict")
    words = [entry.word for entry in dictionary if entry.word not in ("<s>", "</s>")]
    arpa = estimate(transcripts.values(), 3, "kn", words)
    state_map = state_map_of(states)
    transitions = estimate_transitions(alignments, states).transitions
    graph = build_monophone_graph(state_map, transitions, dictionary, arpa, GraphOptions(silence_topology="any-order"))
    decoder = Decoder(
        precompile(graph.acceptor, transitions, graph.lookahead, state_map, graph.outputs),
        LanguageModel.from_arpa(arpa),
        WIDE,
        ids,
    )
    for key in list(alignments)[:25]:
        result = decoder.decode(scores_of(frame_labels(alignments[key], ids, key), len(states)))
        assert [word.text for word in result.words] == transcripts[key.rsplit("/", 1)[-1]], key
