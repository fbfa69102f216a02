"""What one client does to the others: it stops reading, disappears, sends too slowly; memory, figures and the end."""

import contextlib
import gc
import json
import socket as sockets
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from readers.errors import ConfigError
from recipes.serve import running
from recipes.serve.limits import Limits
from recipes.serve.metrics import Histogram, resident_bytes
from recipes.serve.running import is_loopback, open_sockets
from tests.recipes.serve.conftest import BLOCK, EOF, connect, speak_to
from tests.recipes.systems.small_system import RATE

UPGRADE = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PATIENCE = 60  # seconds after which a test fails that waits for something


def until(condition):
    """Wait for a condition."""
    for _ in range(100 * PATIENCE):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("waited in vain")


def raw_websocket(server):
    """Return a connected socket whose owner speaks WebSocket by hand."""
    raw = sockets.create_connection(("127.0.0.1", server.port))
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    raw.sendall(UPGRADE.encode())
    assert raw.recv(12) == b"HTTP/1.1 101"
    return raw


def frame(data, opcode=2):
    """A frame of a client, with a mask of zeros."""
    length = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0xFE]) + len(data).to_bytes(2, "big")
    return bytes([0x80 | opcode]) + length + bytes(4) + data


@pytest.mark.slow
def test_a_client_that_does_not_read_is_not_read_and_is_dropped(start, pcm):
    """It sends tiny messages, whose answers are larger than they, and reads none."""
    with start(idle=1.0) as server, contextlib.closing(raw_websocket(server)) as raw:
        raw.settimeout(PATIENCE)
        words = frame(b'{"config": {"partial_words": true}}', 1)
        sent = 0
        with pytest.raises(OSError, match=r"reset|Broken"):
            raw.sendall(words + 20 * frame(pcm))
            while True:
                sent += raw.send(frame(b"") * 1000)
        assert sent < 50_000_000
        until(lambda: server.service.num_open == 0)
        assert server.service.metrics.errors["not_reading"] == 1
        with connect(server.ws) as socket:
            assert speak_to(socket, pcm)[-1]["text"] == "AB C"


@pytest.mark.slow
def test_pings_of_a_client_that_does_not_read_are_not_collected(start):
    with start(idle=5.0) as server, contextlib.closing(raw_websocket(server)) as raw:
        raw.settimeout(1.0)
        sent, ping = 0, frame(bytes(100), 9)
        with contextlib.suppress(OSError):
            while sent < 30_000_000:
                sent += raw.send(ping * 1000)
        waiting = [one.transport.get_write_buffer_size() for one in server.server.server_state.connections]
        assert max(waiting, default=0) < 1 << 20


