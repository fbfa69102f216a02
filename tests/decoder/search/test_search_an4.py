"""Real words, alignments and dictionary: scores made of HTK's alignment must give back its words and their times."""

import re

import numpy as np
import pytest

from decoder.graph import GraphOptions, build_monophone_graph
from decoder.graph.compiled_graph import precompile
from decoder.graph.transitions import estimate_transitions
from decoder.lm.estimation import estimate
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from readers.htk.dictionary import read_dictionary
from readers.htk.frame_labels import frame_labels, read_state_list
from readers.htk.mlf import read_mlf
from readers.tables.state_names import state_map_of

NUM_UTTERANCES = 40


@pytest.fixture(scope="module")
def task(an4_dir):
    """(decoder, utterance -> labels, utterance -> words, state -> row)"""
    states = read_state_list(an4_dir / "align" / "ci_states.list")
    texts = {}
    for line in (an4_dir / "etc" / "an4_train.transcription").read_text().splitlines():
        words, name = re.fullmatch(r"<s> (.*) </s> \((.*)\)", line.strip()).groups()
        texts[name] = words.split()
    mlf = read_mlf(an4_dir / "align" / "train.ci_states.mlf")
    keys = [key for key in mlf if key.rsplit("/", 1)[-1] in texts][:: len(mlf) // NUM_UTTERANCES]
    dictionary = read_dictionary(an4_dir / "align" / "an4.dict")
    vocabulary = {entry.word for entry in dictionary} - {"<s>", "</s>"}
    arpa = estimate(texts.values(), 2, vocabulary=sorted(vocabulary))
    transitions = estimate_transitions(mlf, states).transitions
    graph = build_monophone_graph(
        state_map_of(states), transitions, dictionary, arpa, GraphOptions(silence_topology="any-order")
    )
    compiled = precompile(graph.acceptor, transitions, graph.lookahead, outputs=graph.outputs)
    rows = {state: i for i, state in enumerate(states)}
    decoder = Decoder(compiled, LanguageModel.from_arpa(arpa), SearchOptions(acweight=1.0), rows)
    labels = {key: mlf[key] for key in keys}
    return decoder, labels, {key: texts[key.rsplit("/", 1)[-1]] for key in keys}, rows


@pytest.mark.slow
@pytest.mark.corpus
def test_aligned_states_give_back_the_words_and_where_they_begin(task):
    decoder, alignments, texts, rows = task
    assert len(texts) >= NUM_UTTERANCES
    for key, labels in alignments.items():
        frames = frame_labels(labels, rows, key)
        scores = np.full((len(rows), len(frames)), -15.0, np.float32, order="F")
        scores[frames, np.arange(len(frames))] = 0.0
        result = decoder.decode(scores)
        assert (result.reason, result.text) == ("", texts[key]), key
        begins = [
            label.start // 100000 for label in labels if len(label.aux) > 1 and label.aux[1][0] not in ("<s>", "</s>")
        ]
        assert [word.start for word in result.words] == begins, key
        # A word ends where silence or the next word begins.
        phones = [(label.start // 100000, label.aux[0][0]) for label in labels if label.aux]
        silences = [start for start, phone in phones if phone == "sil"]
        for word, following in zip(result.words, [*begins[1:], len(frames)]):
            assert word.end == min([start for start in silences if start > word.start] + [following]), key
