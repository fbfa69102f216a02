"""Streams cut into utterances at pauses, on scores that say which state each frame is."""

import itertools

import numpy as np
import pytest

from decoder.results.live_recognition import Endpoint, Recognition
from decoder.search.decoder import Decoder, SearchOptions
from readers.errors import ConfigError, ShapeError
from tests.decoder import graphs
from tests.decoder.search.test_search_stream import spoken, three_words

PERIOD = 100_000


def talk(*parts):
    """HMM states of words x, y, z, ten frames each, and of silences, numbers of frames."""
    return [state for part in parts for state in
            (["sil[2]"] * part if isinstance(part, int) else [f"{part}_s2"] * 10)]  # fmt: skip


def run(recognition, scores, size=7):
    events = []
    for begin in range(0, scores.shape[1], size):
        events += recognition.push(scores[:, begin : begin + size])
    return events + recognition.finish()


def finals(events):
    return [(round(event.start, 2), round(event.end, 2), event.text) for event in events if event.is_final]


SPEECH = talk(30, "x", "y", 90, "z", 20, "x", 150, "y", 30)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_pauses_end_utterances_however_the_audio_comes(size):
    decoder = three_words()
    scores = spoken(decoder, SPEECH)
    events = run(Recognition(decoder, [], PERIOD, Endpoint(0.5)), scores, size)
    # After 50 frames of silence, at the end of a block of 10; half of it is the next utterance's, too.
    assert finals(events) == [(0.0, 1.0, "x y"), (0.75, 2.3, "z x"), (2.05, 3.7, "y")]
    last = [event for event in events if event.is_final]
    assert [(word.text, round(word.start, 2), round(word.end, 2)) for event in last for word in event.words] == [
        ("x", 0.3, 0.4), ("y", 0.4, 0.5), ("z", 1.4, 1.5), ("x", 1.7, 1.8), ("y", 3.3, 3.4),
    ]  # fmt: skip
    assert all(event.reason == "" and event.num_stable == len(event.words) for event in last)


def test_partial_results_come_when_something_is_new_and_stable_words_stay():
    decoder = three_words()
    events = run(Recognition(decoder, [], PERIOD, Endpoint(0.5)), spoken(decoder, SPEECH), 10)
    told = [(event.start, event.stable, event.unstable, event.is_final) for event in events]
    assert len(told) == len(set(told))
    for event, after in itertools.pairwise(events):
        if not event.is_final:
            assert after.text.split()[: event.num_stable] == event.stable.split()
            assert after.start == event.start
    assert any(event.text == "x" and not event.is_final for event in events)


def test_without_an_endpoint_the_result_is_that_of_the_whole():
    decoder = three_words()
    scores = spoken(decoder, SPEECH)
    events = run(Recognition(decoder, [], PERIOD), scores)
    result = decoder.decode(scores)
    assert finals(events) == [(0.0, 3.7, " ".join(result.text))]
    assert [word.start for word in events[-1].words] == [word.start / 100 for word in result.words]


def test_an_utterance_that_never_pauses_is_cut():
    decoder = three_words()
    events = run(Recognition(decoder, [], PERIOD, Endpoint(0.5, longest=2.0)), spoken(decoder, talk(*["x", "y"] * 20)))
    assert " ".join(text for _, _, text in finals(events)).split() == ["x", "y"] * 20
    assert [end for _, end, _ in finals(events)] == [2.0, 4.0]
    # From half of the longest on, a shorter pause is enough.
    speech = talk(*["x", "y"] * 7, 20, "y", 30)
    events = run(Recognition(decoder, [], PERIOD, Endpoint(0.5, longest=2.0)), spoken(decoder, speech))
    assert finals(events)[0] == (0.0, 1.6, " ".join(["x", "y"] * 7))


def test_silence_alone_is_no_utterance():
    decoder = three_words()
    recognition = Recognition(decoder, [], PERIOD, Endpoint(0.5, no_speech=1.0))
    events = run(recognition, spoken(decoder, talk(500, "x", 500)))
    assert [text for _, _, text in finals(events)] == ["x"]
    assert finals(events)[0][0] > 4.0
    assert recognition.num_frames == 1010


