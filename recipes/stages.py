"""Named stages of a recipe: run in order, skipped if done, repeated if settings or inputs changed."""

import contextlib
import errno
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from readers.common.environment import program_version
from readers.common.files import write_content, write_json
from readers.common.report import RunReport
from readers.common.text import parse_json, read_text
from readers.config.options import Options
from readers.errors import ArgonautError, ConfigError
from recipes.cli.command import MACHINES, Console, MachineOptions
from recipes.cli.console import as_stage, without_output
from recipes.cli.main import RAW_COMMANDS, module_of
from recipes.stage_settings import extends_training

SHOWN_CHANGES = 4  # of the settings of a stage
LEAST_FREE = 50_000_000  # bytes, of a disk that is not full
EARLIER = ".earlier"  # in the directory of a stage: what the run before left there

verbosity = ContextVar("verbosity", default=0)  # how often -v was given, for the commands that stages run


@dataclass(frozen=True)
class Stage:
    """One step of a recipe.

    name: its name on the command line.
    run: does the work; returns 1 if something was lost (named in a report of its own), else 0 or None.
    help: what the stage produces.
    needs: names of the earlier stages whose results it uses, None for all.
    settings: the settings that determine its result, as JSON values, except those that determine the results of the
    stages it needs.
    closes: whether the results are complete with this stage, so that they are printed if no later stage runs, either.
    work: a directory of its own, in which an interrupted run with the same settings continues, and a training with more
    epochs than before; any other run begins by removing it.
    inputs: returns more settings, those that are only known when the earlier stages are done, such as checksums of
    files; a stage that has those of all that it reads of an earlier one does not need it, and runs if they differ.
    """

    name: str
    help: str
    run: Callable[[], int | None]
    needs: tuple[str, ...] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    work: Path | None = None
    closes: bool = False
    inputs: Callable[[], dict[str, Any]] = dict

    def follows(self, names: Collection[str]) -> bool:
        """Whether the stage needs one of these stages."""
        return bool(names) and (self.needs is None or not set(names).isdisjoint(self.needs))

    def with_inputs(self) -> "Stage":
        """Return the stage with all its settings, as they are read from a mark.  Raises ConfigError without a file."""
        try:
            settings = self.settings | self.inputs()
        except FileNotFoundError as fault:
            expected = "expected it there, or --from with the stage that writes or names it, such as import"
            raise ConfigError(f"{fault.filename}: missing, and read by stage {self.name}; {expected}") from fault
        return replace(self, settings=json.loads(json.dumps(settings)), inputs=dict)


def run_stages(
    stages: Sequence[Stage],
    out: Path,
    first: str | None = None,
    last: str | None = None,
    closing: Callable[[], None] = lambda: None,
) -> int:
    """Run the stages from `first` to `last` and return the exit status.

    At its end, a stage writes `out/stages/NAME.done` with its settings, needs, commit, time and losses.  Without
    `first`, stages that are done with the same settings are skipped, unless a stage that they need was repeated, be it
    by a run that did not have them.  The stages before `first` must be done; all stages from `first` on are repeated.

    closing: called at the end, to print the results, if the stages run at least to the last one that `closes`, or to
    the end if none does.
    """
    names = [stage.name for stage in stages]
    stages = [
        stage if stage.needs is not None else replace(stage, needs=tuple(names[:number]))
        for number, stage in enumerate(stages)
    ]
    begin = _position(names, first, 0)
    end = _position(names, last, len(stages) - 1)
    if begin > end:
        raise ConfigError(f"--from {first} --to {last}: expected the first to be before the last in {', '.join(names)}")
    for stage in stages[:begin]:
        if not _mark(out, stage).is_file():
            raise ConfigError(f"stage {first}: stage {stage.name} is not done; run with --from {stage.name}")
        with contextlib.suppress(ArgonautError, OSError):  # what is missing or damaged is not needed now
            stage = stage.with_inputs()
            if (before := _before(out, stage)) is not None and before != stage.settings:
                others = _other_settings(out, stage)
                print(f"stage {stage.name}: {others}; --from {first} keeps its results", flush=True)

    lost_something = False
    ran: set[str] = set()
    for number, stage in enumerate(stages[begin : end + 1], begin + 1):
        title = f"stage {number}/{len(stages)} {stage.name}"
        stage = stage.with_inputs()
        if first is None and not stage.follows(ran) and _is_marked(_mark(out, stage), stage):
            print(f"{title}: done before", flush=True)
            continue
        resume = first is None and _is_marked(_mark(out, stage, "begun"), stage)
        if first is None and not resume and _is_extended(out, stage):
            print(f"{title}: {_other_settings(out, stage)}; the training in {stage.work} continues", flush=True)
            resume = True
        if not resume and (reason := _reason(out, stage, ran, first)):
            print(f"{title}: {reason}", flush=True)
        if not ran and (other_out := _other_place(out, stages[: number - 1])):
            print(
                f"warning: {out}: earlier stages ran with --out {other_out}, which is another directory from here; "
                "their lists contain such paths; use the same --out from the same directory",
                flush=True,
            )
        print(f"{title}: {stage.help}", flush=True)
        ran.add(stage.name)
        started = time.monotonic()
        try:
            with without_output(), _begun(out, stage, [*stages[number:], *_absent(out, names)], resume):
                lost = bool(stage.run())
        except KeyboardInterrupt:
            again = "to continue, run the same command again" + (" without --from" if first else "")
            raise KeyboardInterrupt(f"stage {stage.name} is not done; {again}") from None
        if lost and shutil.disk_usage(out).free < LEAST_FREE:
            # What has no room counts as lost for a command, and would be missing for good.
            again = f"stage {stage.name} lost something, and the disk is full; make room and run the same command again"
            raise OSError(errno.ENOSPC, again, os.fspath(out))
        seconds = time.monotonic() - started
        _write_mark(out, stage, seconds, lost, resume)
        print(f"{title}: {seconds:.1f} s{', with losses' if lost else ''}", flush=True)
        lost_something |= lost
    if end >= max((i for i, stage in enumerate(stages) if stage.closes), default=len(stages) - 1):
        closing()
    return int(lost_something)


