"""Speech that the search passes as silence, since its sentence is over; scores say which state each frame is."""

import numpy as np
import pytest

from decoder.graph.compiled_graph import precompile
from decoder.recognizer.transcript import transcript_of
from decoder.results.live_recognition import Endpoint, Recognition
from decoder.results.unheard import unheard_speech
from decoder.search.decoder import Decoder, SearchOptions
from decoder.search.search_stream import SearchStream
from tests.decoder import graphs
from tests.decoder.search.test_options import one_word
from tests.decoder.search.test_search_stream import spoken

PERIOD = 100_000  # 10 ms
SILENCE = "sil[2]"


def said(*parts):
    """States of pairs (state, number of frames)."""
    return [state for state, count in parts for _ in range(count)]


TWO = said((SILENCE, 30), ("x_s2", 60), (SILENCE, 40), ("y_s2", 30), (SILENCE, 20), ("y_s2", 50), (SILENCE, 30))


def results(states, **options):
    """The results of both searches."""
    decoder = one_word(**options)
    scores, stream = spoken(decoder, states), SearchStream(decoder)
    for begin in range(0, scores.shape[1], 7):
        stream.push(scores[:, begin : begin + 7])
    return decoder.decode(scores), stream.finish()


def test_the_second_sentence_is_in_no_word():
    for result in results(TWO, beam=1e9):
        assert result.text == ["x"]
        assert not result.reason
        assert unheard_speech(result, PERIOD) == "speech at 1.30-2.30 s is in no word"
        assert unheard_speech(result, 3 * PERIOD, start=10.0) == "speech at 13.90-16.90 s is in no word"
        transcript = transcript_of(result, result.decoder, PERIOD, 2.6, start=2.0)
        assert transcript.reason == "speech at 3.30-4.30 s is in no word"


@pytest.mark.parametrize(
    "states",
    [
        said((SILENCE, 300), ("x_s2", 60), (SILENCE, 300)),
        said((SILENCE, 30), ("x_s2", 60), (SILENCE, 90), ("y_s2", 10), (SILENCE, 90)),  # a short sound
        said((SILENCE, 30), ("x_s2", 90), (SILENCE, 19), ("y_s2", 80)),  # a silence of less than a second
    ],
)
def test_silences_and_short_sounds_are_no_speech(states):
    for result in results(states, beam=1e9):
        assert result.text == ["x"]
        assert unheard_speech(result, PERIOD) == ""


def test_with_new_sentences_all_words_are_heard():
    for result in results(TWO, beam=1e9, new_sentence=1.0):
        assert result.text == ["x", "y", "y"]
        assert unheard_speech(result, PERIOD) == ""


def test_every_silence_is_looked_into():
    before, after = (said(("y_s2", 80), (SILENCE, 40)) for _ in range(2))
    for result in results([*said((SILENCE, 30)), *before, *said(("x_s2", 90)), *said((SILENCE, 40)), *after], beam=1e9):
        assert unheard_speech(result, PERIOD) == "speech at 0.30-1.10 s, 2.80-3.60 s is in no word"


def test_results_without_a_path_and_graphs_without_silence_have_none():
    result = one_word().decode(np.zeros((3, 0), np.float32))
    assert result.reason
    assert unheard_speech(result, PERIOD) == ""
    decoder = one_word(silence=())
    assert unheard_speech(decoder.decode(spoken(decoder, TWO)), PERIOD) == ""


def test_an_event_tells_in_seconds_of_the_audio():
    decoder = one_word(beam=1e9, new_sentence=1.0)  # which streams turn off
    recognition = Recognition(decoder, [], PERIOD, Endpoint(pause=2.0))
    states = said((SILENCE, 30), ("x_s2", 30), (SILENCE, 230)) + TWO
    events = recognition.push(spoken(decoder, states)) + recognition.finish()
    assert [(event.text, event.reason) for event in events if event.is_final] == [
        ("x", ""),
        ("x", "speech at 4.20-5.20 s is in no word"),
    ]


@pytest.mark.parametrize(("sound", "told"), [("y_s2", [(0.0, "speech at 1.00-3.00 s is in no word")]), (SILENCE, [])])
def test_an_utterance_without_words_is_told_if_there_is_speech(sound, told):
    arcs = [(0, 1, "[sil[2]]", 0.0), (1, 2, "y", 1e4), (2, 3, "[y_s2]", 0.0)]  # the word is as good as impossible
    graph = precompile(graphs.make_acceptor(arcs, {1: 0.0, 3: 0.0}))
    decoder = Decoder(graph, None, SearchOptions(acweight=1.0, sil_cost=0.0, beam=1e9))
    recognition = Recognition(decoder, [], PERIOD, Endpoint())
    scores = spoken(decoder, said((SILENCE, 100), (sound, 200), (SILENCE, 210)))
    events = recognition.push(scores) + recognition.finish()
    assert [(event.start, event.reason) for event in events] == told
