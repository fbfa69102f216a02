"""Named stages of a recipe: run in order, skipped if done, repeated if settings or inputs changed."""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from readers.common.files import atomic_write
from readers.common.report import RunReport
from readers.errors import ConfigError
from recipes.cli.console import is_interrupted
from recipes.cli.main import RAW_COMMANDS, main


@dataclass(frozen=True)
class Stage:
    """One step of a recipe.

    run: does the work; returns 1 when something was lost on the way (a report of its own names it), else 0 or None.
    help: what it makes.  needs: the earlier stages whose results it uses, None for all of them.  settings: what decides
    its outcome beside the settings of the run, as JSON values.  work: a folder of its own, in which an interrupted run
    of the stage with the same settings goes on; any other run of it begins with the folder removed.
    """

    name: str
    help: str
    run: Callable[[], int | None]
    needs: tuple[str, ...] | None = None
    settings: dict = field(default_factory=dict)
    work: Path | None = None

    def follows(self, names: Collection[str]) -> bool:
        """Whether one of the stages of these names comes before it."""
        return bool(names) and (self.needs is None or not set(names).isdisjoint(self.needs))


def run_stages(
    stages: Sequence[Stage],
    out: Path,
    settings: dict,
    first: str | None = None,
    last: str | None = None,
    closing: Callable[[], None] = lambda: None,
) -> int:
    """Run the stages from `first` to `last` and return the exit status.

    A stage writes `out/stages/NAME.done` as its very last act: settings, seed and commit, seconds and losses.  Without
    `first`, stages that are marked done with the same settings are skipped, unless one that they need had to run.
    settings: whatever decides the outcome, as JSON values.  A stage before `first` must be done; from `first` on all
    begins again.
    closing: called when the last of the stages is done, to print what came out.
    """
    names = [stage.name for stage in stages]
    begin = _position(names, first, 0)
    end = _position(names, last, len(stages) - 1)
    if begin > end:
        raise ConfigError(
            f"--from {first} --to {last}: expected the first to stand before the last in {', '.join(names)}"
        )
    for stage in stages[:begin]:
        if not _mark(out, stage).is_file():
            raise ConfigError(f"stage {first}: stage {stage.name} is not done; run with --from {stage.name}")

    if first is None:
        _tell_changes(stages, out, settings)
    lost_something = False
    ran: set[str] = set()
    for number, stage in enumerate(stages[begin : end + 1], begin + 1):
        title = f"stage {number}/{len(stages)} {stage.name}"
        if first is None and not stage.follows(ran) and _is_marked(_mark(out, stage), stage, settings):
            print(f"{title}: done before", flush=True)
            continue
        print(f"{title}: {stage.help}", flush=True)
        # What follows this stage was made from what it is about to replace.
        _mark(out, stage).unlink(missing_ok=True)
        stale = {stage.name}
        for later in stages[number:]:
            if later.follows(stale):
                stale.add(later.name)
                _mark(out, later).unlink(missing_ok=True)
                _mark(out, later, "begun").unlink(missing_ok=True)
        ran.add(stage.name)
        _begin(out, stage, settings, resume=first is None)
        started = time.monotonic()
        try:
            lost = bool(stage.run())
        except KeyboardInterrupt:
            again = "to continue, run the same command again" + (" without --from" if first else "")
            raise KeyboardInterrupt(f"stage {stage.name} is not done; {again}") from None
        seconds = time.monotonic() - started
        _write_mark(out, stage, settings, seconds, lost)
        print(f"{title}: {seconds:.1f} s{', with losses' if lost else ''}", flush=True)
        lost_something |= lost
    if end == len(stages) - 1:
        closing()
    return int(lost_something)


class Recipe(Protocol):
    """Stages that belong together.  out: everything lies below it; see run_stages for the others."""

    out: Path

    def settings(self) -> dict: ...

    def stages(self) -> Sequence[Stage]: ...

    def closing(self) -> None: ...