def is_done(out: Path, name: str) -> bool:
    """Return whether a stage is done, with results that no earlier stage has changed since."""
    return (out / "stages" / f"{name}.done").is_file()


def seconds_of(stages: Sequence[Stage], out: Path) -> dict[str, float]:
    """Return how long each stage took that is done."""
    return {stage.name: _record(_mark(out, stage)).get("seconds", 0.0) for stage in stages if is_done(out, stage.name)}


def was_resumed(out: Path, name: str) -> bool:
    """Return whether a stage that is done went on with what an earlier run had begun, whose time does not count."""
    return bool(_record(out / "stages" / f"{name}.done").get("resumed"))


def account(out: Path, report: RunReport, name: str) -> int:
    """Write the report of a stage below out/reports, print its summary and return its exit status."""
    report.write(out / "reports" / name)
    print(report.summary())
    return report.exit_status


def call(name: str, options: Options, *, workers: int | None = None) -> int:
    """Run one of the program's commands, after printing it as a line that can be run by hand.

    options: those of the command, or of one of its actions; workers: number of threads or processes.
    Returns its exit status, 0 or 1; raises ConfigError if nothing could be done, and what the command raises.
    """
    command = module_of(name).COMMAND
    title = name
    if command.actions:
        command = next(action for action in command.actions if action.options is type(options))
        title = f"{name} {command.name}"
    machines = MACHINES.get(command.machines, MachineOptions)(workers=workers)
    program = title if name in RAW_COMMANDS else f"argonaut {title}"
    print(f"$ {program} {shlex.join([*options.to_flags(), *machines.to_flags()])}", flush=True)
    try:
        with as_stage():
            status = command.run(options, Console(title, verbosity.get(), machines))
    except KeyboardInterrupt as stop:
        if stop.args:
            print(f"interrupted: {stop}", file=sys.stderr)
        raise
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


def _is_marked(mark: Path, stage: Stage) -> bool:
    """Whether the mark exists and has the settings of the stage."""
    return _marked(mark) == stage.settings


def _marked(mark: Path) -> dict[str, Any] | None:
    """Return the settings of a mark; None if it is missing or of another version, so that the stage is repeated."""
    settings = _record(mark).get("settings")
    return settings if isinstance(settings, dict) else None


def _record(mark: Path) -> dict[str, Any]:
    """Return what a mark contains, nothing if it is missing or damaged."""
    try:
        record = parse_json(read_text(mark, exact=True)) if mark.is_file() else {}
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _other_place(out: Path, stages: Sequence[Stage]) -> str:
    """Return the name of the directory with which earlier stages ran, if it is not that of `out` from here, else ""."""
    places = {_record(_mark(out, stage)).get("out") for stage in stages}
    return next((directory for directory in places if directory and not _is_same(str(directory), out)), "")


def _is_same(place: str, out: Path) -> bool:
    try:
        return out.samefile(place)
    except (OSError, ValueError):
        return False


def _before(out: Path, stage: Stage) -> dict[str, Any] | None:
    """Return the settings of the last run of a stage, None if it left no mark."""
    before = _marked(_mark(out, stage))
    return _marked(_mark(out, stage, "begun")) if before is None else before


def _is_extended(out: Path, stage: Stage) -> bool:
    """Whether the stage continues the training of its last run with more epochs."""
    before = _before(out, stage)
    return before is not None and stage.work is not None and extends_training(before, stage.settings)


def _other_settings(out: Path, stage: Stage) -> str:
    return f"other settings than before: {_changes(_before(out, stage) or {}, stage.settings)}"


