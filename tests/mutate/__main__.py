"""Try small wrong changes, one at a time, and count those that no test notices: python -m tests.mutate --out DIR

Each change is tried in a copy of the checkout with the tests of its file.  Results are appended to DIR/results.jsonl; a
second run with the same directory goes on where the first one ended.  Ends with a table by room and the changes that
survived.  Exit status 1 when less than 88 % of the changes that are not equivalent were caught.
"""

import argparse
import json
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutate.changes import Change
from tests.mutate.sample import PER_ROOM, ROOT, equivalent, sample
from tests.mutate.trial import take_baseline, try_change

WANTED = 0.88


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = make_parser().parse_args(arguments)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    known = equivalent()
    chosen = {room: sample(room, max(1, round(PER_ROOM[room] * options.scale))) for room in options.rooms}
    if options.only:
        chosen = {room: [c for c in changes if c.identity in options.only] for room, changes in chosen.items()}
    changes = [change for room in chosen.values() for change in room if change.identity not in known]
    if options.list:
        print(*changes, sep="\n")
        return 0
    results = read_results(out, options.again)
    waiting = [change for change in changes if change.identity not in results]
    try:
        run(waiting, out, options.jobs, results)
    except KeyboardInterrupt:
        print(f"interrupted; the same command goes on, with the results in {out}")
        return 130
    return report(chosen, known, results)


def make_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__.split("\n\n")[1])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutate", help="directory of copies and results")
    parser.add_argument("--rooms", nargs="+", choices=PER_ROOM, default=list(PER_ROOM), help="default: all")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many changes (default 1: 246)")
    parser.add_argument("--jobs", type=int, default=2, help="changes tried side by side (default 2)")
    parser.add_argument("--only", nargs="+", metavar="ID", help="try these changes of the sample")
    parser.add_argument("--again", action="store_true", help="try those that survived once more, with new tests")
    parser.add_argument("--list", action="store_true", help="print the changes and end")
    return parser


def read_results(out: Path, again: bool) -> dict[str, dict]:
    """The last result of every change by its identity; without those that survived if `again`."""
    path = out / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    results = {row["identity"]: row for row in map(json.loads, lines)}
    return {name: row for name, row in results.items() if not again or row["outcome"] != "survived"}


def run(changes: list[Change], out: Path, jobs: int, results: dict[str, dict]) -> None:
    """Try changes and append their results to the file and to `results`."""
    if not changes:
        return
    baseline = take_baseline(out, changes, jobs)
    for name in baseline.failing:
        print(f"left out, fails on unchanged code: {name}", flush=True)
    lock, numbers, done = threading.Lock(), list(range(jobs)), Counter()

    def try_one(change: Change) -> None:
        with lock:
            number = numbers.pop()
        began = time.monotonic()
        outcome, test = try_change(change, out, baseline, number)
        row = {"identity": change.identity, "outcome": outcome, "test": test, "change": str(change)}
        with lock:
            numbers.append(number)
            results[change.identity] = row
            with (out / "results.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(row | {"seconds": round(time.monotonic() - began, 1)}) + "\n")
            done["all"] += 1
            print(f"{done['all']}/{len(changes)} {outcome:8} {change}", flush=True)

    with ThreadPoolExecutor(jobs) as executor:
        list(executor.map(try_one, changes))


def report(chosen: dict[str, list[Change]], known: dict[str, str], results: dict[str, dict]) -> int:
    """Print the table and the survivors; the exit status."""
    print(f"{'room':10}{'changes':>9}{'equivalent':>12}{'caught':>8}{'survived':>10}{'share':>8}")
    total, survivors = Counter(), []
    for room, changes in chosen.items():
        count = Counter()
        for change in changes:
            outcome = "equivalent" if change.identity in known else results[change.identity]["outcome"]
            count["caught" if outcome == "hang" else outcome] += 1
            survivors += [change] * (outcome == "survived")
        total += count
        print(_row(room, count))
    print(_row("all", total))
    for change in survivors:
        print(f"survived: {change}")
    return 0 if total["caught"] >= WANTED * (total["caught"] + total["survived"]) else 1


def _row(name: str, count: Counter) -> str:
    tried = count["caught"] + count["survived"]
    share = f"{100 * count['caught'] / tried:.1f} %" if tried else "-"
    return f"{name:10}{count.total():9}{count['equivalent']:12}{count['caught']:8}{count['survived']:10}{share:>8}"


if __name__ == "__main__":
    sys.exit(main())
