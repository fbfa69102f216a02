"""The WebSocket: vosk-server's protocol, as its clients speak it."""

import contextlib
import json

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from readers.audio.resampling import resample
from recipes.serve.websocket import StreamConfig
from tests.recipes.serve.conftest import EOF, connect, speak_to
from tests.recipes.systems.small_system import RATE, TONES, speak


def finals(answers):
    return [answer["text"] for answer in answers if answer.get("text")]


@pytest.mark.parametrize("path", ["", "/", "/asr"])
def test_a_client_of_vosk(server, pcm, path):
    with connect(server.ws + path) as socket:
        answers = speak_to(socket, pcm, sample_rate=RATE)
        assert finals(answers) == ["AB C"]
        assert all(set(answer) == {"partial"} for answer in answers[:-1])
        assert any(answer["partial"] == "AB" for answer in answers[:-1])
        words = answers[-1]["result"]
        assert [word["word"] for word in words] == ["AB", "C"]
        assert all(0 <= word["start"] < word["end"] and 0.5 < word["conf"] <= 1 for word in words)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv()
        assert closed.value.rcvd.code == 1000


def test_words_are_left_out_on_request(server, pcm):
    with connect(server.ws) as socket:
        assert speak_to(socket, pcm, words=False)[-1] == {"text": "AB C"}


def test_partial_words(server, pcm):
    with connect(server.ws) as socket:
        answers = speak_to(socket, pcm, partial_words=True)
    shown = [answer for answer in answers if answer.get("partial")]
    assert [word["word"] for word in shown[-1]["partial_result"]] == shown[-1]["partial"].split()
    assert all(0 <= word["conf"] <= 1 for word in shown[-1]["partial_result"])
    assert all("partial_result" not in answer for answer in answers if answer.get("partial") == "")


def test_alternatives(server, recognizer, pcm):
    rng = np.random.default_rng(1)
    one, other = speak(["AB", "C"], rng)[0], speak(["BA", "CAB"], rng)[0]
    count = min(len(one), len(other))
    both = (one[:count] / 2 + other[:count] / 2 + 800 * rng.normal(size=count)).astype("<i2")  # two who speak at once
    stream = recognizer.stream(RATE)
    (event,) = [one for one in stream.push(both) + stream.finish() if one.is_final]
    expected = [" ".join(word.text for word in words) for words in event.hypotheses(3)]
    assert len(expected) == 2
    with connect(server.ws) as socket:
        last = speak_to(socket, both.tobytes(), max_alternatives=3)[-1]
    assert set(last) == {"alternatives"}
    assert [one["text"] for one in last["alternatives"]] == expected
    for one in last["alternatives"]:
        confidences = [word["conf"] for word in one.get("result", [])] or [1.0]
        assert one["confidence"] == pytest.approx(sum(confidences) / len(confidences), abs=1e-3)
    with connect(server.ws) as socket:
        assert speak_to(socket, b"", max_alternatives=3) == [{"alternatives": [{"text": "", "confidence": 1.0}]}]


def test_phrases(server, pcm):
    with connect(server.ws) as socket:
        answers = speak_to(socket, pcm, phrase_list=["BA", "AB C"])
        assert finals(answers) == ["AB C"]
        assert [(answer["accepted"], answer["grammar_score"] > -0.47) for answer in answers if "result" in answer] == [
            (True, True)
        ]
    with connect(server.ws) as socket:
        assert finals(speak_to(socket, pcm, phrase_list=["BA C"])) in ([], ["BA C"])
    with connect(server.ws) as socket:
        assert finals(speak_to(socket, pcm, phrase_list=["NOTHING", "AB C"])) == ["AB C"]
    with connect(server.ws) as socket:
        socket.send('{"config": {"phrase_list": ["NOTHING"]}}')
        socket.send(pcm)
        assert "NOTHING" in json.loads(socket.recv())["error"]


def test_any_cut_of_the_audio_gives_the_same_words(server, recognizer, pcm):
    samples = np.frombuffer(pcm, "<i2")
    stream = recognizer.stream(RATE)
    expected = [event.text for event in stream.push(samples) + stream.finish() if event.is_final]
    for block in (999, 40_000, len(pcm)):  # an odd number of bytes cuts samples in two
        with connect(server.ws) as socket:
            assert finals(speak_to(socket, pcm, block)) == expected