def test_an_utterance_is_over_when_all_have_said_so():
    """One word between <s> and </s>; the silence of </s> is a state of its own."""
    arcs = [(0, 1, "<s>", 0.0), (1, 2, "[sil[2]]", 0.0), (2, 3, "x", 0.0), (3, 4, "[x_s2]", 0.0), (4, 5, "</s>", 0.0),
            (5, 6, "[sil[3]]", 0.0)]  # fmt: skip
    from decoder.graph.compiled_graph import precompile

    options = SearchOptions(acweight=1.0, beam=5.0, word_end_beam_frac=2.0, sil_cost=0.0)
    decoder = Decoder(precompile(graphs.make_acceptor(arcs, {6: 0.0}), None, None), None, options)
    states = (["sil[2]"] * 10 + ["x_s2"] * 19 + ["sil[3]"]) * 2
    events = run(Recognition(decoder, [], PERIOD, Endpoint(5.0)), spoken(decoder, states))
    assert [text for _, _, text in finals(events)] == ["x", "x"]
    assert finals(events)[0] == (0.0, 0.3, "x")


def test_what_cannot_be_told_has_a_reason():
    decoder = three_words()
    scores = spoken(decoder, talk(30, "x", "y", 30, "z", 30))
    scores[:, 40] = -np.inf
    events = run(Recognition(decoder, [], PERIOD, Endpoint(0.5)), scores)
    # y had not begun; what comes after the dead frame is found by a new search.
    assert [(event.text, event.reason) for event in events if event.is_final] == [
        ("x", "every token died in frame 40: no state in reach has a score above -inf"),
        ("z", ""),
    ]
    unfinished = three_words(beam=3.0)
    events = run(Recognition(unfinished, [], PERIOD, Endpoint(0.5)), spoken(unfinished, talk("x")))
    assert [event.text for event in events if event.is_final] == ["x"]


def test_stages_are_passed_through_to_the_end():
    class Late:
        """Keeps a frame back, and adds one at the end."""

        def __init__(self):
            self.kept = None

        def push(self, data):
            both = data if self.kept is None else np.concatenate([self.kept, data], axis=1)
            self.kept = both[:, -1:]
            return both[:, :-1]

        def finish(self):
            return self.kept

    decoder = three_words()
    scores = spoken(decoder, talk(20, "x", 13))
    events = run(Recognition(decoder, [Late(), Late()], PERIOD), scores)
    assert finals(events) == [(0.0, 0.43, "x")]


def test_words_have_confidences_if_the_decoder_keeps_lattices():
    decoder = three_words(lattice_beam=6.0, word_penalty=5.0)
    scores = spoken(decoder, SPEECH)
    y, z = (decoder.graph.states.index(f"{word}_s2") for word in "yz")
    scores[z] = np.where(scores[y] == 0, -0.01, scores[z])
    events = run(Recognition(decoder, [], PERIOD, Endpoint(0.5)), scores)
    assert finals(events) == [(0.0, 1.0, "x y"), (0.75, 2.3, "z x"), (2.05, 3.7, "y")]
    for event in events:
        for word in event.words:
            assert (0.4 < word.confidence < 0.6) if word.text == "y" else (word.confidence > 0.99)
    last = [event for event in events if event.is_final]
    for event in last:
        assert event.start <= event.lattice.time.min() < event.lattice.time.max() <= event.end
        assert [[word[:3] for word in one] for one in event.hypotheses(1)] == [[word[:3] for word in event.words]]
    assert {"y", "z"} == {one[0].text for one in last[2].hypotheses(2)}
    halved = run(Recognition(decoder, [], PERIOD, Endpoint(0.5), calibrate=lambda posterior: posterior / 2), scores)
    for event, other in zip(events, halved, strict=True):
        assert [word.confidence / 2 for word in event.words] == [word.confidence for word in other.words]
    assert all(word.confidence <= 0.5 for one in halved[-1].hypotheses(2) for word in one)


def test_faults_are_named():
    with pytest.raises(ConfigError, match="endpoint: pause 0 s, longest 30 s, no_speech 5 s; expected"):
        Endpoint(0.0)
    with pytest.raises(ConfigError, match="expected a pause above 0 and the others at least as long"):
        Endpoint(2.0, no_speech=1.0)
    with pytest.raises(ConfigError, match="blocks of 0 frames"):
        Recognition(three_words(), [], PERIOD, block=0)
    with pytest.raises(ShapeError, match="NaN"):
        run(Recognition(three_words(), [], PERIOD), np.full((4, 20), np.nan, np.float32))
