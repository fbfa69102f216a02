"""Clients that ask for too much, or for nonsense, harm neither the server nor the others."""

import contextlib
import json
import logging
import socket as sockets
import threading

import pytest
from websockets.exceptions import ConnectionClosed

from decoder import Recognizer
from recipes.serve.limits import Limits
from recipes.serve.service import Service
from tests.recipes.serve.conftest import connect, speak_to
from tests.recipes.serve.test_running import PATIENCE, until


def post(*parts, kind=b"multipart/form-data; boundary=x", path=b"/v1/audio/transcriptions"):
    """The bytes of a request with a form; a part is (name, content) or (name, content, file name)."""
    body = b""
    for name, content, *file in parts:
        body += b'--x\r\nContent-Disposition: form-data; name="' + name + b'"'
        body += b"".join(b'; filename="' + one + b'"' for one in file) + b"\r\n\r\n" + content + b"\r\n"
    body += b"--x--\r\n"
    return (
        b"POST "
        + path
        + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
        + kind
        + b"\r\nContent-Length: %d\r\n\r\n" % len(body)
        + body
    )


def ask(server, request):
    """Return the answer to a request as bytes."""
    with contextlib.closing(sockets.create_connection(("127.0.0.1", server.port), PATIENCE)) as raw:
        raw.sendall(request)
        return b"".join(iter(lambda: raw.recv(65536), b""))


@pytest.mark.parametrize("name", [b" ", b" x", b"x ", b"\0", b"\x7f", b"a" * 198 + b" b"])
def test_names_of_unknown_fields_make_a_valid_header(server, speech, name):
    answer = ask(server, post((b"file", speech.read_bytes(), b"a.wav"), (name, b"1"), (b"prompt", b"1")))
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"x-argonaut-ignored: " in answer
    assert b"AB C" in answer


@pytest.mark.parametrize("charset", [b"punycode", b"undefined", b"unicode_escape"])
def test_codings_of_forms_are_refused(server, charset):
    answer = ask(server, post((b"model", b"\xff"), kind=b"multipart/form-data; boundary=x; charset=" + charset))
    assert answer.startswith(b"HTTP/1.1 415")
    assert b"expected utf-8" in answer


@pytest.mark.parametrize("phrase", ["\ud800", "x" * 500_000])
def test_phrases_that_cannot_be_words(server, pcm, caplog, phrase):
    with connect(server.ws) as socket, contextlib.suppress(ConnectionClosed):
        socket.send(json.dumps({"config": {"phrase_list": [phrase]}}))
        socket.send(pcm)
        answer = socket.recv()
        assert "error" in json.loads(answer)
        assert len(answer) < 1000
        assert socket.recv() is None
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


def test_words_that_are_left_out_cannot_forge_the_log(server, pcm, caplog):
    with connect(server.ws) as socket:
        speak_to(socket, pcm, phrase_list=["AB C", "\x1b[2J\ud800", "x" * 1000])
    (record,) = caplog.records
    assert record.getMessage().isascii()
    assert record.getMessage().isprintable()
    assert len(record.getMessage()) < 400


@pytest.mark.parametrize("phrases", [["AB C " * 2500, "AB C " * 2501], ["[unk]"] * 101, [""] * 10_001])
def test_too_many_words_in_phrases(server, phrases):
    with connect(server.ws) as socket:
        socket.send(json.dumps({"config": {"phrase_list": phrases}}))
        assert "a list of texts, with at most 10000 words and 100 [unk] in all" in json.loads(socket.recv())["error"]


def test_idle_connections_give_way(start, pcm):
    """With more connections than the server keeps, those that wait longest are dropped."""
    with start(streams=1) as server, contextlib.ExitStack() as stack, connect(server.ws) as good:
        good.send(pcm[:3200])
        good.recv()
        idle = [
            stack.enter_context(contextlib.closing(sockets.create_connection(("127.0.0.1", server.port))))
            for _ in range(200)
        ]
        assert ask(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[9:12] == b"200"
        assert len(server.server.server_state.connections) < 70
        idle[0].settimeout(PATIENCE)
        with contextlib.suppress(ConnectionResetError):
            assert idle[0].recv(1) == b""
        assert speak_to(good, pcm[3200:])[-1]["text"] == "AB C"


class EndlessRecognizer:
    """A recogniser of long files that tells its progress until it is interrupted."""

    def __init__(self):
        self.started, self.path, self.seconds = threading.Event(), None, 0.0

    def transcribe(self, path, progress):
        self.path = path
        while True:
            self.started.set()
            progress(self.seconds, None)


def test_a_file_whose_client_has_gone_is_not_decoded_on(start, speech, monkeypatch):
    endless = EndlessRecognizer()
    with start() as server:
        monkeypatch.setattr(server.service.recognizer, "transcribe", endless.transcribe, raising=False)
        with contextlib.closing(sockets.create_connection(("127.0.0.1", server.port))) as raw:
            raw.sendall(post((b"file", speech.read_bytes(), b"a.wav")))
            assert endless.started.wait(PATIENCE)
        until(lambda: not server.service.num_open and not server.service.is_decoding)
        assert not endless.path.parent.exists()
        assert server.service.metrics.errors["disconnected"] == 1


def test_a_file_that_is_longer_than_its_header_says(start, speech, monkeypatch):
    endless = EndlessRecognizer()
    endless.seconds = 12.0
    with start(file_seconds=10.0) as server:
        monkeypatch.setattr(server.service.recognizer, "transcribe", endless.transcribe, raising=False)
        answer = ask(server, post((b"file", speech.read_bytes(), b"a.wav")))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"12 s of audio; expected at most 10 s" in answer


@pytest.mark.slow
def test_no_upload_is_left_when_the_server_stops(start, speech, monkeypatch, caplog):
    endless = EndlessRecognizer()
    with start(grace=0.1) as server:
        monkeypatch.setattr(server.service.recognizer, "transcribe", endless.transcribe, raising=False)
        with contextlib.closing(sockets.create_connection(("127.0.0.1", server.port))) as raw:
            raw.sendall(post((b"file", speech.read_bytes(), b"a.wav")))
            assert endless.started.wait(PATIENCE)
            assert server.stop() is False
        until(lambda: not server.service.is_decoding)
        assert not endless.path.parent.exists()
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


def test_files_that_a_thread_still_reads_are_removed(recognizer):
    service = Service(recognizer, Limits(), 1)
    with service.directory() as directory:
        (directory / "audio").touch()
        service.remove_files()
        assert not directory.exists()


def test_phrases_after_the_bundle_was_removed(bundle, tmp_path):
    """What they need is read at the start, so that a bundle can be replaced by renaming."""
    path = tmp_path / "copy.argo"
    path.write_bytes(bundle.read_bytes())
    service = Service(Recognizer.load(path), Limits(), 1)
    service.warm_up()
    path.unlink()
    assert service.recognizer.with_grammar(["AB C"]).transcribe(bundle.parent / "speech.wav").text == "AB C"
