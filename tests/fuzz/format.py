"""What the fuzzer knows of a file format, and the making of its damaged files."""

import functools
import os
import random
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.mutators import LARGEST, Mutator, mutate_bytes, mutate_text, recompressed

MUTATED, PACKED = 0.97, 0.04  # shares of the files that are damaged, and of texts that are compressed
FOLDER_VARIABLE = "ARGONAUT_FUZZ_FOLDER"
NUM_SEEDS = 40  # valid files of each format


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    name : str
    seed : callable
        Given random numbers and an empty directory, returns the bytes of a valid file.
    use : callable
        Reads a file through its public interface and uses what it read.
    mutators : tuple of callables
        Changes that know the structure of the format; they come before the blind ones.
    binary : bool
        Whether blind changes are those of binary files.
    suffix : str
        End of the file's name, where a reader looks at it.
    most_bytes : int
        Size at which inputs are cut off.
    """

    name: str
    seed: Callable[[random.Random, Path], bytes]
    use: Callable[[Path], object]
    mutators: tuple[Mutator, ...] = ()
    binary: bool = False
    suffix: str = ""
    most_bytes: int = LARGEST


def file_name(form: Format) -> str:
    """The name of a format in the names of files and on the command line."""
    return re.sub(r"\W+", "_", form.name)


def make(form: Format, number: int, directory: Path) -> Path:
    """Write input `number` of a format, which depends on these two alone, into an emptied directory."""
    rng = random.Random(f"{form.name} {number}")
    content = _seed(form, rng.randrange(NUM_SEEDS))
    if rng.random() < MUTATED:
        known = form.mutators and rng.random() < 0.7
        blind = mutate_bytes if form.binary else mutate_text
        content = (rng.choice(form.mutators) if known else blind)(content, rng)
    content = content[: form.most_bytes]
    if not form.binary and rng.random() < PACKED:
        content = recompressed(content, rng)
    return _put(form, content, directory)


def make_seed(form: Format, number: int, directory: Path) -> Path:
    """Write a valid file of a format into an emptied directory."""
    return _put(form, _seed(form, number % NUM_SEEDS), directory)


def _put(form: Format, content: bytes, directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    path = directory / f"input{form.suffix}"
    path.write_bytes(content)
    return path


@functools.cache
def _seed(form: Format, number: int) -> bytes:
    with temporary_directory() as directory:
        return form.seed(random.Random(f"{form.name} {number}"), Path(directory))


def temporary_directory() -> tempfile.TemporaryDirectory:
    """A directory in the one that FOLDER_VARIABLE names; by default in memory, if the system has that."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="fuzz-", dir=os.environ.get(FOLDER_VARIABLE, memory))


def text(*seeds: str) -> Callable[[random.Random, Path], bytes]:
    """A seed function that chooses one of some texts."""
    return lambda rng, directory: rng.choice(seeds).encode()


def written(write: Callable[[Path, random.Random], object]) -> Callable[[random.Random, Path], bytes]:
    """A seed function that calls a writer of the project with a path and random numbers."""

    def seed(rng, directory):
        write(directory / "seed", rng)
        return (directory / "seed").read_bytes()

    return seed