def test_utterances_that_end_in_one_message_share_an_answer(server, pcm):
    hum = 3000 * np.sin(2 * np.pi * TONES[-1] / RATE * np.arange(2 * RATE))  # the tone of the end of silence
    pause = (hum + 100 * np.random.default_rng(0).normal(size=len(hum))).astype("<i2").tobytes()
    with connect(server.ws) as socket:
        answers = speak_to(socket, pcm + pause + pcm + pause, block=1 << 20)
    assert [answer["text"] for answer in answers] == ["AB C AB C", ""]


def test_the_end_without_audio(server):
    with connect(server.ws) as socket:
        socket.send(EOF)
        assert json.loads(socket.recv()) == {"text": ""}


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("hello", "text message 'hello'; expected"),
        ('{"config": 3}', "expected"),
        ("[" * 100_000, "expected"),
        ('{"config": {"sample_rate": "x"}}', 'sample_rate "x"; expected 1000 to 384000 Hz'),
        ('{"config": {"sample_rate": NaN}}', "sample_rate NaN; expected"),
        ('{"config": {"sample_rate": 1' + 400 * "0" + "}}", "expected 1000 to 384000 Hz"),
        ('{"config": {"max_alternatives": "1.5"}}', 'max_alternatives "1.5"; expected a whole number from 0'),
        ('{"config": {"max_alternatives": null}}', "max_alternatives null; expected a whole number from 0"),
        ('{"config": {"max_alternatives": 1e999}}', "max_alternatives Infinity; expected a whole number from 0"),
        ('{"config": {"max_alternatives": -1}}', "max_alternatives -1; expected a whole number from 0"),
        ('{"config": {"phrase_list": ["a", 3]}}', 'phrase_list ["a", 3]; expected a list of texts'),
        ('{"config": {"phrase_list": "[3]"}}', 'phrase_list "[3]"; expected a list of texts'),
        ('{"config": {"phrase_list": 3}}', "phrase_list 3; expected a list of texts"),
        ('{"config": {"phrase_list": {"a": 1}}}', 'phrase_list {"a": 1}; expected a list of texts'),
        ('{"config": {"sample_rate": null}}', "sample_rate null; expected 1000 to 384000 Hz"),
        ('{"config": {"sample_rate": [16000]}}', "sample_rate [16000]; expected 1000 to 384000 Hz"),
    ],
)
def test_garbage_is_named_and_ends_the_connection(server, message, found):
    with connect(server.ws) as socket:
        socket.send(message)
        assert found in json.loads(socket.recv())["error"]
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv()
        assert closed.value.rcvd.code == 1007


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("sample_rate", "16000", 16000.0),
        ("sample_rate", " 44100.0 ", 44100.0),
        ("words", "true", True),
        ("words", "false", True),  # as in Python, any text is true
        ("words", "", False),
        ("words", None, False),
        ("words", 0, False),
        ("words", 2, True),
        ("partial_words", "1", True),
        ("max_alternatives", "3", 3),
        ("max_alternatives", 2.9, 2),
        ("max_alternatives", True, 1),
        ("phrase_list", "turn on", ("turn on",)),
        ("phrase_list", '["turn on", "[unk]"]', ("turn on", "[unk]")),
        ("phrase_list", "", ()),
        ("phrase_list", "[]", ()),
        ("phrase_list", None, ()),
        ("phrase_list", "3", ("3",)),
        ("phrase_list", "[unk]", ("[unk]",)),
    ],
)
def test_values_are_converted_as_by_vosk_server(name, given, expected):
    before = StreamConfig(8000.0, words=name != "words")
    value = getattr(before.updated({name: given}), name)
    assert (value, type(value)) == (expected, type(expected))


def test_a_client_that_sends_texts(server, pcm):
    with connect(server.ws) as socket:
        socket.send(
            json.dumps({"config": {"sample_rate": str(RATE), "words": "true", "phrase_list": '["BA", "AB C"]'}})
        )
        answers = speak_to(socket, pcm)
    assert finals(answers) == ["AB C"]
    assert [word["word"] for word in answers[-1]["result"]] == ["AB", "C"]


@pytest.mark.parametrize("end", [b'{"eof" : 1}', b'{"eof":1}\n', b' { "eof": true }'])
def test_the_end_in_a_binary_message(server, pcm, end):
    with connect(server.ws) as socket:
        socket.send(pcm)
        socket.recv()
        socket.send(end)
        assert json.loads(socket.recv())["text"] == "AB C"
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv()
        assert closed.value.rcvd.code == 1000


