"""Fuzz configuration, network description and model editing language: python -m tests.languages.fuzz_languages
--minutes 10

Ends with a line per language: texts tried, and kinds of failures; each failure is shown with the shortest text found.
Exit status 1 when there was any.  Nothing may be raised but the project's own faults, and no text may take longer than
tests.languages.targets.LIMIT.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.languages import targets, texts

LANGUAGES = {
    "configuration": (texts.CONFIGURATION, targets.read_configuration),
    "description": (texts.DESCRIPTION, targets.build_description),
    "editing": (texts.SCRIPT, targets.run_script),
}
ROUND = 200  # texts between two looks at the clock
MEMORY = 6 << 30  # bytes of address space, so that a text cannot take the machine with it


def fuzz(name: str, seconds: float, first_seed: int, clock=time.monotonic) -> tuple[int, dict[str, str]]:
    """(texts tried, kind of failure -> how it looks) of one language; no round begins after `seconds`."""
    strategy, target = LANGUAGES[name]
    failures: dict[str, str] = {}
    tried = 0
    end = clock() + seconds
    number = first_seed

    while clock() < end:
        shortest = ""

        @seed(number)
        @settings(
            max_examples=ROUND,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        @given(strategy)
        def run(text):
            nonlocal tried, shortest
            tried += 1
            try:
                target(text)
            except (Exception, targets.TooLong) as fault:
                kind = describe(fault)
                if kind in failures:  # go on behind what is known already
                    return
                shortest = text
                raise Failure(kind) from fault

        try:
            run()
        except Failure as fault:
            trace = "".join(traceback.format_exception(fault.__cause__)[-6:])
            failures[str(fault)] = f"{shortest!r}\n{trace}"
            print(f"{name}, seed {number}: {fault}\n{failures[str(fault)]}", flush=True)
        number += 1
    return tried, failures


class Failure(Exception):
    """A text raised what it must not, or took too long."""


def describe(fault: BaseException) -> str:
    """The kind of a failure: its type, and the line of the project that raised it."""
    frames = [frame for frame in traceback.extract_tb(fault.__traceback__) if "site-packages" not in frame.filename]
    place = frames[-1] if frames else None
    return f"{type(fault).__name__} at {Path(place.filename).name}:{place.lineno}" if place else type(fault).__name__


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="in all, shared among the languages")
    parser.add_argument("--language", choices=tuple(LANGUAGES), action="append", help="only this one")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    chosen = arguments.language or list(LANGUAGES)
    results = {}
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        files = targets.make_files(Path())
        for name in chosen:
            results[name] = fuzz(name, 60 * arguments.minutes / len(chosen), arguments.seed)
        left = sorted(path.name for path in Path().iterdir())
        os.chdir("/")
    for name, (tried, failures) in results.items():
        print(f"{name}: {tried} texts, {len(failures)} kinds of failures")
    if left != files:
        print(f"written, though nothing should be: {', '.join(left)}")
    return 1 if any(failures for _, failures in results.values()) or left != files else 0


if __name__ == "__main__":
    sys.exit(main())
