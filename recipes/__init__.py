"""What a user runs: the command lines (cli/), the server (serve/) and a catalogue of recipes, one folder for each.

No other package imports from this one.  Open an4/recipe.py first: a recipe is a list of stages, most of which run one
command each.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("readers", "features", "acoustic", "decoder", "recipes")


def intruder(root: Path) -> str:
    """Describe the first foreign package that hides one of ours on Python's path; return "" if there is none.

    The package names are common words, so a directory of the same name may come first.  Only the standard library is
    used here, because `readers` itself may be the foreign package.
    """
    for package in PACKAGES:
        spec = find_spec(package)
        origin = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if origin != root / package / "__init__.py":
            intruding = origin or "a folder without __init__.py"
            return (
                f"package {package!r}: {intruding} comes first on Python's path; expected {root / package}; "
                "change to another directory, or take it off PYTHONPATH"
            )
    return ""


if fault := intruder(Path(__file__).resolve().parents[1]):
    sys.stderr.write(f"error: {fault}\n")
    raise SystemExit(2)
