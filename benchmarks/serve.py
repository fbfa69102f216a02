"""The server under load: latency and real-time factor for 1, 2, 4 and 8 streams, and memory after many connections.

    python -m benchmarks.serve an4.argo recordings/ [--threads 2] [--connections 10000] [--real-time]

starts `argonaut serve` on a free port and sends the recordings of a folder in blocks of 100 ms, as clients of vosk do:
each block after the answer to the one before.  With --real-time a block is sent every 100 ms.  The words of each stream
are compared with those of `Recognizer.stream`.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from benchmarks import ONE_THREAD

BLOCK = 0.1  # seconds
STREAMS = (1, 2, 4, 8)
EOF = '{"eof" : 1}'
POINTS = 10  # memory is printed so often
START_SECONDS = 300


def main(argv: list[str] | None = None) -> int:
    """Print one line per figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("recordings", type=Path, help="a folder; its audio files are sent")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--files", type=int, default=130, help="recordings per number of streams")
    parser.add_argument("--connections", type=int, default=0, help="connections one after the other")
    parser.add_argument("--real-time", action="store_true", help="a block every 100 ms")
    arguments = parser.parse_args(argv)
    audio = read_recordings(arguments.recordings, arguments.files)
    expected = reference_words(arguments.bundle, audio)
    with running_server(arguments.bundle, arguments.threads) as (url, process):
        for count in STREAMS:
            asyncio.run(measure(url, audio, expected, count, arguments.real_time))
        if arguments.connections:
            asyncio.run(connect_often(url, audio[0], arguments.connections, process.pid))
        print(f"memory of the server {resident(process.pid) >> 20} MiB")
    print(f"exit status {process.returncode}")
    return 0


def read_recordings(folder: Path, count: int) -> list[tuple[bytes, int]]:
    """Return (samples, rate) of the first audio files of a folder."""
    from readers.audio.audio_file import read_audio
    from readers.common.audio_format import AUDIO_SUFFIXES

    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in AUDIO_SUFFIXES)[:count]
    found = []
    for path in paths:
        samples, rate = read_audio(path)
        found.append((samples.astype("<i2").tobytes(), rate))
    return found


def reference_words(bundle: Path, audio: list[tuple[bytes, int]]) -> list[str]:
    """Return the words of each recording by `Recognizer.stream`, in this process."""
    import numpy as np

    from decoder import Recognizer

    recognizer, found = Recognizer.load(bundle), []
    for data, rate in audio:
        stream = recognizer.stream(rate)
        events = stream.push(np.frombuffer(data, "<i2")) + stream.finish()
        found.append(" ".join(event.text for event in events if event.is_final and event.text))
    return found


@contextlib.contextmanager
def running_server(bundle: Path, threads: int) -> Iterator[tuple[str, subprocess.Popen]]:
    """Start the server and yield its address and process; stop it in the end."""
    command = [sys.executable, "-m", "recipes.cli.main", "serve", str(bundle), "--port", "0", "--threads", str(threads)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD) as process:
        try:
            for line in process.stderr:
                if found := re.search(r"listening on (http://\S+?);", line):
                    break
            yield found[1].replace("http", "ws", 1), process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=START_SECONDS)


async def measure(url: str, audio: list, expected: list[str], count: int, real_time: bool) -> None:
    """Send all recordings over `count` streams at a time, and print latency and real-time factor."""
    waiting = iter(range(len(audio)))
    delays: list[float] = []
    words: dict[int, str] = {}

    async def work() -> None:
        for index in waiting:
            words[index] = await send(url, *audio[index], delays, real_time)

    begin = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(count)))
    spent = time.perf_counter() - begin
    seconds = sum(len(data) / 2 / rate for data, rate in audio)
    same = sum(words[index] == text for index, text in enumerate(expected))
    ordered = sorted(1000 * delay for delay in delays)
    print(
        f"streams {count}: latency median {statistics.median(ordered):.1f} ms, 95 % "
        f"{ordered[int(0.95 * len(ordered))]:.1f} ms, largest {ordered[-1]:.0f} ms; real-time factor "
        f"{spent / seconds:.4f} of all, {spent * count / seconds:.4f} of a stream; same words {same} of {len(audio)}",
        flush=True,
    )


async def send(url: str, data: bytes, rate: int, delays: list[float], real_time: bool) -> str:
    """Send one recording; returns its words."""
    from websockets.asyncio.client import connect

    size, found = 2 * round(BLOCK * rate), []
    async with connect(url) as socket:
        await socket.send(json.dumps({"config": {"sample_rate": rate}}))
        start = time.perf_counter()
        blocks = [data[begin : begin + size] for begin in range(0, len(data), size)]
        for number, message in enumerate([*blocks, EOF]):
            if real_time:
                await asyncio.sleep(max(0.0, start + number * BLOCK - time.perf_counter()))
            begin = time.perf_counter()
            await socket.send(message)
            answer = json.loads(await socket.recv())
            delays.append(time.perf_counter() - begin)
            found += [answer["text"]] if answer.get("text") else []
    return " ".join(found)


async def connect_often(url: str, recording: tuple[bytes, int], count: int, pid: int) -> None:
    """Connect many times, one after the other, with a second of audio each, and print the memory of the server."""
    from websockets.asyncio.client import connect

    data, rate = recording
    begin = time.perf_counter()
    for number in range(count):
        if number % (count // POINTS) == 0:
            print(f"connections {number}: memory {resident(pid) / 2**20:.1f} MiB", flush=True)
        async with connect(url) as socket:
            await socket.send(data[: 2 * rate])
            await socket.recv()
            if number % 2:  # every other client disappears
                await socket.send(EOF)
                await socket.recv()
    print(f"connections {count}: memory {resident(pid) / 2**20:.1f} MiB; {time.perf_counter() - begin:.0f} s")
    with urllib.request.urlopen(url.replace("ws", "http", 1) + "/healthz") as answer:
        print(f"connections: {answer.read().decode()}")


def resident(pid: int) -> int:
    """Return the memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
