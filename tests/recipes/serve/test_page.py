"""The page of the server, in a browser."""

import base64
import re

import numpy as np
import pytest

from decoder.lattices.links import weigh
from decoder.lattices.posteriors import best_path, posteriors
from readers.audio.audio_file import read_audio
from readers.htk.slf import read_slf, write_slf
from readers.results.lattice import Lattice
from recipes.serve.security import AccessPolicy
from tests.recipes.serve.browser import IS_MISSING, drop, show_result
from tests.recipes.systems.small_system import RATE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(IS_MISSING, reason="no chromium, chromedriver and selenium: the page is not tested"),
]
TOKEN = "a-token-of-the-tests"
COLLECT = """
window.partials = [];
const note = () => {
  const partial = document.querySelector(".partial");
  if (partial) window.partials.push(partial.textContent.trim());
};
new MutationObserver(note).observe(document.getElementById("words"), {childList: true, subtree: true});
"""
COLLECT_SENT = """
window.sent = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  window.sent.push(data);
  send.call(this, data);
};
"""
COLLECT_PLAYS = """
window.plays = [];
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (when, offset) {
  window.plays.push(offset);
  start.call(this, when, offset);
};
"""
SURFACES = ("page", "surface", "tint")
INKS = ("ink", "muted", "accent", "high", "medium", "low")


def test_dropped_file_shows_the_words_of_transcribe(page, speech, recognizer):
    show_result(page, speech)
    words = recognizer.transcribe(speech).words
    assert page.texts("#words .word") == [word.text for word in words]
    assert page.texts(".track-words span") == [word.text for word in words]
    given = [button.get_attribute("data-confidence") for button in page.driver.find_elements("css selector", ".word")]
    assert [float(value) for value in given] == [round(word.confidence, 4) for word in words]
    assert page.find("#title").text == "speech.wav"
    assert page.find("#model").text == "tones · en · 16 kHz"


def test_chosen_file_and_click_to_play(page, speech):
    page.run(COLLECT_PLAYS)
    page.find("#files").send_keys(str(speech))
    page.wait(lambda: page.find("#details").is_displayed())
    words = page.driver.find_elements("css selector", ".word")
    words[1].click()
    page.driver.find_elements("css selector", ".track-words span")[0].click()
    assert page.run("return window.plays") == [float(words[i].get_attribute("data-start")) for i in (1, 0)]
    page.wait(lambda: page.find("#play").text == "Play")  # the end of the recording


def test_microphone_gives_partial_and_final_words(page, recognizer):
    """The words are those of what was sent; a busy machine may lose samples on their way from the file to the page."""
    page.run(COLLECT)
    page.run(COLLECT_SENT)
    page.find("#record").click()
    assert page.find("#record").text == "Stop"
    page.wait(lambda: page.run("return window.partials"))
    page.wait(lambda: page.find("#clock").text >= "0:02.5")
    page.find("#record").click()
    page.wait(lambda: page.find("#details").is_displayed())
    sent = page.run("return window.sent.map((one) => typeof one === 'string' ? JSON.parse(one) : [...one])")
    stream = recognizer.stream(sent[0]["config"]["sample_rate"])
    events = stream.push(np.concatenate(sent[1:-1]).astype(np.int16)) + stream.finish()
    words = " ".join(event.text for event in events if event.is_final)
    assert "AB" in words
    assert sent[-1] == {"eof": 1}
    assert " ".join(page.texts("#words .word")) == words
    assert any(partial in words for partial in page.run("return window.partials"))
    assert page.texts("#announcement") == [words]
    page.find("#alternatives summary").click()
    assert "AB" in page.wait(lambda: page.texts("#alternatives li"))[0]


