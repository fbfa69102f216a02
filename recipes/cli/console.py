"""What a user sees while a command runs: one-line errors, progress and a summary."""

import contextlib
import io
import os
import re
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from readers.common import faults
from readers.common.environment import CompilationNotes, compilation
from readers.common.jobs.stop_signals import stopped_by_signals, stopping_signal
from readers.common.report import RunReport, loss_lines
from readers.config.options import OptionFault
from readers.errors import ArgonautError, AudioWarning, KernelCacheWarning, ManyFaults, PictureWarning, SequenceWarning

if TYPE_CHECKING:
    from decoder.g2p import Guesses

PLAIN_INTERVAL = 10.0  # seconds between progress lines when the output is not a terminal
_quiet: list[bool] = []  # the bodies of `quietly` that run
SHOWN_FAULTS = 20  # of one file
SHOWN_GUESSES = 5  # of the words that could not be guessed
_OPTION = re.compile(r"\bthe option ([a-z]+(?:[-_][a-z]+)*)")  # as the library names what Python takes as a keyword
SIGNAL_BASE = 128  # the exit status after Ctrl-C, SIGTERM and SIGHUP is this plus the signal's number, as in shells


def run_guarded(function: Callable[..., int], *arguments: object) -> int:
    """Call a command; turn an error in its input into one line on stderr and exit status 2."""
    warnings.formatwarning = _format_warning
    if hasattr(sys.stdout, "reconfigure"):  # for file names that the terminal cannot encode
        sys.stdout.reconfigure(errors="backslashreplace")
    notes = compilation.observer = CompilationNotes(compilation, print_note)
    with stopped_by_signals():
        status = _guarded(function, *arguments)
    if status in (0, 1):
        notes.close(compilation)
    return status


def show_note(text: str) -> None:
    """Print a note about a dictionary or another file that is read."""
    print(f"note: {text}", file=sys.stderr)


def print_note(text: str) -> None:
    if not _quiet:
        print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """Show neither progress nor notes while the body runs, if `quiet`."""
    if quiet:
        _quiet.append(True)
    try:
        yield
    finally:
        if quiet:
            _quiet.pop()


def without_output() -> contextlib.AbstractContextManager[object]:
    """Discard standard output inside a body of `quietly`: of a recipe, the output of its stages."""
    return contextlib.redirect_stdout(io.StringIO()) if _quiet else contextlib.nullcontext()


_default_format = warnings.formatwarning


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    if category in (AudioWarning, KernelCacheWarning, PictureWarning, SequenceWarning):
        return f"warning: {message}\n"
    return _default_format(message, category, filename, lineno, line)


