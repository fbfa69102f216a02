"""`argonaut serve`: options, warnings, the missing extra, signals."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from recipes.cli.main import main
from recipes.serve.job import PACKAGES
from recipes.serve.running import make_server
from tests.recipes.serve.conftest import connect, speak_to


def fault(capsys, *arguments):
    """Return the error of a command that does not start."""
    assert main(["serve", *map(str, arguments)]) == 2
    return capsys.readouterr().err


def test_without_the_extra(capsys, monkeypatch, bundle):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else object())
    found = fault(capsys, bundle)
    assert found == (
        "error: argonaut serve: uvicorn not installed; expected the packages of the server; pip install '.[serve]'\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "--port is 70000; expected 0 to 65535"),
        (["--threads", "0"], "--threads is 0; expected at least 1"),
        (["--max-streams", "0"], "--max-streams is 0; expected at least 1"),
        (["--idle", "-1"], "--idle is -1; expected above 0 seconds"),
        (["--tls-cert", "a.pem"], "--tls-cert is given without --tls-key; expected both"),
        (["--token-file", "nothing"], "nothing"),
    ],
)
def test_wrong_options(capsys, bundle, options, message):
    assert message in fault(capsys, bundle, *options)


def test_what_is_no_bundle(capsys, speech):
    assert "speech.wav" in fault(capsys, speech, "--port", "0")


@pytest.fixture
def served(monkeypatch):
    """The services of `argonaut serve`, which ends as soon as it listens."""
    services = []

    def stopped(application, service, should_stop, *tls):
        services.append(service)
        return make_server(application, service, lambda: True, *tls)

    monkeypatch.setattr("recipes.serve.running.make_server", stopped)
    return services


@pytest.mark.slow
def test_words_are_added(served, bundle, speech, tmp_path, capsys):
    (tmp_path / "words").write_text("ABC a b c\nXYZ\n")
    (tmp_path / "hot").write_text("abc :20\n")
    options = ["--words", str(tmp_path / "words"), "--hotwords", str(tmp_path / "hot")]
    assert main(["serve", str(bundle), "--port", "0", "--threads", "1", *options]) == 0
    (service,) = served
    assert service.words[-1] == "ABC"
    assert service.recognizer.transcribe(speech).text == "ABC"
    assert [phone.text for phone in service.aligner.align(speech, "abc").phones] == ["sil", "a", "b", "c", "sil"]
    assert "left out: " in (shown := capsys.readouterr().err)
    assert "no pronunciation of XYZ; expected it after the word" in shown
    (tmp_path / "words").write_text("\n")
    assert "words: no words; expected one per line" in fault(capsys, bundle, "--words", tmp_path / "words")


@pytest.fixture
def started(bundle):
    """A function that starts `argonaut serve` in a process of its own and returns (process, address, lines before)."""
    running = []

    def start(*options):
        command = [sys.executable, "-m", "recipes.cli.main", "serve", str(bundle), "--port", "0", *options]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        running.append(process)
        lines = []
        for line in process.stderr:
            if found := re.search(r"listening on (http\S+?)[,;]", line):
                return process, found[1], lines
            lines.append(line)
        raise AssertionError(lines)

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_streams_in_order(started, pcm, number):
    process, url, before = started("--threads", "1")
    assert [line for line in before if "warning" in line] == []
    with connect(url.replace("http", "ws", 1)) as socket:
        socket.send(pcm)
        socket.recv()
        process.send_signal(number)
        assert json.loads(socket.recv())["text"] == "AB C"
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith("streams 1; audio 1 s; refused 0\n")


@pytest.mark.slow
def test_a_server_for_other_machines_warns(started, pcm, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o644)
    process, url, before = started("--host", "0.0.0.0", "--threads", "1")
    assert [line for line in before if "warning" in line] == [
        "warning: other machines can use the server without a token; expected --token-file or --host 127.0.0.1\n"
    ]
    process.terminate()
    _, url, before = started("--host", "0.0.0.0", "--token-file", str(token))
    assert [line for line in before if "warning" in line] == [
        f"warning: {token}: other users can read the token; chmod 600\n"
    ]
    port = url.rpartition(":")[2]
    with connect(f"ws://127.0.0.1:{port}/?token=0123456789abcdef") as socket:
        assert speak_to(socket, pcm)[-1]["text"] == "AB C"


def test_packages_are_those_of_the_extra():
    assert PACKAGES == ("starlette", "uvicorn", "websockets", "python_multipart")
