"""What a worker does with a shard: it works where the command was started, keeps what was opened, and names faults."""

import contextlib
import contextvars
import os
import pickle
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from readers.common.environment import program_version
from readers.common.extensions import OPTION, VARIABLE, fingerprint
from readers.common.faults import os_reason
from readers.errors import ArgonautError, ConfigError

Opened = TypeVar("Opened")
Function = Callable[..., Any]  # of a shard, a part of a list, and of what all shards use
KEPT_RUNS = 2  # whose models and graphs a worker keeps


class WorkerLost(ArgonautError):
    """A worker has died, or cannot be reached any more."""


class SchedulerLost(WorkerLost):
    """The connection to the scheduler is gone."""


class RunSettings(NamedTuple):
    """What all shards of a run share.

    Attributes
    ----------
    key : str
        Distinguishes runs: what one run has opened is not used by the next, because files may have changed.
    directory : str
        Current directory of the command, to which relative paths refer; "" if it is that of the worker.
    extensions : str
        Python files of --extension.
    program : str
        Version of this program.
    code : str
        Checksum of the extensions.
    """

    key: str
    directory: str = ""
    extensions: str = ""
    program: str = ""
    code: str = ""


@dataclass
class Answer:
    """Result of a shard, or the fault that prevented it.

    Attributes
    ----------
    result : object
    fault : BaseException or None
    is_lost : bool
        Whether the fault may not occur again, or not elsewhere: memory, files, a worker that died.
    worker : str
        Name of the worker; "" for a thread of this process.
    attempts : int
        Number of times that the shard was tried.
    is_suspected : bool
        Whether the worker had other shards, too, of which one may be the cause of the fault.
    """

    result: Any = None
    fault: BaseException | None = None
    is_lost: bool = False
    worker: str = ""
    attempts: int = 1
    is_suspected: bool = False

    @property
    def reason(self) -> str:
        """The fault in one line, with the worker."""
        text = reason_of(self.fault) if self.fault else ""
        return f"{self.worker}: {text}" if self.worker else text


def reason_of(fault: BaseException) -> str:
    """Return a fault of a shard in one line."""
    if isinstance(fault, OSError) and fault.filename is not None:
        return f"{fault.filename}: {os_reason(fault)}"
    text = " ".join(str(fault).split())
    if isinstance(fault, MemoryError):
        return f"out of memory ({text})" if text else "out of memory"
    return text if isinstance(fault, ArgonautError) and text else f"{type(fault).__name__}: {text}".removesuffix(": ")


def work(settings: RunSettings, function: Function, shard: Any, arguments: Sequence[Any]) -> Answer:
    """Return function(shard, *arguments), or its fault, in a worker process."""
    worker = worker_name()
    try:
        with _place.of(settings), keeping(settings.key):
            return Answer(function(shard, *arguments), worker=worker)
    except (MemoryError, OSError) as fault:
        return Answer(fault=_portable(fault), is_lost=True, worker=worker)
    except ArgonautError as fault:
        return Answer(fault=_portable(fault), worker=worker)
    except Exception:
        return Answer(fault=RuntimeError(f"{worker}: {traceback.format_exc()}"), worker=worker)


def worker_name() -> str:
    """Return the name of this worker process, for messages."""
    if "distributed" in sys.modules:
        with contextlib.suppress(ValueError):  # raised outside a worker of a cluster
            return f"worker {sys.modules['distributed'].get_worker().address} ({socket.gethostname()})"
    return f"process {os.getpid()}"


def _portable(fault: Exception) -> Exception:
    """Return the fault in a form that can be sent to another process."""
    if isinstance(fault, OSError):
        return OSError(fault.errno, fault.strerror, fault.filename) if fault.errno else OSError(str(fault))
    if isinstance(fault, MemoryError):
        return MemoryError(str(fault))
    try:
        copied: Exception = pickle.loads(pickle.dumps(fault))
    except Exception:
        return ArgonautError(str(fault))
    return copied


class _Place:
    """Current directory and extensions, which belong to the process: threads share them, or wait for each other."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._users = 0
        self._now = ("", "", "")
        self._before = ("", "")

    @contextlib.contextmanager
    def of(self, settings: RunSettings) -> Iterator[None]:
        surroundings = settings.directory, settings.extensions, settings.code
        if not settings.directory:
            yield
            return
        with self._free:
            self._free.wait_for(lambda: not self._users or self._now == surroundings)
            if not self._users:
                self._enter(settings)
                self._now = surroundings
            self._users += 1
        try:
            yield
        finally:
            with self._free:
                self._users -= 1
                if not self._users:
                    self._leave()
                    self._free.notify_all()

    def _enter(self, settings: RunSettings) -> None:
        if (version := program_version()) != settings.program:
            raise ConfigError(f"{worker_name()}: argonaut {version}; expected {settings.program}, as in this command")
        directory = ""
        with contextlib.suppress(OSError):  # it has been removed
            directory = os.getcwd()  # noqa: PTH109
        self._before = directory, os.environ.get(VARIABLE, "")
        try:
            os.chdir(settings.directory)
        except OSError as fault:
            raise ConfigError(
                f"{worker_name()}: {settings.directory}: {os_reason(fault)}; expected workers that see the files of "
                "this machine under the same names"
            ) from fault
        os.environ[VARIABLE] = settings.extensions
        if settings.extensions and fingerprint() != settings.code:
            self._leave()
            raise ConfigError(
                f"{worker_name()}: {OPTION} {settings.extensions}: another content than in this command; expected "
                "workers that are started again when an extension is changed, since they import it once"
            )

    def _leave(self) -> None:
        directory, os.environ[VARIABLE] = self._before
        with contextlib.suppress(OSError):  # it has been removed, and the next shard has one of its own
            os.chdir(directory)


_place = _Place()
_run: contextvars.ContextVar[str] = contextvars.ContextVar("run", default="")
_opened: dict[str, dict[tuple[Any, ...], Any]] = {}  # by run: what `kept` has opened
_opening = threading.RLock()


@contextlib.contextmanager
def keeping(key: str) -> Iterator[None]:
    """Let `kept` in the body keep objects for the run with this key."""
    token = _run.set(key)
    try:
        yield
    finally:
        _run.reset(token)


def kept(make: Callable[..., Opened], *arguments: Any) -> Opened:
    """Return `make(*arguments)`, made once for each worker process and run.

    Shards of a run that come to the same worker share the object, such as a model or a graph; with several threads it
    must be thread-safe.

    Parameters
    ----------
    make : callable
        Opens the object.
    *arguments : object
        Its arguments, hashable.

    Returns
    -------
    object
    """
    key = (make, *arguments)
    name = _run.get()
    with _opening:
        of_run = _opened[name] = _opened.pop(name, {})
        if key not in of_run:
            while len(_opened) > KEPT_RUNS:
                del _opened[next(iter(_opened))]
            of_run[key] = make(*arguments)
        opened: Opened = of_run[key]
        return opened


def forget(key: str) -> None:
    """Drop what `kept` has opened for a run."""
    _opened.pop(key, None)  # without a lock, which would be held while another shard opens a model
