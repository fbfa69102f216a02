"""Runs tests in copies of the checkout: unchanged, which fills the caches and takes the times, and with each change."""

import contextlib
import filecmp
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from tests.mutate.changes import Change, changes_of
from tests.mutate.choice import chosen_tests
from tests.mutate.kernel_cache import forget_kernels, reached_kernels
from tests.mutate.sample import ROOT

MEMORY = 16 << 30  # bytes of address space of a run of tests
NO_TESTS = 5  # pytest's exit status if it has found none
COMPILING = 240.0  # seconds that compiling kernels may take


@dataclass(frozen=True)
class Baseline:
    """What the unchanged copy showed: seconds of each test file, and the tests that fail in it."""

    seconds: dict[str, float]
    failing: list[str]

    def save(self, path: Path) -> None:
        """Write to a JSON file."""
        path.write_text(json.dumps({"seconds": self.seconds, "failing": self.failing}, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Baseline":
        """Read what `save` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def copy_checkout(target: Path) -> set[str]:
    """Bring a copy of the checkout up to date; the files that were changed, added or removed.

    Files that git ignores are left out.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    manifest = target / "copied.json"
    before = set(json.loads(manifest.read_text(encoding="utf-8"))) if manifest.exists() else set()
    changed = before - wanted
    for name in changed:
        (target / name).unlink(missing_ok=True)
    for name in wanted:
        source, copy = ROOT / name, target / name
        if not copy.exists() or not filecmp.cmp(source, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
            changed.add(name)
    manifest.write_text(json.dumps(sorted(wanted)), encoding="utf-8")
    return changed


def run_tests(root: Path, arguments: list[str], seconds: float | None, log: Path) -> int | None:
    """pytest's exit status in a copy, None when it took too long; whatever it started is ended."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ARGONAUT_", "NUMBA_"))}
    environment |= {"PYTHONPATH": str(root), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            **{"cwd": root, "env": environment, "stdout": output, "stderr": subprocess.STDOUT},
            **{"stdin": subprocess.DEVNULL, "start_new_session": True, "preexec_fn": _limit_memory},
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _end(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def take_baseline(out: Path, changes: list[Change], jobs: int) -> Baseline:
    """Run the tests of all changes in the copy `out`/unchanged, except those that are known and up to date."""
    root, path = out / "unchanged", out / "baseline.json"
    changed = copy_checkout(root)
    baseline = Baseline.load(path) if path.exists() else Baseline({}, [])
    helpers = (name for name in changed if name.startswith("tests/") and not name.startswith("tests/mutate/"))
    if any("/test_" not in name for name in helpers):  # what several tests use
        baseline = Baseline({}, [])
    affected = {name for name in changed if name.endswith(".py")}
    for name in sorted(affected):
        forget_kernels(name, root, root)
        affected |= reached_kernels(name, root)
    affected |= {test for name in affected if not name.startswith("tests/") for test in chosen_tests(name)}
    files = {name for change in changes for name in chosen_tests(change.path)}
    files = sorted(name for name in files if name in affected or name not in baseline.seconds)
    if not files:
        return baseline
    print(f"running {len(files)} test files on unchanged code", flush=True)
    failing = [test for test in baseline.failing if test.split("::")[0] not in files]
    seconds = baseline.seconds | dict.fromkeys(files, 0.0)
    results = out / "baseline.xml"
    run_tests(root, ["-n", str(jobs), f"--junitxml={results}", *files], None, out / "baseline.log")
    for case in ElementTree.parse(results).iter("testcase"):
        name, within = _place(case.get("classname"))
        seconds[name] += float(case.get("time"))
        if case.find("failure") is not None or case.find("error") is not None:
            failing.append("::".join((name, *within, case.get("name"))))
    baseline = Baseline(seconds, failing)
    baseline.save(path)
    return baseline


def _place(classname: str) -> tuple[str, list[str]]:
    """(test file, classes) of a name in pytest's report: tests.readers.test_damage.TestClass."""
    parts = classname.split(".")
    count = next(i for i, part in enumerate(parts, 1) if part.startswith("test_"))
    return "/".join(parts[:count]) + ".py", parts[count:]


def try_change(change: Change, out: Path, baseline: Baseline, number: int) -> tuple[str, str]:
    """(outcome, first test that failed) of the tests with one change: caught, hang or survived."""
    root, unchanged = out / f"trial{number}", out / "unchanged"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(unchanged, root, copy_function=os.link, symlinks=True)
    place = root / change.path
    source, then = place.read_bytes(), place.stat().st_mtime
    # By its place in the copy, since the checkout may have been edited meanwhile.
    changed = next(one for one in changes_of(change.path, source) if one.identity == change.identity).apply(source)
    place.unlink()  # the link, not the unchanged file
    place.write_bytes(changed)
    os.utime(place, (then + 3600, then + 3600))  # compiled modules of the old code are told apart by their time
    compiling = COMPILING if forget_kernels(change.path, unchanged, root) else 0.0
    skipped = [f"--deselect={test}" for test in baseline.failing]
    log = out / "logs" / f"{change.identity}.log"
    log.parent.mkdir(exist_ok=True)
    files = [name for name in chosen_tests(change.path) if (root / name).exists()]
    limit = 90.0 + compiling + 5 * sum(baseline.seconds.get(name, 0.0) for name in files)
    try:
        status = run_tests(root, ["-x", *skipped, *files], limit, log)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if status is None:
        return "hang", ""
    return ("survived", "") if status in (0, NO_TESTS) else ("caught", _first_failure(log))


def _first_failure(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in lines if line.startswith(("FAILED", "ERROR"))), lines[-1] if lines else "")[:200]