def test_alternatives_lattice_and_downloads(page, speech, recognizer, downloads):
    show_result(page, speech)
    transcript = recognizer.transcribe(speech)
    page.find("#alternatives summary").click()
    alternatives = page.wait(lambda: page.texts("#alternatives li"))
    assert [text.strip() for text in alternatives] == transcript.alternatives(10)
    page.find("#lattice summary").click()
    page.wait(lambda: page.texts(".link"))
    assert [word for word in page.texts(".link.best") if word not in ("", "<s>", "</s>")] == ["AB", "C"]
    for name in ("txt", "json", "srt", "vtt", "ctm", "TextGrid", "mlf", "slf"):
        page.find(f"#formats [data-extension={name}]").click()
        page.wait((downloads / f"speech.{name}").exists)
    assert (downloads / "speech.txt").read_text(encoding="utf-8") == "AB C\n"
    assert read_slf(downloads / "speech.slf").word == transcript.lattice.word


def test_everything_works_with_the_keyboard(page, speech):
    from selenium.webdriver import ActionChains, Keys

    def press(*keys: str) -> str:
        """Press keys; return the name of the focused element."""
        for key in keys:
            ActionChains(page.driver).send_keys(key).perform()
        return page.run("const at = document.activeElement; return at.id || at.textContent")

    show_result(page, speech)
    assert press(Keys.TAB) == "record"
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert press(Keys.TAB) == "choose"
    assert press(Keys.TAB) == "said"
    assert press(Keys.TAB) == "Align"
    assert press(Keys.TAB) == "AB"
    assert press(Keys.ARROW_RIGHT) == "C"
    assert press(Keys.TAB) == "play"
    assert press(Keys.TAB, Keys.TAB, Keys.TAB) == "timeline"
    press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.find("#timeline").get_attribute("aria-valuenow") == "0.2"
    press(Keys.SPACE)
    assert page.find("#play").text == "Pause"
    press(Keys.SPACE)
    press(Keys.TAB, Keys.ENTER)
    assert page.find("#alternatives").get_attribute("open") is not None


def test_several_files_of_which_one_is_no_audio(page, speech):
    drop(page, "good.wav", speech.read_bytes())
    drop(page, "bad.wav", b"no audio")
    page.wait(lambda: page.find("#error").is_displayed())
    assert page.texts("nav button") == ["good.wav", "bad.wav (failed)"]
    page.find("nav button").click()
    assert not page.find("#error").is_displayed()
    assert page.texts("#words .word") == ["AB", "C"]
    assert page.find("nav [aria-current=true]").text == "good.wav"
    assert len(page.faults()) == 1  # the server's refusal


def test_text_is_never_html(page):
    drop(page, "<img src=x>.wav", b"no audio")
    page.wait(lambda: page.find("#error").text)
    assert page.find("#title").text == "<img src=x>.wav"
    assert "<img src=x>.wav: " in page.find("#error").text
    shown = page.run("""
        const { WordView, showAlternatives } = await import("/page/words.js");
        const [box, list] = [document.createElement("div"), document.createElement("ol")];
        const words = [{ word: "<b>x</b>", start: 0, end: 1, confidence: 0.5 }];
        new WordView(box, () => {}).add(words);
        showAlternatives(list, ["<b>x</b>", "<i>y</i>"]);
        return [box.textContent, box.querySelector("b"), list.textContent, list.querySelector("b, i")];
    """)
    assert shown == ["<b>x</b> ", None, "<b>x</b> <i>y</i> ", None]
    assert len(page.faults()) == 1  # the server's refusal


