"""What a user runs: the command lines (cli/) and a folder for each recipe.

Nothing is above this room.  Open an4/run.py first: a recipe is a list of stages, most of them commands.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

ROOMS = ("readers", "features", "acoustic", "decoder", "recipes")


def intruder(root: Path) -> str:
    """What stands on Python's path before a package of ours, whose names are common words; "" where nothing does.

    Only the standard library is used here: `readers` itself may be foreign.
    """
    for room in ROOMS:
        spec = find_spec(room)
        found = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if found != root / room / "__init__.py":
            there = found or "a folder without __init__.py"
            return (
                f"package {room!r}: {there} comes first on Python's path; expected {root / room}; "
                "leave its directory, or take it off PYTHONPATH"
            )
    return ""


if fault := intruder(Path(__file__).resolve().parents[1]):
    sys.stderr.write(f"error: {fault}\n")
    raise SystemExit(2)
