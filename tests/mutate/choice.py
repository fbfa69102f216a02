"""Chooses the tests that should notice a change of a source file."""

import re
from functools import cache
from pathlib import PurePosixPath

from tests.mutate.sample import ROOT

ALSO = {  # beginning of a path: more tests that exercise the file
    "recipes/cli/argon/": ("tests/recipes/cli/argon",),
    "decoder/recognizer/jobs/decoding/": ("tests/recipes/cli/argon",),
    "recipes/cli/cntk.py": ("tests/recipes/cli/cntk",),
    "recipes/file_kinds/": ("tests/recipes/cli/test_info.py", "tests/recipes/cli/test_info_outputs.py"),
    "recipes/cli/": ("tests/recipes/cli/test_every_command.py", "tests/recipes/cli/test_broken_inputs.py"),
    "decoder/search/": ("tests/decoder/search",),
    "decoder/storage/array_checks.py": ("tests/decoder/graph", "tests/decoder/lm/test_mapped_model.py"),
    "decoder/storage/mapped_file.py": ("tests/decoder/graph", "tests/decoder/lm/test_mapped_model.py"),
    "decoder/alignment/": ("tests/recipes/cli/argon/test_align.py",),
    "decoder/lattices/": ("tests/recipes/cli/test_lattice.py",),
    "decoder/scoring/": ("tests/recipes/cli/test_score.py",),
    "decoder/tying/": ("tests/recipes/cli/test_tie.py",),
    "decoder/lm/": ("tests/decoder/search/test_lm_ahead.py", "tests/decoder/search/test_decoder.py"),
    "acoustic/descriptions/": ("tests/acoustic/descriptions",),
    "acoustic/nodes/": (
        *("tests/acoustic/nodes", "tests/acoustic/engine/test_forward_mode.py"),
        "tests/acoustic/descriptions/ndl/test_open_sizes.py",
    ),
    "acoustic/nodes/class_": ("tests/acoustic/kernels/test_word.py",),
    "acoustic/kernels/": ("tests/acoustic/kernels", "tests/acoustic/nodes/test_every_node.py"),
    "acoustic/recurrence/": ("tests/acoustic/recurrence",),
    "acoustic/runtime/": ("tests/acoustic/runtime", "tests/acoustic/engine/test_options.py"),
    "acoustic/engine/": ("tests/acoustic/engine",),
    "acoustic/training/rules/": ("tests/acoustic/training/test_update.py",),
    "acoustic/training/trainer.py": ("tests/acoustic/training/control", "tests/acoustic/training/state"),
    "acoustic/training/parallel/": ("tests/recipes/cli/cntk/test_cntk_parallel.py",),
    "acoustic/actions/": (
        *("tests/recipes/cli/cntk", "tests/recipes/cli/test_validate.py"),
        "tests/acoustic/training/procedures",
    ),
    "readers/dictionaries/": ("tests/readers/htk/test_dictionary.py", "tests/recipes/cli/test_graph_lm.py"),
    "readers/sources/": ("tests/readers/sources",),
}
MOST_IMPORTERS = 8  # a module that more test files import is tested by those of its own folder


@cache
def _texts() -> dict[str, str]:
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def chosen_tests(path: str) -> list[str]:
    """Test files of a source file: those with its name, those that import it, those of its folder, those listed."""
    texts, place = _texts(), PurePosixPath(path)
    folder = PurePosixPath("tests", place.parent)
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    inside = [name for name in texts if PurePosixPath(name).parent == folder]
    named = [name for name in texts if PurePosixPath(name).stem.startswith(f"test_{place.stem}")]
    module = re.escape(".".join(place.with_suffix("").parts))
    imports = re.compile(rf"^\s*(from {module} import|import {module}\b)", re.MULTILINE)
    importing = [name for name, text in texts.items() if imports.search(text)]
    if len(importing) > MOST_IMPORTERS:
        importing = [name for name in importing if PurePosixPath(name).parent == folder]
    listed = [
        name
        for beginning, also in ALSO.items()
        if path.startswith(beginning)
        for name in texts
        if name.startswith(tuple(place if place.endswith(".py") else f"{place}/" for place in also))
    ]
    near = [name for name in named if name in importing or name in inside or name in listed]
    return list(dict.fromkeys([*near, *importing, *inside, *listed]))