def test_lattice_has_the_posteriors_of_the_decoder(page, tmp_path):
    ends = [(start, end) for start in range(5) for end in range(start + 1, min(start + 3, 5)) for _ in range(2)]
    start, end = np.array(ends, np.int32).T
    words = ["<b>", 'a "b"', "\\x", "ä", "!NULL", *(f"w{number}" for number in range(len(ends) - 5))]
    acoustic, lm = np.random.default_rng(4).normal(size=(2, len(ends)))
    scales = {"acoustic_scale": 0.3, "lm_scale": 2.0, "word_penalty": -1.0}
    lattice = Lattice.of_words(np.arange(5.0), start, end, words, acoustic, lm, **scales)
    write_slf(tmp_path / "a.slf", lattice, digits=17)
    found = page.run(
        "const { parseLattice } = await import('/page/slf.js'); return parseLattice(arguments[0]);",
        (tmp_path / "a.slf").read_text(encoding="utf-8"),
    )
    expected = posteriors(lattice).link
    links = sorted(zip(lattice.start.tolist(), lattice.end.tolist(), lattice.word, np.exp(expected).tolist()))
    given = sorted((one["start"], one["end"], one["word"], one["posterior"]) for one in found["links"])
    assert [one[:3] for one in map(tuple, given)] == [one[:3] for one in links]
    np.testing.assert_allclose([one[3] for one in given], [one[3] for one in links], atol=1e-9)
    path = [lattice.word[link] for link in best_path(weigh(lattice))]
    assert [one["word"] for one in found["links"] if one["best"]] == path


def test_spectrogram_column_is_a_power_spectrum(page):
    samples = np.random.default_rng(2).normal(size=2000).astype(np.float32)
    found = page.run(
        """const { Spectrum } = await import('/page/spectrum.js');
        const spectrum = new Spectrum(16000);
        const column = new Float32Array(spectrum.bins);
        spectrum.at(Float32Array.from(arguments[0]), 1000, column);
        return [...column];""",
        samples.tolist(),
    )
    emphasised = (samples[1:] - 0.97 * samples[:-1])[1000 - 128 - 1 : 1000 + 128 - 1]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(256) + 0.5) / 256)
    expected = 10 * np.log10(np.abs(np.fft.rfft(emphasised * hann, 2 * len(found))[:-1]) ** 2)
    np.testing.assert_allclose(found, expected, atol=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_have_contrast_and_nothing_is_cut_off(page, speech, theme):
    page.look(theme, 400, 1000)
    show_result(page, speech)
    for selector in ("#alternatives", "#lattice"):
        page.find(f"{selector} summary").click()
    page.wait(lambda: page.texts(".link") and page.texts("#alternatives li"))
    assert page.run("return document.documentElement.scrollWidth") <= 400
    names = (*SURFACES, *INKS, "primary", "on-primary")
    values = page.run(
        "const style = getComputedStyle(document.body); return arguments[0].map((one) => style.getPropertyValue(one))",
        [f"--{name}" for name in names],
    )
    colour = dict(zip(names, values))
    pairs = [(ink, surface) for ink in INKS for surface in SURFACES] + [("primary", "on-primary")]
    too_low = [pair for pair in pairs if contrast(colour[pair[0]], colour[pair[1]]) < 4.5]
    assert too_low == []
    page.look("light", 1280, 1000)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours #rrggbb, as WCAG 2 defines it."""
    luminances = []
    for colour in (one, other):
        red, green, blue = (int(part, 16) / 255 for part in re.fullmatch(r"\s*#(..)(..)(..)\s*", colour).groups())
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
        luminances.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(luminances) + 0.05) / (min(luminances) + 0.05)


def test_access_token(chromium, start, speech):
    with start(AccessPolicy(token=TOKEN)) as server:
        chromium.driver.get(server.url)
        chromium.wait(lambda: chromium.find("#access").is_displayed())
        chromium.find("#token").send_keys(TOKEN)
        chromium.find("#access button").click()
        chromium.wait(lambda: chromium.find("#model").text)
        assert not chromium.find("#access").is_displayed()
        show_result(chromium, speech)
        assert chromium.texts("#words .word") == ["AB", "C"]
        chromium.find("#record").click()
        chromium.wait(lambda: chromium.find("#title").text == "Recording 1")
        chromium.find("#record").click()
        chromium.wait(lambda: chromium.find("#details").is_displayed())
    assert all("401" in fault for fault in chromium.faults())


