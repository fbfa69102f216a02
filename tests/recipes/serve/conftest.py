"""A server on loopback, in a thread of the test's process, with the small system's bundle."""

import asyncio
import contextlib
import functools
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import websockets.sync.client

from decoder import Recognizer
from decoder.recognizer import pack
from readers.audio.audio_file import read_audio, write_wav
from recipes.serve.application import make_application
from recipes.serve.limits import Limits
from recipes.serve.running import address, make_server, open_sockets
from recipes.serve.security import AccessPolicy
from recipes.serve.service import Service
from tests.recipes.cli.bundle.conftest import parts_of
from tests.recipes.serve.browser import Browser
from tests.recipes.systems.small_system import RATE, TONES, speak

EOF = '{"eof" : 1}'
# A server whose kernels are being compiled in another thread of this process answers late.
connect = functools.partial(websockets.sync.client.connect, open_timeout=120)
BLOCK = 3200  # bytes: 0.1 s


class TestServer:
    """A server that runs in a thread until the test ends it."""

    __test__ = False

    def __init__(self, recognizer: Recognizer, policy: AccessPolicy, limits: Limits, cores: int, **tls: str):
        self.service = Service(recognizer, limits, cores)
        self._stop = threading.Event()
        self.server = make_server(make_application(self.service, policy), self.service, self._stop.is_set, **tls)
        sockets = open_sockets("127.0.0.1", 0)
        self.url = address(sockets[0], bool(tls))
        self.ws = self.url.replace("http", "ws", 1)
        self.port = sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(sockets)))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> bool:
        """Stop the server; returns whether all streams have ended in order."""
        self._stop.set()
        self._thread.join()
        return self.server.ended_in_order


@pytest.fixture(scope="session")
def bundle(small_system, tmp_path_factory) -> Path:
    """The path of digits.argo, with speech.wav ("AB C") beside it; not to be written to."""
    root = tmp_path_factory.mktemp("served")
    pack(parts_of(small_system, language="en"), root / "digits.argo")
    samples, _ = speak(["AB", "C"], np.random.default_rng(3))
    write_wav(root / "speech.wav", samples, RATE)
    return root / "digits.argo"


@pytest.fixture(scope="session")
def speech(bundle) -> Path:
    """The path of a recording of "AB C"."""
    return bundle.parent / "speech.wav"


@pytest.fixture(scope="session")
def pcm(speech) -> bytes:
    """The samples of the recording."""
    return read_audio(speech)[0].astype("<i2").tobytes()


@pytest.fixture(scope="session")
def recognizer(bundle) -> Recognizer:
    return Recognizer.load(bundle).with_audio(channel="mix")


@pytest.fixture(scope="session")
def start(recognizer) -> Callable:
    """A function that makes a context manager: a server with the given limits and policy."""

    @contextlib.contextmanager
    def starting(
        policy: AccessPolicy | None = None, tls=None, cores: int = 2, model: Recognizer = recognizer, **limits
    ) -> Iterator[TestServer]:
        limits = Limits(**{"grace": 5.0, **limits})
        server = TestServer(model, policy or AccessPolicy(), limits, cores, **(tls or {}))
        server.start()
        try:
            yield server
        finally:
            server.stop()

    return starting


@pytest.fixture(scope="module")
def server(start) -> Iterator[TestServer]:
    """A server for all tests of a file."""
    with start() as running:
        yield running


@pytest.fixture(scope="module")
def downloads(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def chromium(speech, downloads):
    """A browser that hears the recording, with longer silence before and after it."""
    before, after = (3000 * np.sin(2 * np.pi * tone * np.arange(30 * RATE) / RATE) for tone in TONES[-2:])
    write_wav(downloads / "microphone.wav", np.concatenate([before[:RATE], read_audio(speech)[0], after]), RATE)
    browser = Browser(downloads / "microphone.wav", downloads)
    yield browser
    browser.close()


@pytest.fixture
def page(chromium, server):
    """The page as it is first seen; no test leaves an error in the console."""
    chromium.driver.get(server.url)
    chromium.wait(lambda: chromium.find("#model").text)
    yield chromium
    assert chromium.faults() == []


def speak_to(socket, pcm: bytes, block: int = BLOCK, **config) -> list[dict]:
    """Send audio as a client of vosk does, one answer for each block; returns the answers."""
    if config:
        socket.send(json.dumps({"config": config}))
    answers = []
    for begin in range(0, len(pcm), block):
        socket.send(pcm[begin : begin + block])
        answers.append(json.loads(socket.recv()))
    socket.send(EOF)
    return [*answers, json.loads(socket.recv())]