def _reason(out: Path, stage: Stage, ran: Collection[str], first: str | None) -> str:
    """Describe why results of a stage are made again, and whether models are removed; "" if there are no results."""
    before = _before(out, stage)
    discards = stage.work is not None and stage.work.is_dir() and any(stage.work.iterdir())
    if before is None and not discards:
        return ""
    needed = [name for name in ran if stage.follows((name,))]
    if before is not None and before != stage.settings:
        cause = _other_settings(out, stage)
    elif first is not None:
        cause = f"repeated because of --from {first}"
    elif needed:
        cause = f"repeated after {', '.join(needed)}"
    else:
        cause = "an earlier run changed its inputs"
    return cause + (f"; the models and checkpoints in {stage.work} are removed" if discards else "")


def _changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    unset = "not set"
    names = [name for name in {**before, **now} if before.get(name, unset) != now.get(name, unset)]
    shown = [f"{name} was {before.get(name, unset)}, is {now.get(name, unset)}" for name in names[:SHOWN_CHANGES]]
    return ", ".join([*shown, *([f"and {len(names) - SHOWN_CHANGES} more"] if len(names) > SHOWN_CHANGES else [])])


def _absent(out: Path, names: Collection[str]) -> list[Stage]:
    """Return the stages of earlier runs that this run does not have."""
    marks = [mark for state in ("done", "begun") for mark in sorted((out / "stages").glob(f"*.{state}"))]
    needs = {mark.stem: _record(mark).get("needs") for mark in marks if mark.stem not in names}
    return [
        Stage(name, "", int, tuple(map(str, needed)) if isinstance(needed, list) else None)  # earlier versions: unknown
        for name, needed in needs.items()
    ]


@contextlib.contextmanager
def _begun(out: Path, stage: Stage, later: Sequence[Stage], resume: bool) -> Iterator[None]:
    """Mark a stage as begun; the results of stages that need it, and without `resume` its own, are no longer valid.

    If the stage fails before it writes to its directory, for instance because of a setting that is not known, the marks
    and the directory are restored.
    """
    affected = [stage]
    unaffected = list(later)
    while dependent := [other for other in unaffected if other.follows({earlier.name for earlier in affected})]:
        affected += dependent
        unaffected = [other for other in unaffected if other not in dependent]
    begun = _mark(out, stage, "begun")
    paths = [_mark(out, stage_begun, state) for stage_begun in affected for state in ("done", "begun")]
    marks = {path: path.read_bytes() for path in paths if path.is_file()}
    if stage.work is None:
        _remove(marks)
        yield
        return
    earlier = stage.work / EARLIER
    shutil.rmtree(earlier, ignore_errors=True)
    files = _times(stage.work) if resume else {}
    try:
        # The process may die between any two steps: no mark may name settings that its models do not have.
        if resume:
            _write_begun(begun, stage)
            _remove(marks.keys() - {begun})
        else:
            _remove(marks)
            # The directory itself stays, because it may be a link or a mount point.
            _move(stage.work, earlier)
            _write_begun(begun, stage)
        yield
    except Exception:
        if _times(stage.work) == files:
            if earlier.is_dir():
                _move(earlier, stage.work)
                print(f"stage {stage.name} failed before it wrote a model; {stage.work} is as before", flush=True)
            _restore(marks, begun)
        raise
    finally:
        shutil.rmtree(earlier, ignore_errors=True)


def _write_begun(begun: Path, stage: Stage) -> None:
    write_json(begun, {"settings": stage.settings, "needs": stage.needs})


def _remove(marks: Collection[Path]) -> None:
    for path in marks:
        path.unlink(missing_ok=True)


def _restore(marks: dict[Path, bytes], begun: Path) -> None:
    begun.unlink(missing_ok=True)
    for path, content in marks.items():
        write_content(path, content)


def _move(source: Path, target: Path) -> None:
    """Move the entries of a directory to another one."""
    for path in list(source.iterdir()) if source.is_dir() else []:
        target.mkdir(exist_ok=True)
        path.replace(target / path.name)


def _times(directory: Path) -> dict[Path, int]:
    """Return the new files of a stage's directory, with the times of their last changes in nanoseconds."""
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*") if EARLIER not in path.parts}


def _write_mark(out: Path, stage: Stage, seconds: float, lost: bool, resumed: bool) -> None:
    record = {
        "stage": stage.name,
        "out": str(out),
        "settings": stage.settings,
        "needs": stage.needs,
        "version": program_version(),
        "commit": source_commit(),
        "python": sys.version.split()[0],
        "seconds": round(seconds, 2),
        "resumed": resumed,
        "lost_something": lost,
    }
    write_json(_mark(out, stage), record, indent=1)
    _mark(out, stage, "begun").unlink(missing_ok=True)


def source_commit() -> str | None:
    """Return the commit of the source tree, with a `+` if it has local changes; None outside of a source tree."""
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
