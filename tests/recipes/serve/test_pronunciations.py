"""Scores of pronunciation, over HTTP and on the page."""

import json
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from decoder.recognizer import Recognizer
from decoder.recognizer.bundle import PRONUNCIATION, Bundle
from decoder.recognizer.jobs.pronunciation.fitting import fit_pronunciation
from decoder.recognizer.jobs.pronunciation.result import Pronunciation, ScoredPhone, ScoredWord
from decoder.recognizer.packing import add_member
from readers.audio.audio_file import read_audio
from recipes.cli.main import main
from tests.decoder.recognition.pronunciation.judged import PHONES, corpus
from tests.recipes.serve import test_abuse
from tests.recipes.serve.browser import IS_MISSING, drop
from tests.recipes.serve.test_page import COLLECT_PLAYS
from tests.recipes.systems.small_system import RATE

needs_browser = pytest.mark.skipif(IS_MISSING, reason="no chromium, chromedriver and selenium: the page is not tested")
RESULT = Pronunciation(
    6.04,
    (
        ScoredWord("AB", 0.1, 0.4, 4.0, (ScoredPhone("a", 0.1, 0.2, 0.4, "c"), ScoredPhone("b", 0.2, 0.4, 1.2))),
        ScoredWord("<b>", 0.5, 0.8, 9.0, (ScoredPhone("c", 0.5, 0.7, 1.9), ScoredPhone("a", 0.7, 0.8, 0.0, ""))),
    ),
    1.0,
)


@pytest.fixture(scope="module")
def scored(bundle, tmp_path_factory):
    """The path of the bundle with a map of pronunciation scores, which is fitted to made-up speakers."""
    path = tmp_path_factory.mktemp("scored") / "scored.argo"
    add_member(Bundle.open(bundle), PRONUNCIATION, fit_pronunciation(corpus(0), PHONES).as_bytes(), path)
    return path


@pytest.fixture(scope="module")
def server(start, scored):
    """A server of that bundle."""
    with start(model=Recognizer.load(scored).with_audio(channel="mix")) as running:
        yield running


def ask(server, *parts: tuple[bytes, ...]) -> tuple[int, dict]:
    """Return the status and the content of the answer to a form."""
    answer = test_abuse.ask(server, test_abuse.post(*parts, path=b"/v1/audio/pronunciations"))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def score(server, content: bytes, text: str = "AB C", name: bytes = b"speech.wav") -> tuple[int, dict]:
    return ask(server, (b"file", content, name), (b"text", text.encode()))


def get(server, path: str) -> dict:
    with urllib.request.urlopen(server.url + path) as answer:
        return json.load(answer)


def test_the_answer_is_that_of_the_command(server, speech, scored, capsys):
    status, answer = score(server, speech.read_bytes())
    assert status == 200
    assert main(["pronounce", str(scored), str(speech), "--text", "AB C", "--format", "json"]) == 0
    assert answer == json.loads(capsys.readouterr().out) | {"file": "speech.wav"}
    assert [word["word"] for word in answer["words"]] == ["AB", "C"]


def test_channels_are_mixed(server, speech, tmp_path):
    samples, rate = soundfile.read(speech)
    soundfile.write(tmp_path / "stereo.flac", np.stack([samples, samples * 0.5], axis=1), rate)
    assert score(server, (tmp_path / "stereo.flac").read_bytes())[1]["text"] == "AB C"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ", "text of 0 characters; expected 1 to 1000, to be said"),
        ("AB " * 400, "text of 1199 characters; expected 1 to 1000"),
        ("AB XY", "not in the dictionary: XY"),
    ],
)
def test_texts_that_cannot_be_scored(server, speech, text, message):
    status, answer = score(server, speech.read_bytes(), text)
    assert (status, answer["error"]["param"]) == (400, "text")
    assert message in answer["error"]["message"]


def test_audio_that_cannot_be_scored(server, tmp_path):
    def refused(content: bytes, status: int) -> str:
        answer = score(server, content, name=b"a.flac")
        assert (answer[0], answer[1]["error"]["param"]) == (status, "file")
        return answer[1]["error"]["message"]

    assert refused(b"Dear Sir", 400).startswith("a.flac: ")
    path = tmp_path / "long.flac"
    soundfile.write(path, np.zeros(61 * RATE), RATE)
    assert refused(path.read_bytes(), 413) == "a.flac: 61 s of audio; expected at most 60 s"
    content = bytearray(path.read_bytes())
    content[21:26] = bytes([content[21] & 0xF0, 0, 0, 0, 0])
    assert refused(bytes(content), 400) == "a.flac: no length in its header; expected a WAV, FLAC or MP3 file"
    assert ask(server, (b"text", b"AB"))[1]["error"]["message"] == "no file; expected audio in the field file"


def test_limits_hold_here_too(start, scored, speech):
    with start(model=Recognizer.load(scored), streams=1, upload=0.01) as server:
        assert score(server, speech.read_bytes())[0] == 413
        with server.service.stream("websocket"):
            assert score(server, speech.read_bytes())[0] == 503


def test_a_bundle_without_a_map(start, speech):
    with start() as server:
        status, answer = score(server, speech.read_bytes())
        (model,) = get(server, "/v1/models")["data"]
    assert status == 404
    assert answer["error"]["message"] == "tones: no map of pronunciation scores; expected a bundle with one"
    assert model["pronunciation"] is False


def test_the_interface_is_described(server):
    described = get(server, "/openapi.json")
    assert set(described["paths"]["/v1/audio/pronunciations"]) == {"post"}
    (model,) = get(server, "/v1/models")["data"]
    assert model["pronunciation"] is True


@pytest.mark.slow
@needs_browser
def test_the_page_colours_phones(page, server, speech, monkeypatch):
    texts = []

    def assess(path, text):
        texts.append((read_audio(path)[1], text))
        return RESULT

    monkeypatch.setattr(server.service, "assessor", SimpleNamespace(assess=assess))
    page.find("#said").send_keys("AB C")
    drop(page, "speech.wav", speech.read_bytes())
    page.wait(lambda: page.find("#scores").is_displayed())
    assert texts == [(RATE, "AB C")]
    assert page.find("#sentence-score").text == "AB <b>: 6.0 of 10"
    assert page.texts(".scored > [data-level]") == ["4.0", "9.0"]
    assert page.texts(".phones [data-level]") == ["a", "b", "c", "a"]
    levels = page.run("return [...document.querySelectorAll('.scored [data-level]')].map((one) => one.dataset.level)")
    assert levels == ["low", "low", "medium", "high", "high", "low"]
    assert page.texts(".phones small") == ["said c", "left out"]
    page.run(COLLECT_PLAYS)
    page.driver.find_elements("css selector", ".scored")[1].click()
    assert page.run("return window.plays") == [0.5]


@pytest.mark.slow
@needs_browser
def test_the_page_scores_a_recording_again(page, speech):
    drop(page, "speech.wav", speech.read_bytes())
    page.wait(lambda: page.find("#details").is_displayed())
    assert not page.find("#scores").is_displayed()
    page.find("#said").send_keys("AB C " * 50)
    page.find("#known button").click()
    page.wait(lambda: "frames; expected at least" in page.find("#error").text)
    page.find("#said").clear()
    page.find("#said").send_keys("AB C")
    page.find("#known button").click()
    page.wait(lambda: page.find("#scores").is_displayed())
    assert not page.find("#error").is_displayed()
    assert page.texts(".phones [data-level]") == ["a", "b", "c"]
    assert len(page.faults()) == 1  # the server's refusal
