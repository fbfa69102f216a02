"""Several sentences in one utterance, over a graph in which a sentence is a dead end."""

from decoder.search.decoder import Decoder, SearchOptions
from tests.decoder import graphs
from tests.decoder.search.test_search_stream import spoken


def one_word(**options):
    """<s>, x or y, </s>, with silence at both ends."""
    from decoder.graph.compiled_graph import precompile

    arcs = [(0, 1, "[sil[2]]", 0.0), (1, 2, "x", 0.0), (1, 3, "y", 0.0)]
    arcs += [(2, 4, "[x_s2]", 0.0), (3, 4, "[y_s2]", 0.0), (4, 5, "[sil[2]]", 0.0)]
    graph = precompile(graphs.make_acceptor(arcs, {5: 0.0}), None, None)
    return Decoder(graph, None, SearchOptions(acweight=1.0, sil_cost=0.0, **options))


SAID = ["sil[2]"] * 3 + ["x_s2"] * 4 + ["sil[2]"] * 6 + ["y_s2"] * 4 + ["sil[2]"] * 3


def test_the_words_of_both_sentences_are_found_in_files():
    decoder = one_word(new_sentence=1.0, lattice_beam=5.0)
    result = decoder.decode(spoken(decoder, SAID))
    assert [(word.word, word.start, word.end) for word in result.words] == [("x", 3, 7), ("y", 13, 17)]
    assert result.cost == 1.0
    assert -2 in result.lattice.word


def test_without_the_option_an_utterance_is_one_sentence():
    decoder = one_word()
    assert len(decoder.decode(spoken(decoder, SAID)).text) == 1