def test_refused_stream_says_why(chromium, start):
    with start(streams=1) as server, server.service.stream("websocket"):
        chromium.driver.get(server.url)
        chromium.find("#record").click()
        chromium.wait(lambda: chromium.find("#error").text)
        assert "1 streams are open" in chromium.find("#error").text
        assert chromium.find("#record").text == "Record"
    chromium.faults()


def test_recording_stopped_before_it_begins(page):
    ended = page.run("""
        const { Microphone } = await import("/page/microphone.js");
        return new Promise((done) => {
          const microphone = new Microphone({end: () => done("ended"), error: done, begin: () => done("begun")});
          microphone.start();
          microphone.stop();
        });
    """)
    assert ended == "ended"


def test_final_words_are_kept_until_the_server_ends_the_connection(page):
    """An answer to the last block may arrive after the end has been sent."""
    words, sent = page.run("""
        const { Microphone } = await import("/page/microphone.js");
        const words = [];
        const microphone = new Microphone({final: (found) => words.push(...found), end: () => words.push("end")});
        const sent = [];
        microphone.socket = {readyState: WebSocket.OPEN, send: (data) => sent.push(data), close: () => {}};
        microphone.finish();
        microphone.receive({text: "AB", result: [{word: "AB", start: 0, end: 1, conf: 0.5}]});
        microphone.receive({text: "C"});
        microphone.deliver(new Int16Array(10)); // too late
        microphone.closed(1000, "");
        return [words, sent];
    """)
    assert sent == ['{"eof": 1}']
    assert words == [{"word": "AB", "start": 0, "end": 1, "confidence": 0.5}, {"word": "C"}, "end"]


def test_lattice_shows_probable_words_first_and_all_on_request(page):
    shown = page.run("""
        const { LatticeView } = await import("/page/lattice.js");
        const box = document.createElement("div");
        const view = new LatticeView(box, () => {});
        const link = (start, end, word, posterior, best) => ({start, end, word, posterior, best});
        const links = [
          link(0, 1, "GO", 0.6, true), link(0, 2, "GO", 0.3, false), link(0, 1, "NO", 0.1, false),
          link(0, 1, "OH", 0.0001, false), link(2, 1, "!NULL", 0.3, false),
        ];
        const lattice = {times: [0, 0.5, 0.48], links};
        return [false, true].map((all) => {
          const counts = view.show(lattice, all);
          const labels = [...box.querySelectorAll(".link")].map((one) => one.getAttribute("aria-label"));
          return [counts.shown, counts.total, labels.sort()];
        });
    """)
    go, no = "GO, 0.00 – 0.50 s, 90 %", "NO, 0.00 – 0.50 s, 10 %"
    assert shown[0] == [2, 4, [go, no]]
    variants = ["GO, 0.00 – 0.48 s, 30 %", "GO, 0.00 – 0.50 s, 60 %"]
    assert shown[1] == [4, 4, [*variants, no, "OH, 0.00 – 0.50 s, 0 %"]]


def test_sphere_file_is_shown_and_played(page, speech, tmp_path):
    samples, _ = read_audio(speech)
    header = f"NIST_1A\n   1024\nchannel_count -i 1\nsample_count -i {len(samples)}\nsample_rate -i {RATE}\n"
    header += "sample_n_bytes -i 2\nsample_byte_format -s2 10\nsample_coding -s3 pcm\nend_head\n"
    content = header.encode().ljust(1024) + samples.astype(">i2").tobytes()
    drop(page, "speech.sph", content)
    page.wait(lambda: page.find("#details").is_displayed())
    assert page.texts("#words .word") == ["AB", "C"]
    assert page.find("#clock").text.endswith(f"0:0{len(samples) / RATE:.1f}")
    found = page.run(
        """const { decodeSphere } = await import("/page/audio.js");
        const bytes = Uint8Array.from(atob(arguments[0]), (c) => c.charCodeAt(0));
        return [...decodeSphere(bytes.buffer).data];""",
        base64.b64encode(content).decode(),
    )
    np.testing.assert_array_equal(found, samples.astype(np.int16) / 32768)
