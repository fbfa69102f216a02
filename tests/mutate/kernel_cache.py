"""Which compiled kernels a change reaches.

A cached kernel holds the machine code of the kernels that it calls and the values of global names, but numba compares
only the time and size of its own file.  After a change of `token_store.py`, the cached kernels of `advance.py` would
run the old code.
"""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.mutate.sample import PER_ROOM


@cache
def _imports(root: Path) -> dict[str, dict[str, set[str]]]:
    """Source file -> file that it imports -> names that it imports from there."""
    found: dict[str, dict[str, set[str]]] = {}
    for room in PER_ROOM:
        for path in (root / room).rglob("*.py"):
            imports = found[path.relative_to(root).as_posix()] = defaultdict(set)
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    module = node.module.replace(".", "/")
                    for alias in node.names:
                        inside = f"{module}/{alias.name}.py"
                        file = inside if (root / inside).is_file() else f"{module}.py"
                        if (root / file).is_file():
                            imports[file].add(alias.name)
    return found


@cache
def _kernel_files(root: Path) -> frozenset[str]:
    return frozenset(path for path in _imports(root) if "njit" in (root / path).read_text(encoding="utf-8"))


def reached_kernels(path: str, root: Path) -> set[str]:
    """The files whose compiled kernels may contain code or constants of `path`, itself included."""
    reached, waiting = {path}, [path]
    while waiting:
        changed = waiting.pop()
        for importer, imports in _imports(root).items():
            names = imports.get(changed, ())
            if importer in reached or not names:
                continue
            if importer in _kernel_files(root) or any(name.isupper() for name in names):
                reached.add(importer)
                waiting.append(importer)
    return reached & _kernel_files(root)


def forget_kernels(path: str, root: Path, trial: Path) -> bool:
    """Delete the cached kernels of a copy that a change of `path` reaches; whether there were any."""
    cached = []
    for file in reached_kernels(path, root):
        place = trial / file
        cached += place.parent.joinpath("__pycache__").glob(f"{place.stem}.*.nb[ic]")
    for kernel in cached:
        kernel.unlink()
    return bool(cached)
