"""Takes the pictures of docs/getting_started/web_page.md.

    python -m tests.recipes.serve.screenshots BUNDLE AUDIO [SPOKEN]

AUDIO is dropped on the page, and SPOKEN, by default the same recording, is what the microphone hears.
"""

import argparse
import base64
import io
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from decoder import Recognizer
from readers.audio.audio_file import read_audio, write_wav
from readers.common.environment import using_cores
from recipes.serve.limits import Limits
from recipes.serve.security import AccessPolicy
from tests.recipes.serve.browser import Browser
from tests.recipes.serve.conftest import TestServer
from tests.structure.test_imports import ROOT

PICTURES = ROOT / "docs/pictures"
COLOURS, DISTANCE = 96, 24  # of a picture's palette; least sum of differences of red, green and blue
WIDE, NARROW = 1280, 400
LIVE_WORDS = 4
MARGIN = 24  # pixels below the content, and between the narrow pictures


def take(browser: Browser, theme: str, width: int) -> Image.Image:
    """Return a picture of the whole page."""
    browser.look(theme, width, 600)
    browser.run("await new Promise((done) => setTimeout(done, 300))")  # the canvas is drawn again
    height = browser.run("return Math.ceil(document.querySelector('main').getBoundingClientRect().bottom + scrollY)")
    browser.look(theme, width, height + MARGIN)
    browser.run("scrollTo(0, 0); await new Promise((done) => setTimeout(done, 300))")
    return Image.open(io.BytesIO(base64.b64decode(browser.command("Page.captureScreenshot")["data"]))).convert("RGB")


def palette_of(picture: Image.Image) -> Image.Image:
    """Return a palette of the most frequent colours that differ visibly from each other."""
    colours, counts = np.unique(np.asarray(picture).reshape(-1, 3), axis=0, return_counts=True)
    kept = np.zeros((0, 3))
    for colour in colours[np.argsort(-counts)].astype(float):
        if len(kept) < COLOURS and (np.abs(kept - colour).sum(axis=1) >= DISTANCE).all():
            kept = np.vstack([kept, colour])
    palette = Image.new("P", (1, 1))
    palette.putpalette(kept.astype(np.uint8).tobytes())
    return palette


def save(picture: Image.Image, name: str) -> None:
    """Write a small PNG file."""
    path = PICTURES / f"page_{name}.png"
    picture.quantize(palette=palette_of(picture), dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {picture.width} x {picture.height}, {path.stat().st_size >> 10} kB")


def show_file(browser: Browser, audio: Path) -> None:
    """Recognise a file, and open the alternatives and the lattice."""
    browser.find("#files").send_keys(str(audio.resolve()))
    browser.wait(lambda: browser.find("#details").is_displayed())
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
    browser.wait(lambda: browser.texts(".link") and browser.texts("#alternatives li"))


def run(bundle: str, audio: Path, spoken: Path) -> None:
    with tempfile.TemporaryDirectory() as directory, using_cores(1):
        samples, rate = read_audio(spoken)
        write_wav(Path(directory) / "spoken.wav", np.concatenate([samples, np.zeros(4 * int(rate))]), rate)
        server = TestServer(Recognizer.load(bundle), AccessPolicy(), Limits(), 2)
        server.service.warm_up()
        server.start()
        browser = Browser(Path(directory) / "spoken.wav")
        try:
            browser.driver.get(server.url)
            browser.wait(lambda: browser.find("#model").text)
            browser.find("#record").click()
            browser.wait(lambda: len(" ".join(browser.texts("#words")).split()) >= LIVE_WORDS)
            save(take(browser, "light", WIDE), "microphone")
            browser.driver.get(server.url)
            show_file(browser, audio)
            save(take(browser, "light", WIDE), "light")
            browser.run("document.getElementById('alternatives').open = false")
            save(take(browser, "dark", WIDE), "dark")
            narrow = [take(browser, theme, NARROW) for theme in ("light", "dark")]
            both = Image.new("RGB", (2 * NARROW + MARGIN, max(one.height for one in narrow)), "#808080")
            for number, one in enumerate(narrow):
                both.paste(one, (number * (NARROW + MARGIN), 0))
            save(both, "narrow")
        finally:
            browser.close()
            server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle")
    parser.add_argument("audio", type=Path)
    parser.add_argument("spoken", type=Path, nargs="?")
    given = parser.parse_args()
    run(given.bundle, given.audio, given.spoken or given.audio)
