"""What a user sees while a command runs: one-line errors, progress and a summary."""

import atexit
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from readers.common.files import require_writable
from readers.common.report import RunReport
from readers.common.stop_signals import STOPPING, stopped_by_signals, stopping_signal
from readers.errors import ArgonautError

PLAIN_INTERVAL = 10.0  # seconds between progress lines when the output is not a terminal
SHOWN_LOSSES = 5  # on the terminal; the report file lists all
SIGNAL_BASE = 128  # the exit status after Ctrl-C, SIGTERM and SIGHUP is this plus the signal's number, as in shells


def run_guarded(function: Callable[..., int], *arguments) -> int:
    """Call a command; turn an error in its input into one line on stderr and exit status 2."""
    ensure_kernel_cache()
    if hasattr(sys.stdout, "reconfigure"):  # for file names that the terminal cannot encode
        sys.stdout.reconfigure(errors="backslashreplace")
    with stopped_by_signals():
        return _guarded(function, *arguments)


def _guarded(function: Callable[..., int], *arguments) -> int:
    try:
        status = function(*arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of a pipe, such as `| head`, has closed it
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 (discards the rest, also what is flushed at exit)
        return 0
    except (ArgonautError, OSError) as fault:
        print(f"error: {one_line(fault)}", file=sys.stderr)
        return 2
    except MemoryError as fault:
        print(f"error: out of memory: {one_line(fault) or 'no details'}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        number = stopping_signal()
        what = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
        try:
            print(what + (f": {stop}" if stop.args else ""), file=sys.stderr)
        except OSError:  # the terminal is gone
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 (also what is flushed at exit)
        return SIGNAL_BASE + number


def is_interrupted(status: int) -> bool:
    """Whether a command with this exit status was stopped by a signal."""
    return status - SIGNAL_BASE in STOPPING


def ensure_kernel_cache() -> None:
    """Give numba a temporary directory for compiled kernels if neither of its usual places is writable.

    Numba keeps compiled kernels beside the source or, if that is write-protected, in the user's cache directory, and
    refuses to compile if it can write to neither, as in many containers.  The temporary directory is private, because
    files in it are executed, and is deleted when the process ends.
    """
    if "NUMBA_CACHE_DIR" in os.environ or sys.platform == "win32":
        return
    beside = Path(__file__).parents[2] / "decoder" / "__pycache__" / "kernel"
    try:
        require_writable(beside)
        return
    except OSError:
        pass
    try:
        caches = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
        require_writable(Path(os.environ.get("XDG_CACHE_HOME") or caches) / "numba" / "kernel")
    except (OSError, RuntimeError):  # RuntimeError: the user has no home directory
        os.environ["NUMBA_CACHE_DIR"] = directory = tempfile.mkdtemp(prefix="argonaut-kernels-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        print(
            f"warning: neither {beside.parents[1]} nor the user's cache directory is writable; compiled kernels will "
            "not be kept; set NUMBA_CACHE_DIR to a writable directory",
            file=sys.stderr,
        )


def one_line(fault: Exception) -> str:
    """Return the message without line breaks; for an OSError with a file name, `file: reason`."""
    if isinstance(fault, OSError) and fault.filename is not None:
        return f"{fault.filename}: {fault.strerror}"
    return " ".join(str(fault).split())


def loss_lines(report: RunReport, path: object, verbose: int = 0, where: object = "") -> list[str]:
    """Return the lines that tell the user which items of a run were lost.

    They name the first few items, or all of them if verbose; if nothing at all could be done, a single line.

    path: the report file that lists all losses, None if there is none.
    where: the input that the run was about, such as its list.
    """
    lines = [reason if reason.startswith(name) else f"{name}: {reason}" for name, _, reason in report.lost]
    if report.exit_status == 2 and not verbose:
        text = lines[0]
        if len(lines) > 1:
            text = f"none of {len(lines)} {report.what} could be done; first error: {text}"
            text = (f"{where}: " if where else "") + text + (f"; all are listed in {path}" if path else "")
        return [f"error: {text}"]
    shown = [f"{outcome}: {line}" for (_, outcome, _), line in zip(report.lost, lines)]
    if not verbose and len(shown) > SHOWN_LOSSES:
        more = f"listed in {path}" if path else "shown with -v"
        shown[SHOWN_LOSSES:] = [f"and {len(lines) - SHOWN_LOSSES} more, {more}"]
    return shown


def show_losses(report: RunReport, path: object, verbose: int = 0, where: object = "") -> None:
    for line in loss_lines(report, path, verbose, where):
        print(line, file=sys.stderr)


@contextlib.contextmanager
def progress_display(title: str, unit: str = "utterances") -> Iterator[Callable[..., None]]:
    """Yield a function `progress(done, total, **figures)` that displays progress.

    On a terminal it is a live bar, else a plain line every PLAIN_INTERVAL seconds.  The figures, for example loss=1.234
    or frames_per_second=51000, appear beside the counts.
    """
    if sys.stderr.isatty():
        with _live_bar(title) as progress:
            yield progress
    else:
        yield _PlainLines(title, unit)


@contextlib.contextmanager
def _live_bar(title: str) -> Iterator[Callable[..., None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, figures="")

        def progress(done: int, total: int | None, **figures) -> None:
            bar.update(task, completed=done, total=total, figures=_figures_text(figures))

        yield progress


class _PlainLines:
    """Progress as lines of text, at most one every PLAIN_INTERVAL seconds."""

    def __init__(self, title: str, unit: str):
        self.title, self.unit = title, unit
        self.last = time.monotonic()

    def __call__(self, done: int, total: int | None, **figures) -> None:
        now = time.monotonic()
        if now - self.last < PLAIN_INTERVAL:
            return
        self.last = now
        of_total = f" of {total}" if total else ""
        text = _figures_text(figures)
        print(f"{self.title}: {done}{of_total} {self.unit}" + (f", {text}" if text else ""), file=sys.stderr)


def _figures_text(figures: dict) -> str:
    return "  ".join(
        f"{name.replace('_', ' ')} {value:.4g}" if isinstance(value, float) else f"{name.replace('_', ' ')} {value}"
        for name, value in figures.items()
    )