@pytest.mark.parametrize("data", [b'{"eof" : 1}{"eof" : 1} ', b'{"eof" : 0}', b'xx{"eof" : 1}', b'{"config": {}}'])
def test_other_binary_messages_are_audio(server, data):
    with connect(server.ws) as socket:
        socket.send(data)
        assert json.loads(socket.recv()) == {"partial": ""}


def test_noise_is_recognised_as_something(server):
    with connect(server.ws) as socket:
        answers = speak_to(socket, np.random.default_rng(0).bytes(40_001))
    assert "text" in answers[-1]


def test_audio_of_a_higher_rate(server, pcm):
    samples = resample(np.frombuffer(pcm, "<i2").astype(np.float32), RATE, 48000).astype("<i2").tobytes()
    with connect(server.ws) as socket:
        assert finals(speak_to(socket, samples, sample_rate=48000)) == ["AB C"]


def test_audio_of_a_lower_rate_is_refused(server, pcm):
    with connect(server.ws) as socket:
        socket.send('{"config": {"sample_rate": 8000}}')
        socket.send(pcm)
        assert "8000" in json.loads(socket.recv())["error"]


def test_another_rate_after_audio_is_refused(server, pcm):
    with connect(server.ws) as socket:
        socket.send(pcm[:3200])
        socket.recv()
        socket.send('{"config": {"sample_rate": 8000}}')
        assert "after audio; expected it before" in json.loads(socket.recv())["error"]


def test_a_message_above_the_limit(start):
    with start(message=1000) as server, connect(server.ws) as socket:
        socket.send(bytes(1001))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv()
        assert closed.value.rcvd.code == 1009


def test_the_stream_after_the_last_is_refused(start, pcm):
    with start(streams=2) as server, connect(server.ws) as first, connect(server.ws) as second:
        for socket in (first, second):
            socket.send(pcm[:3200])
            assert json.loads(socket.recv()) == {"partial": ""}
        with connect(server.ws) as third, pytest.raises(ConnectionClosed) as closed:
            third.recv()
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (
            1013,
            "2 streams are open, as many as allowed; try again later",
        )
        assert finals(speak_to(first, pcm[3200:])) == ["AB C"]
        with connect(server.ws) as another:
            assert finals(speak_to(another, pcm)) == ["AB C"]


def test_eight_streams_at_once(start, pcm):
    with start() as server, contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(connect(server.ws)) for _ in range(8)]
        for begin in range(0, len(pcm), 3200):
            for socket in sockets:
                socket.send(pcm[begin : begin + 3200])
        for socket in sockets:
            socket.send(EOF)
        for socket in sockets:
            assert finals([json.loads(text) for text in socket]) == ["AB C"]


@pytest.mark.slow
def test_time_without_data_ends_a_stream(start, pcm):
    with start(idle=0.3) as server, connect(server.ws) as socket:
        socket.send(pcm)
        socket.recv()
        assert json.loads(socket.recv())["text"] == "AB C"
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv()
        assert closed.value.rcvd.reason == "no data for 0.3 s"


def test_the_longest_stream(start, pcm):
    with start(stream_seconds=0.5) as server, connect(server.ws) as socket:
        socket.send(pcm)
        socket.recv()
        assert json.loads(socket.recv())["text"] == "AB C"
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv()
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "0.5 s of audio, as much as allowed")


def test_a_stopping_server_sends_the_last_result(start, pcm):
    with start() as server, connect(server.ws) as socket:
        socket.send(pcm)
        socket.recv()
        assert server.stop()
        assert json.loads(socket.recv())["text"] == "AB C"
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv()
        assert closed.value.rcvd.code == 1001


def test_random_audio_of_several_speakers(server, recognizer):
    for seed in range(3):
        samples, _ = speak(["CAB", "BA", "C"], np.random.default_rng(seed))
        data = np.rint(samples).astype("<i2")
        stream = recognizer.stream(RATE)
        expected = " ".join(event.text for event in stream.push(data) + stream.finish() if event.is_final)
        with connect(server.ws) as socket:
            assert " ".join(finals(speak_to(socket, data.tobytes()))) == expected
