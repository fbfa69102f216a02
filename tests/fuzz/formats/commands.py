"""Whole commands, with one damaged file in the small system that the tests of the commands use."""

import contextlib
import functools
import io
import os
import shutil
from pathlib import Path

from readers.errors import ConfigError
from recipes.cli.main import run
from tests.fuzz.format import Format, temporary_directory
from tests.recipes.systems.small_system import DECODE, FIRST_OF_TEST, GRAPH, make_small_system

FEATURES, AUDIO = f"feat/{FIRST_OF_TEST}.fb", f"audio/{FIRST_OF_TEST}.wav"
# Command -> its arguments, and the files that are damaged, one at a time.
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "argon": (
        ("argon", *DECODE, "-infiles", "test.scp", "-outmlf", "hyp.mlf", "-lattice-prefix", "new/l"),
        ("model/net", "graph/graph.dg", "graph/cntkmap", "lm.arpa", "test.scp", FEATURES),
    ),
    "argon audio": (
        ("argon", *DECODE, "--features", "hcopy.config", "-infiles", "audio.list", "-outmlf", "hyp.mlf"),
        ("hcopy.config", AUDIO),
    ),
    "graph": (("graph", *GRAPH, "--out", "new"), ("states.list", "train.mlf", "dict", "lm.arpa")),
    "hcopy": (("hcopy", "-C", "hcopy.config", "-S", "hcopy.list", "-j", "1"), ("hcopy.list",)),
    "lm estimate": (
        ("lm", "estimate", "--text", "text", "--order", "2", "--method", "wb", "-o", "new.arpa"),
        ("text",),
    ),
    "score": (("score", "words.mlf", "hypothesis.mlf"), ("hypothesis.mlf",)),
    "validate": (("validate", "net.cntk"), ("net.cntk", "train.scp")),
}
NUM_FILES = 3  # of each list
LARGEST = (1 << 18, 1 << 14)  # bytes of a damaged file, and of one that `validate` reads several times
BINARY = ("net", ".dg", ".fb", ".wav")


@functools.cache
def system() -> Path:
    """The small system, made once in a process, with short lists."""
    holder = temporary_directory()
    root = Path(holder.name)
    _KEPT.append(holder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        make_small_system(root)
    (root / "hypothesis.mlf").write_bytes((root / "words.mlf").read_bytes())
    for name in ("train.scp", "test.scp", "audio.list", "hcopy.list"):
        lines = (root / name).read_text().splitlines(keepends=True)
        (root / name).write_text("".join(lines[:NUM_FILES]))
    return root


_KEPT: list = []


def using(arguments: tuple[str, ...], damaged: str):
    """Run a command in a copy of the system in which one file is another."""

    def use(path: Path) -> None:
        root = path.parent / "system"
        shutil.copytree(system(), root, copy_function=_link)
        (root / damaged).unlink()  # it is a link to the original
        (root / damaged).write_bytes(path.read_bytes())
        quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
        with contextlib.chdir(root), quiet[0], quiet[1]:
            status = run(list(arguments))
        if status > 1:
            raise ConfigError(f"exit status {status}")

    return use


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)


def original(name: str):
    return lambda rng, directory: (system() / name).read_bytes()


FORMATS = tuple(
    Format(
        f"{title}: {name}",
        original(name),
        using(arguments, name),
        (),
        name.endswith(BINARY),
        "",
        LARGEST[title == "validate"],
    )
    for title, (arguments, names) in COMMANDS.items()
    for name in names
)