def _guarded(function: Callable[..., int], *arguments: object) -> int:
    try:
        status = function(*arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of a pipe, such as `| head`, has closed it
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 (discards the rest, also what is flushed at exit)
        return 0
    except ManyFaults as fault:
        for message in fault.faults[:SHOWN_FAULTS]:
            print(f"error: {one_line(message)}", file=sys.stderr)
        if len(fault.faults) > SHOWN_FAULTS:
            print(f"error: and {len(fault.faults) - SHOWN_FAULTS} more faults", file=sys.stderr)
        return 2
    except OptionFault as fault:
        print(f"error: command line: {fault.message('flag')}", file=sys.stderr)
        return 2
    except (ArgonautError, OSError) as fault:
        print(f"error: {one_line(fault)}", file=sys.stderr)
        return 2
    except UnicodeEncodeError as fault:  # only file names are encoded in another encoding than UTF-8
        print(
            f"error: {fault.object!r}: cannot be a file name in the encoding {fault.encoding} of the file system; "
            "expected UTF-8; set PYTHONUTF8=1 or a UTF-8 locale",
            file=sys.stderr,
        )
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


_is_stage = ContextVar("is_stage", default=False)


@contextlib.contextmanager
def as_stage() -> Iterator[None]:
    """Commands that are called in the body are steps of a recipe, which knows what comes next."""
    token = _is_stage.set(True)
    try:
        yield
    finally:
        _is_stage.reset(token)


def next_step(line: str) -> str:
    """Return what a command proposes at the end of its summary, nothing for a step of a recipe."""
    return "" if _is_stage.get() else f"; next: {line}"


def program_name() -> str:
    """Return how the shell can call `argonaut`: by its name, or by its path if this environment is not activated."""
    beside = Path(sys.executable).parent / "argonaut"
    on_path = shutil.which("argonaut")
    if not beside.exists() or (on_path is not None and Path(on_path).samefile(beside)):
        return "argonaut"
    current = Path.cwd()
    return str(beside.relative_to(current)) if beside.is_relative_to(current) else str(beside)


def one_line(fault: Exception | str) -> str:
    """Return the message without line breaks, and options as flags; for an OSError with a file name, `file: reason`."""
    return with_flags(faults.one_line(fault))


def with_flags(text: str) -> str:
    """Return a message of the library that names options as flags."""
    return _OPTION.sub(lambda option: f"--{option[1].replace('_', '-')}", text)


def show_losses(report: RunReport, path: object, verbose: int = 0, where: object = "") -> None:
    for line in loss_lines(report, path, verbose, where):
        print(with_flags(line), file=sys.stderr)


def files_of(paths: Sequence[Path], directory: Path) -> str:
    """Return the name of a file, or of the directory and the number of the files in it."""
    return f"{directory} ({len(paths)} files)" if len(paths) > 1 else ", ".join(map(str, paths))


def show_guesses(guesses: "Guesses", verbose: int) -> None:
    """Print which words could not be guessed, the first few unless verbose."""
    for word, reason in guesses.without if verbose else guesses.without[:SHOWN_GUESSES]:
        print(f"not guessed: {word}: {reason}")
    if len(guesses.without) > SHOWN_GUESSES and not verbose:
        print(f"and {len(guesses.without) - SHOWN_GUESSES} more words not guessed, shown with -v")


@contextlib.contextmanager
def progress_display(title: str, unit: str = "utterances", runner: Any = None) -> Iterator[Callable[..., None]]:
    """Yield a function `progress(done, total, **figures)` that displays progress.

    On a terminal it is a live bar, else a plain line every PLAIN_INTERVAL seconds.  The figures, for example loss=1.234
    or frames_per_second=51000, appear beside the counts.  With a Runner, they also name a shard that takes much longer
    than others.
    """
    with contextlib.ExitStack() as stack:
        if _quiet:
            yield lambda *_, **__: None
            return
        progress = stack.enter_context(_live_bar(title)) if sys.stderr.isatty() else _PlainLines(title, unit)
        if runner is not None:
            progress = _Watching(progress)
            runner.watch = progress.watch
        yield progress


class _Watching:
    """Repeats the last figures of a progress display together with those of a Runner that waits."""

    def __init__(self, progress: Callable[..., None]):
        self.progress = progress
        self.last: tuple[int, int | None, dict[str, object]] = (0, None, {})

    def __call__(self, done: int, total: int | None, **figures: object) -> None:
        self.last = done, total, figures
        self.progress(done, total, **figures)

    def watch(self, **figures: object) -> None:
        done, total, earlier_figures = self.last
        self.progress(done, total, **earlier_figures, **figures)


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
    # rich would also print what goes to standard output on the terminal, instead of to its file or pipe.
    console = Console(stderr=True)
    redirect = sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=redirect) as bar:
        task = bar.add_task(title, total=None, figures="")

        def progress(done: int, total: int | None, **figures: object) -> None:
            bar.update(task, completed=done, total=total, figures=_figures_text(figures))

        yield progress


class _PlainLines:
    """Progress as lines of text, at most one every PLAIN_INTERVAL seconds."""

    def __init__(self, title: str, unit: str):
        self.title = title
        self.unit = unit
        self.last = time.monotonic()

    def __call__(self, done: int, total: int | None, **figures: object) -> None:
        now = time.monotonic()
        if now - self.last < PLAIN_INTERVAL:
            return
        self.last = now
        of_total = f" of {total}" if total else ""
        text = _figures_text(figures)
        print(f"{self.title}: {done}{of_total} {self.unit}" + (f", {text}" if text else ""), file=sys.stderr)


def _figures_text(figures: Mapping[str, object]) -> str:
    return "  ".join(
        f"{name.replace('_', ' ')} {value:.4g}" if isinstance(value, float) else f"{name.replace('_', ' ')} {value}"
        for name, value in figures.items()
    )
