"""Which changes are tried: a sample of every room, spread over its files, its functions and the kinds of change."""

from collections import Counter, defaultdict
from pathlib import Path

from tests.mutate.changes import KINDS, Change, changes_of

ROOT = Path(__file__).parents[2]
PER_ROOM = {"readers": 57, "features": 18, "acoustic": 66, "decoder": 66, "recipes": 39}
PER_FILE = 3
# Pictures, progress displays and generated corpora, which are looked at rather than tested, and recipes whose tests
# train networks.
LEFT_OUT = (
    "acoustic/export/dot.py",
    "acoustic/export/layered_drawing.py",
    "acoustic/export/network_plot.py",
    "acoustic/training/reporting/",
    "recipes/cli/console.py",
    "recipes/language_model/",
    "recipes/pictures/",
    "recipes/reversal/",
    "recipes/simple2d/",
    "recipes/timit/synthesis/",
    "recipes/understanding/",
)
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def sources(room: str, root: Path = ROOT) -> list[str]:
    """The source files of a room, relative to the checkout."""
    paths = (path.relative_to(root).as_posix() for path in sorted((root / room).rglob("*.py")))
    return [path for path in paths if not path.endswith("__init__.py") and not path.startswith(LEFT_OUT)]


def sample(room: str, count: int, root: Path = ROOT) -> list[Change]:
    """`count` changes of a room: equally many of each kind, one of a function, few of a file.

    The choice goes by the changes' identities, so a change of one file leaves the choice in other files nearly as it
    was.
    """
    changes = [change for path in sources(room, root) for change in changes_of(path, (root / path).read_bytes())]
    by_kind: dict[str, list[Change]] = defaultdict(list)
    for change in sorted(changes, key=lambda change: change.identity, reverse=True):
        by_kind[change.kind].append(change)
    chosen: list[Change] = []
    files, functions = Counter(), set()
    while len(chosen) < count and any(by_kind.values()):
        for kind in KINDS:
            while by_kind[kind] and len(chosen) < count:
                change = by_kind[kind].pop()
                if files[change.path] < PER_FILE and (change.path, change.function) not in functions:
                    files[change.path] += 1
                    functions.add((change.path, change.function))
                    chosen.append(change)
                    break
    return sorted(chosen, key=lambda change: (change.path, change.line))


def equivalent(path: Path = EQUIVALENT) -> dict[str, str]:
    """The reason why a change changes nothing, by its identity; a line: identity, change, two bars, reason."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split(" || ") for line in lines if line.strip() and not line.startswith("#")]
    return {what.split()[0]: reason for what, reason in rows}