def run_recipe(recipe: Recipe, arguments: argparse.Namespace) -> int:
    """Run the stages of a recipe that the command line asks for; returns the exit status."""
    return run_stages(recipe.stages(), recipe.out, recipe.settings(), arguments.first, arguments.last, recipe.closing)


def account(out: Path, report: RunReport, name: str) -> int:
    """Write the report of a stage below out/reports, print its summary and return its exit status."""
    report.write(out / "reports" / name)
    print(report.summary())
    return report.exit_status


def command(name: str, *arguments: object) -> int:
    """Run one of the program's own commands in this process, after showing it as a line that can be run by hand.

    Returns its exit status, 0 or 1; raises ConfigError when nothing could be done (the command has said why), and
    KeyboardInterrupt when the command was interrupted.
    """
    words = [str(word) for word in arguments]
    program = name if name in RAW_COMMANDS else f"argonaut {name}"
    print(f"$ {program} {shlex.join(words)}", flush=True)
    status = main([name, *words])
    if is_interrupted(status):
        raise KeyboardInterrupt
    if status > 1:
        raise ConfigError(f"{program}: exit status {status}; expected 0 or 1, see the message above")
    return status


def _position(names: list[str], name: str | None, default: int) -> int:
    if name is None:
        return default
    if name not in names:
        raise ConfigError(f"stage '{name}' is not known; expected one of {', '.join(names)}")
    return names.index(name)


def _mark(out: Path, stage: Stage, state: str = "done") -> Path:
    return out / "stages" / f"{stage.name}.{state}"


def _is_marked(mark: Path, stage: Stage, settings: dict) -> bool:
    """Whether the mark is there and its settings are these."""
    return _marked(mark) == json.loads(json.dumps(settings | stage.settings))


def _marked(mark: Path) -> dict | None:
    """The settings of a mark; None where there is none, or one of another version: the stage runs again."""
    if not mark.is_file():
        return None
    try:
        return json.loads(mark.read_text(encoding="utf-8"))["settings"]
    except (json.JSONDecodeError, KeyError):
        return None


def _tell_changes(stages: Sequence[Stage], out: Path, settings: dict) -> None:
    """Say which settings are not those of the first stage that has to run again for them."""
    for stage in stages:
        before, now = _marked(_mark(out, stage)), json.loads(json.dumps(settings | stage.settings))
        if before is not None and before != now:
            names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
            changes = ", ".join(f"{name} was {before.get(name)}, is {now.get(name)}" for name in names)
            print(f"{out}: stage {stage.name} was done otherwise: {changes}; it is done again", flush=True)
            return


def _begin(out: Path, stage: Stage, settings: dict, resume: bool) -> None:
    """Remove what an earlier run of the stage left, unless it was interrupted under the same settings."""
    if stage.work is None:
        return
    mark = _mark(out, stage, "begun")
    if not (resume and _is_marked(mark, stage, settings)):
        shutil.rmtree(stage.work, ignore_errors=True)
        with atomic_write(mark, "w") as file:
            json.dump({"settings": settings | stage.settings}, file)


def _write_mark(out: Path, stage: Stage, settings: dict, seconds: float, lost: bool) -> None:
    record = {
        "stage": stage.name,
        "settings": settings | stage.settings,
        "version": version("argonaut-asr"),
        "commit": source_commit(),
        "python": sys.version.split()[0],
        "seconds": round(seconds, 2),
        "lost_something": lost,
    }
    with atomic_write(_mark(out, stage), "w") as file:
        json.dump(record, file, indent=1)
        file.write("\n")
    _mark(out, stage, "begun").unlink(missing_ok=True)


def source_commit() -> str | None:
    """The commit of the source tree with a `+` when it was changed since; None when the program is not run from one."""
    directory = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],
            cwd=directory,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return described.stdout.strip() or None