@pytest.mark.slow
def test_a_long_message_does_not_delay_other_streams(start, monkeypatch):
    steps = []
    with start(cores=1) as server:
        monkeypatch.setattr(server.service.recognizer, "stream", lambda rate: CountingStream(steps), raising=False)
        with connect(server.ws) as first, connect(server.ws) as second:
            first.send(bytes(2 * 30 * RATE))  # 60 steps
            until(lambda: steps)
            second.send(bytes(200))
            second.recv()
            assert len(steps) < 60
            first.recv()
    assert sorted(steps) == [100, *60 * [RATE // 2]]


class CountingStream:
    """A recognition that takes some time for each step and notes the number of samples."""

    def __init__(self, steps):
        self.steps = steps

    def push(self, samples):
        time.sleep(0.02)
        self.steps.append(len(samples))
        return []


def test_clients_that_disappear(start, pcm):
    with start() as server:
        for cut in (0, 2, len(pcm) // 2 * 2):
            raw = raw_websocket(server)
            raw.sendall(frame(pcm[:cut][:60_000]))
            raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # reset instead of an end
            raw.close()
        until(lambda: server.service.num_open == 0)
        assert server.service.metrics.errors.total() == 0
        with connect(server.ws) as socket:
            assert speak_to(socket, pcm)[-1]["text"] == "AB C"


def test_broken_frames_and_requests_harm_no_other(start, pcm):
    with start() as server, connect(server.ws) as other:
        for data in (b"\xff" * 1000, frame(b"\xff\xfe", 1), frame(b"x" * 200, 9), b"\x82\xff" + b"\xff" * 8):
            with contextlib.closing(raw_websocket(server)) as raw, contextlib.suppress(OSError):
                raw.settimeout(PATIENCE)
                raw.sendall(data)
                while raw.recv(4096):
                    pass
        for data in (b"\0\1\2\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100_000):
            raw = sockets.create_connection(("127.0.0.1", server.port))
            with contextlib.closing(raw), contextlib.suppress(OSError):
                raw.sendall(data)
                raw.recv(100)
        assert speak_to(other, pcm)[-1]["text"] == "AB C"


@pytest.mark.slow
def test_connections_without_a_request_are_dropped(start, monkeypatch):
    monkeypatch.setattr(running, "REQUEST_SECONDS", 0.2)
    with start() as server:
        for begin in (b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /he"):
            with contextlib.closing(sockets.create_connection(("127.0.0.1", server.port))) as raw:
                raw.settimeout(PATIENCE)
                raw.sendall(begin)
                with contextlib.suppress(ConnectionResetError):
                    while raw.recv(4096):
                        pass


def test_an_upload_that_stops_frees_its_place(start):
    head = (
        "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
    )
    with start(idle=0.2) as server, contextlib.closing(sockets.create_connection(("127.0.0.1", server.port))) as raw:
        raw.settimeout(PATIENCE)
        raw.sendall(head.encode())
        assert raw.recv(12) == b"HTTP/1.1 408"
        assert server.service.num_open == 0


@pytest.mark.slow
def test_many_connections_leave_no_memory(start, pcm):
    """10,000 connections are in benchmarks/serve.py."""
    with start() as server:
        sizes = []
        for _ in range(4):
            for number in range(60):
                with connect(server.ws) as socket:
                    socket.send(pcm)
                    socket.recv()
                    if number % 2:
                        socket.send(EOF)
                        socket.recv()
            until(lambda: server.service.num_open == 0 and not server.server.server_state.tasks)
            gc.collect()
            sizes.append((len(server.server.server_state.connections), resident_bytes() or 0))
        assert {count for count, _ in sizes} <= {0, 1}
        assert sizes[-1][1] - sizes[1][1] < 8 << 20


def test_figures(start, pcm):
    with start(streams=1) as server:
        with connect(server.ws) as socket:
            with connect(server.ws) as refused, pytest.raises(ConnectionClosed):
                refused.recv()
            assert figures(server)['argonaut_streams_open{kind="websocket"}'] == 1
            speak_to(socket, pcm)
        until(lambda: server.service.num_open == 0)
        with connect(server.ws) as socket:
            socket.send("garbage")
            socket.recv()
        found = figures(server)
    assert found['argonaut_streams_total{kind="websocket"}'] == 2
    assert found['argonaut_streams_refused_total{kind="websocket"}'] == 1
    assert found['argonaut_errors_total{kind="client"}'] == 1
    assert found["argonaut_audio_seconds_total"] == pytest.approx(len(pcm) / 32000)
    assert found["argonaut_answer_seconds_count"] == len(range(0, len(pcm), BLOCK)) + 1
    assert found["argonaut_real_time_factor_count"] == 1
    assert found["argonaut_decoding_seconds_total"] > 0
    assert found["process_resident_memory_bytes"] > 1e7


def figures(server):
    """Prometheus's text as a dict; checks that each figure is described."""
    text = urllib.request.urlopen(f"{server.url}/metrics").read().decode()
    lines = text.splitlines()
    described = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    found = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}
    for name in found:
        base = name.partition("{")[0]
        assert base in described or base.rsplit("_", 1)[0] in described
    return found


def test_histogram():
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 7.0):
        histogram.observe(value)
    assert histogram.lines("h") == [
        'h_bucket{le="1.0"} 2', 'h_bucket{le="2.0"} 3', 'h_bucket{le="+Inf"} 4', "h_sum 10.000000", "h_count 4"
    ]  # fmt: skip


def test_health_while_stopping(start, pcm):
    with start(grace=PATIENCE) as server, connect(server.ws) as socket:
        socket.send(pcm)
        socket.recv()
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        assert json.loads(socket.recv())["text"] == "AB C"
        stopping.join()
        with pytest.raises(OSError, match="refused"):
            sockets.create_connection(("127.0.0.1", server.port))


@pytest.mark.slow
def test_the_grace_period_ends(start, monkeypatch, recognizer):
    """A thread that decodes on cannot be stopped; the server does not wait for it."""
    going_on = threading.Event()
    with start(grace=0.2) as server:
        monkeypatch.setattr(server.service.recognizer, "stream", lambda rate: SlowStream(going_on), raising=False)
        with connect(server.ws) as socket:
            socket.send(bytes(100))
            until(lambda: server.service.is_decoding)
            assert server.stop() is False
            assert server.service.is_decoding
            going_on.set()
        until(lambda: not server.service.is_decoding)


class SlowStream:
    """A recognition that takes until it is told to go on."""

    def __init__(self, going_on):
        self.going_on = going_on

    def push(self, samples):
        self.going_on.wait(PATIENCE)
        return []


def test_sockets():
    (one,) = open_sockets("127.0.0.1", 0)
    port = one.getsockname()[1]
    assert is_loopback([one])
    with pytest.raises(ConfigError, match=rf"127\.0\.0\.1:{port}: .*in use; expected an address of this machine"):
        open_sockets("127.0.0.1", port)
    one.close()
    found = open_sockets("0.0.0.0", 0)
    assert not is_loopback(found)
    for one in found:
        one.close()
    with pytest.raises(ConfigError, match="expected an address of this machine and a free port"):
        open_sockets("host.invalid", 0)


def test_limits_are_above_0():
    with pytest.raises(ConfigError, match="streams is 0; expected at least 1"):
        Limits(streams=0)


def test_nothing_is_left_open(start):
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("the system does not list open files")
    before = len(list(descriptors.iterdir()))
    with start() as server, connect(server.ws):
        pass
    gc.collect()
    assert len(list(descriptors.iterdir())) <= before + 1
