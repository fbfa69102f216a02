"""A process that examines inputs under limits of time and memory, and its owner's view of it."""

import contextlib
import faulthandler
import importlib
import multiprocessing
import os
import resource
import signal
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

CATALOGUE = "tests.fuzz.formats"
SECONDS = 5.0  # of processor time for one input
WAITING = 12.0  # elapsed time may be so many times as long: other processes may need the processor, too
MEMORY = 4 << 30  # bytes of address space
WARM_UP_SECONDS = 300.0  # for the first input of a format, whose kernels may have to be compiled
RETIREMENT = 3 << 30  # bytes of address space, after which a worker is replaced
BEGIN, END, FOUND, DONE = "begin", "end", "found", "done"


class Worker:
    """A worker process as its owner sees it.

    Attributes
    ----------
    connection : Connection
        Sends (format, numbers) to the process; receives (BEGIN, number) and (END, outcome) for each input,
        (FOUND, number, kind, trace), and (DONE, whether the worker should be replaced).
    log : Path
        What the process and its libraries printed, with the stack of a process that died.
    """

    def __init__(self, seconds: float = SECONDS, catalogue: str = CATALOGUE):
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        descriptor, name = tempfile.mkstemp(prefix="fuzz-", suffix=".log")
        os.close(descriptor)
        self.log = Path(name)
        self.process = context.Process(target=_work, args=(other, name, seconds, catalogue), daemon=True)
        self.process.start()
        other.close()

    def close(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.join(timeout=10)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.log.unlink(missing_ok=True)

    def was_too_slow(self) -> bool:
        """Whether the process has ended because an input took too long."""
        return self.process.exitcode == -signal.SIGVTALRM or "Timeout (" in self.last_words()

    def last_words(self) -> str:
        """What a process that has ended printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-20_000:]


def _work(connection: Connection, log: str, seconds: float, catalogue: str) -> None:
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.enable()
    faulthandler.register(signal.SIGVTALRM, all_threads=False, chain=True)  # prints the stack, then ends the process
    from tests.fuzz.examine import FINDING, examine
    from tests.fuzz.format import make, make_seed, temporary_directory

    forms = importlib.import_module(catalogue).FORMATS
    os.fsync = lambda descriptor: None  # no input is about a power failure
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warm: set[str] = set()
    with temporary_directory() as folder, contextlib.suppress(EOFError, BrokenPipeError):
        directory = Path(folder) / "case"
        directory.mkdir()
        while True:
            name, numbers = connection.recv()
            form = forms[name]
            if name not in warm:
                connection.send((BEGIN, None))
                with _limit(WARM_UP_SECONDS):
                    outcome, kind, trace = examine(form, make_seed(form, 0, directory))
                if outcome != "accepted":
                    connection.send((FOUND, None, kind or f"valid file {outcome}", trace))
                warm.add(name)
            for number in numbers:
                path = make(form, number, directory)
                connection.send((BEGIN, number))
                with _limit(seconds):
                    outcome, kind, trace = examine(form, path, number)
                connection.send((END, outcome))
                if outcome == FINDING:
                    connection.send((FOUND, number, kind, trace))
            connection.send((DONE, _address_space() > RETIREMENT))


@contextlib.contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """End the process, and print its stack, if the block takes too long."""
    faulthandler.dump_traceback_later(WAITING * seconds, exit=True)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        faulthandler.cancel_dump_traceback_later()


def _address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux
        return 0
