"""What the page says about the model, the server and files, in a browser, and how narrow it may be."""

import base64
import threading

import pytest

from tests.recipes.serve.browser import IS_MISSING, drop

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(IS_MISSING, reason="no chromium, chromedriver and selenium: the page is not tested"),
]


@pytest.mark.parametrize("count", [120, 400])
def test_many_labels_do_not_widen_a_narrow_page(page, count):
    page.look("light", 400, 1000)
    width = page.run(
        """
        const { WordView } = await import("/page/words.js");
        document.getElementById("result").hidden = false;
        const words = Array.from({length: arguments[0]}, (_, i) => (
          {word: i % 7 ? "h#" : "extraordinarily", start: i, end: i + 1, confidence: 0.98}));
        new WordView(document.getElementById("words"), () => {}).add(words);
        const box = document.getElementById("words");
        return [document.documentElement.scrollWidth, box.scrollWidth - box.clientWidth];
    """,
        count,
    )
    page.look("light", 1280, 1000)
    assert width[0] <= 400
    assert width[1] <= 0


def test_the_start_says_what_the_model_knows(page):
    text = page.wait(lambda: page.find("#about").text)
    start = "This recogniser knows 4 words of English, from audio of 16 kHz or more. Record, for example: "
    assert text.startswith(start)


def test_a_format_of_browsers_is_sent_as_samples(page, speech):
    script = """
        const decode = OfflineAudioContext.prototype.decodeAudioData;
        const wav = Uint8Array.from(atob(arguments[0]), (c) => c.charCodeAt(0));
        OfflineAudioContext.prototype.decodeAudioData = function () { return decode.call(this, wav.buffer.slice(0)); };
    """
    page.run(script, base64.b64encode(speech.read_bytes()).decode())  # not every Chromium decodes m4a
    drop(page, "speech.m4a", b"what only a browser can decode")
    page.wait(lambda: page.find("#details").is_displayed())
    assert page.texts("#words .word") == ["AB", "C"]


def test_record_says_that_the_server_has_stopped(chromium, start):
    with start() as server:
        chromium.driver.get(server.url)
        chromium.wait(lambda: chromium.find("#model").text)
    chromium.find("#record").click()
    chromium.wait(lambda: chromium.find("#error").text)
    assert chromium.find("#error").text == "The server has stopped or cannot be reached."
    assert chromium.find("#record").text == "Record"
    chromium.faults()


def test_percentage_of_a_long_file(page, server, speech, monkeypatch):
    recognise, shown = server.service.recognizer.transcribe, threading.Event()

    def transcribe(path, progress):
        progress(30.0, 120.0)
        shown.wait(30)
        return recognise(path)

    monkeypatch.setattr(server.service.recognizer, "transcribe", transcribe)
    drop(page, "speech.wav", speech.read_bytes())
    page.wait(lambda: page.find("#status").text == "Recognising, 25 %")
    shown.set()
    page.wait(lambda: page.find("#details").is_displayed())
    assert server.service.progress == {}
