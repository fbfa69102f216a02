"""Alignments of known text, over HTTP and on the page."""

import json

import numpy as np
import pytest

from decoder.g2p.model import G2P
from decoder.recognizer import Recognizer, pack
from decoder.recognizer.recording import LONGEST
from readers.audio.audio_file import read_audio, write_wav
from readers.htk.dictionary import Pronunciation
from recipes.cli.main import main
from tests.recipes.cli.bundle.conftest import parts_of
from tests.recipes.serve import test_abuse
from tests.recipes.serve.browser import IS_MISSING, drop
from tests.recipes.systems.small_system import RATE

needs_browser = pytest.mark.skipif(IS_MISSING, reason="no chromium, chromedriver and selenium: the page is not tested")


def align(server, content: bytes, text: str = "AB C", **fields: str) -> tuple[int, bytes]:
    """Return the status and the content of the answer to a form."""
    parts = [(b"file", content, b"speech.wav"), (b"text", text.encode())]
    parts += [(name.encode(), value.encode()) for name, value in fields.items()]
    answer = test_abuse.ask(server, test_abuse.post(*parts, path=b"/v1/align"))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def message(answer: tuple[int, bytes]) -> str:
    return json.loads(answer[1])["error"]["message"]


def test_the_answer_is_what_the_command_writes(server, speech, bundle, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "speech.wav").write_bytes(speech.read_bytes())
    (corpus / "speech.txt").write_text("AB C\n")
    arguments = ["align", str(corpus), str(bundle), str(tmp_path / "out"), "--format", "json,textgrid"]
    assert main(arguments) == 0
    status, body = align(server, speech.read_bytes())
    assert status == 200
    answer = json.loads(body)
    written = json.loads((tmp_path / "out/speech.json").read_text())
    for name in ("words", "phones"):
        assert answer["utterances"][0][name] == written["utterances"][0][name]
    assert (answer["audio"], answer["seconds"]) == ("speech.wav", written["seconds"])
    status, body = align(server, speech.read_bytes(), response_format="textgrid")
    assert status == 200
    assert body.decode() == (tmp_path / "out/speech.TextGrid").read_text()


def test_what_cannot_be_aligned(server, speech):
    content = speech.read_bytes()
    assert message(align(server, content, " ")) == "no text; expected what was said in the field text"
    assert message(align(server, content, "AB", response_format="slf")).startswith("response_format 'slf'; expected ")
    assert message(align(server, b"Dear Sir")).startswith("speech.wav: ")
    assert align(server, content, "AB C " * 50)[0] == 400  # too short


def test_annotations_and_unknown_words_are_aligned_and_counted(server, speech):
    status, body = align(server, speech.read_bytes(), "a- NOBODY [noise]")
    assert status == 200, body
    answer = json.loads(body)
    assert [word["word"] for word in answer["utterances"][0]["words"]] == ["a-", "NOBODY", "[noise]"]
    assert answer["annotations"] == {"cutoff": 1, "unknown": 1, "noise": 1}
    assert answer["unknown"] == ["NOBODY"]


def test_a_long_recording_may_differ_from_its_text(server, speech, tmp_path):
    samples, _ = read_audio(speech)
    repeats = 1 + int(LONGEST * RATE) // len(samples)
    write_wav(tmp_path / "long.wav", np.tile(samples, repeats), RATE)
    words = ["AB C"] * repeats
    words[repeats // 2] = "BA"
    status, body = align(server, (tmp_path / "long.wav").read_bytes(), " ".join(words))
    assert status == 200, body
    (utterance,) = json.loads(body)["utterances"]
    assert len(utterance["words"]) >= 2 * (repeats - 1)
    assert utterance["damage"]


def test_unknown_words_are_guessed_by_the_model_of_the_bundle(small_system, start, speech, tmp_path):
    words = ("AB", "BA", "CAB", "C", "ABC", "CBA", "BAC", "ACB")
    spelled = [Pronunciation(word, None, None, tuple(word.lower())) for word in words]
    G2P.train(spelled, 2, passes=3).save(tmp_path / "tones.g2p")
    pack(parts_of(small_system, g2p=tmp_path / "tones.g2p"), tmp_path / "guessing.argo")
    with start(model=Recognizer.load(tmp_path / "guessing.argo")) as server:
        status, body = align(server, speech.read_bytes(), "ab c")
        assert status == 200
        assert "guessed" not in json.loads(body)
        status, body = align(server, speech.read_bytes(), "BACA c")
        assert status == 200, body
        answer = json.loads(body)
        assert [entry["word"] for entry in answer["guessed"]] == ["BACA"]
        phones = answer["guessed"][0]["phones"]
        assert [phone["phone"] for phone in answer["utterances"][0]["phones"]][: len(phones)] == phones


@pytest.mark.slow
@needs_browser
def test_the_page_aligns_a_text(page, speech, downloads):
    page.find("#said").send_keys("AB\nC")
    drop(page, "speech.wav", speech.read_bytes())
    page.wait(lambda: page.find("#details").is_displayed())
    assert page.texts("#words .word") == ["AB", "C"]
    assert page.find("#status").text == "2 words"
    assert not page.find("#alternatives").is_displayed()
    buttons = page.driver.find_elements("css selector", "#formats button")
    assert [button.text for button in buttons if button.is_displayed()] == ["JSON", "TextGrid"]
    page.find("#formats [data-of=text][data-extension=TextGrid]").click()
    page.wait((downloads / "speech.TextGrid").exists)
    page.find("#said").clear()
    drop(page, "again.wav", speech.read_bytes())
    page.wait(lambda: page.find("#details").is_displayed() and page.find("#alternatives").is_displayed())
