"""What a person sees while a command runs: one-line faults, progress, closing lines."""

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from readers.common.files import require_writable
from readers.common.report import RunReport
from readers.errors import ArgonautError

PLAIN_INTERVAL = 10.0  # seconds between progress lines when the output is no terminal
SHOWN_LOSSES = 5  # on the terminal; the report names all
INTERRUPTED = 130  # exit status after Ctrl-C, as shells have it


def run_guarded(function: Callable[..., int], *arguments) -> int:
    """Call a command; a fault of its input becomes one line on stderr and exit status 2."""
    ensure_kernel_cache()
    if hasattr(sys.stdout, "reconfigure"):  # a file name that the terminal has no characters for is no reason to stop
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = function(*arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever reads the output has seen enough (`| head`)
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 (what is left goes nowhere, at the end of the program too)
        return 0
    except (ArgonautError, OSError) as fault:
        print(f"error: {one_line(fault)}", file=sys.stderr)
        return 2
    except MemoryError as fault:
        print(f"error: out of memory: {one_line(fault) or 'no details'}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print("interrupted" + (f": {stop}" if stop.args else ""), file=sys.stderr)
        return INTERRUPTED


def ensure_kernel_cache() -> None:
    """Where numba could keep no compiled kernel, and so would compile none, let it use a temporary directory.

    It keeps them beside the source or, where that is write-protected, in the user's cache; a service in a container
    often has neither.  The directory is nobody else's, for what is in it is executed, and goes with the process.
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
    except (OSError, RuntimeError):  # the latter: no home
        os.environ["NUMBA_CACHE_DIR"] = directory = tempfile.mkdtemp(prefix="argonaut-kernels-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        print(
            f"warning: neither {beside.parents[1]} nor a cache of the user can be written; compiling anew what is "
            "compiled once elsewhere; NUMBA_CACHE_DIR=DIR gives it a place",
            file=sys.stderr,
        )


def one_line(fault: Exception) -> str:
    """The fault's message without line breaks; the file's name first when the operating system names one."""
    if isinstance(fault, OSError) and fault.filename is not None:
        return f"{fault.filename}: {fault.strerror}"
    return " ".join(str(fault).split())


def loss_lines(report: RunReport, path: object, verbose: int = 0, where: object = "") -> list[str]:
    """What a run lost: the first few, or all when verbose; one line alone where nothing was done.

    path: the file that names all of them, None if there is none; where: what the run was about, such as its list.
    """
    lines = [reason if reason.startswith(name) else f"{name}: {reason}" for name, _, reason in report.lost]
    if report.exit_status == 2 and not verbose:
        text = lines[0]
        if len(lines) > 1:
            text = f"none of {len(lines)} {report.what} could be done; the first: {text}"
            text = (f"{where}: " if where else "") + text + (f"; all are named in {path}" if path else "")
        return [f"error: {text}"]
    shown = [f"{outcome}: {line}" for (_, outcome, _), line in zip(report.lost, lines)]
    if not verbose and len(shown) > SHOWN_LOSSES:
        more = f"named in {path}" if path else "shown with -v"
        shown[SHOWN_LOSSES:] = [f"and {len(lines) - SHOWN_LOSSES} more, {more}"]
    return shown


def show_losses(report: RunReport, path: object, verbose: int = 0, where: object = "") -> None:
    for line in loss_lines(report, path, verbose, where):
        print(line, file=sys.stderr)


@contextlib.contextmanager
def progress_display(title: str, unit: str = "utterances") -> Iterator[Callable[..., None]]:
    """Yield `progress(done, total, **figures)`: a live bar on a terminal, else a plain line now and then.

    figures are shown beside the counts, e.g. loss=1.234 or frames_per_second=51000.
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
