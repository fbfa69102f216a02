"""A recipe as a job: its options, its result, and the function that runs its stages."""

import contextlib
import dataclasses
import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from readers.common.environment import using_cores
from readers.common.files import held, holder, require_writable
from readers.common.report import Log
from readers.config.options import Options, option
from readers.errors import ConfigError
from recipes.cli.console import quietly
from recipes.stages import Stage, run_stages, seconds_of, verbosity


@dataclass(frozen=True, kw_only=True)
class RecipeOptions(Options):
    """What every recipe can be told."""

    data: Path | None = option(None, "directory of the corpus", metavar="DIR")
    out: Path = option(help="directory for all results", metavar="DIR")
    seed: int = option(0, "seed of all random choices", least=0)
    workers: int | None = option(None, "number of cores to use (default: all)", least=1)
    first: str | None = option(None, "run this stage and those after it again", flag="--from", metavar="STAGE")
    last: str | None = option(None, "stop after this stage", flag="--to", metavar="STAGE")


def overrides(what: str) -> Any:
    """Declare a field of RecipeOptions with settings that replace those of configurations."""
    return option((), f"setting {what} (repeatable)", flag="--set", metavar="NAME=VALUE")


@dataclass(frozen=True)
class Figure:
    """What was measured on a test set.

    Attributes
    ----------
    name : str
        Such as WER, the word error rate in percent.
    value : float
    of : str
        Which of several networks or language models it is about.
    counts : mapping of str to int
        Such as the numbers of errors, words and utterances.
    """

    name: str
    value: float
    of: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RecipeResult:
    """What a recipe has made.

    Attributes
    ----------
    exit_status : int
        1 if a stage lost something, else 0.
    seconds : float
        How long the run took.
    stages : mapping of str to float
        The stages that are done, and how long each took, in this run or an earlier one.
    figures : tuple of Figure
        Error rates on the test set; none unless the stages ran to the end.
    bundle : Path or None
    pictures, reports : tuple of Path
    lines : tuple of str
        The results in words.
    """

    exit_status: int = 0
    seconds: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    bundle: Path | None = None
    pictures: tuple[Path, ...] = ()
    reports: tuple[Path, ...] = ()
    lines: tuple[str, ...] = ()


class Recipe(Protocol):
    """The stages of a recipe, whose results are all below `out`, and what it has made when they are done."""

    @property
    def out(self) -> Path: ...

    def stages(self) -> Sequence[Stage]: ...

    def result(self) -> RecipeResult: ...


O = TypeVar("O", bound=RecipeOptions)


def run_recipe(make: Callable[[O], Recipe], options: O, verbose: int = 0) -> RecipeResult:
    """Run the stages of a recipe that the options select, and print what they do and the results.

    make: raises an error for options and data that cannot be used.
    verbose: how often -v was given.
    """
    started = time.monotonic()
    out = options.out
    try:
        require_writable(out / "stages" / "any.done")
    except OSError as fault:
        options.require("out", False, f"is {out}: {fault.strerror}")
    with contextlib.ExitStack() as stack:
        if not stack.enter_context(held(lock := out / ".recipe.lock")):
            raise ConfigError(f"{out}: another recipe is running there ({holder(lock)}); expected one at a time")
        if options.workers:
            stack.enter_context(using_cores(options.workers))
        token = verbosity.set(verbose)
        stack.callback(verbosity.reset, token)
        recipe = make(options)
        outcome = RecipeResult()

        def close() -> None:
            nonlocal outcome
            outcome = recipe.result()
            for line in outcome.lines:
                print(line)

        stages = recipe.stages()
        status = run_stages(stages, out, options.first, options.last, close)
    return dataclasses.replace(
        outcome,
        exit_status=status,
        seconds=round(time.monotonic() - started, 2),
        stages=seconds_of(stages, out),
        reports=(*sorted((out / "reports").glob("*")), *outcome.reports),
    )


def run_silently(make: Callable[[O], Recipe], options: O, log: Log) -> RecipeResult:
    """Run a recipe, and pass to `log` what it would print, without the output of its commands."""
    lines = _Lines(log)
    with quietly(True), contextlib.redirect_stdout(lines), contextlib.redirect_stderr(lines):
        return run_recipe(make, options)


class _Lines(io.TextIOBase):
    """A file that passes each line to a function."""

    def __init__(self, log: Log):
        self._log = log
        self._begin = ""

    def write(self, text: str) -> int:
        *lines, self._begin = (self._begin + text).split("\n")
        for line in lines:
            self._log(line)
        return len(text)
