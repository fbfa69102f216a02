"""Configurations, network descriptions and editing scripts, used as tests/languages does."""

import contextlib
from pathlib import Path

from tests.fuzz.format import Format
from tests.languages import examples, targets

LONGEST = 1 << 16  # a network of ten thousand statements rightly takes seconds


def of(texts: tuple[str, ...] | list[str], ending: str):
    """A seed function that chooses one of the examples, or one of the project's own files."""
    chosen = [*texts, *examples.of_project(ending)]
    return lambda rng, directory: rng.choice(chosen).encode()


def using(target):
    """Use the text of a file, if it is UTF-8, in the directory of the file."""

    def use(path: Path):
        text = path.read_bytes().decode("utf-8", "replace")
        with contextlib.chdir(path.parent):
            target(text)

    return use


def in_models(target):
    def use(path: Path):
        targets.make_files(path.parent)
        using(target)(path)

    return use


FORMATS = (
    Format("cntk configuration", of(examples.CONFIGS, ".cntk"), using(targets.read_configuration), most_bytes=LONGEST),
    Format("network description", of(examples.NDLS, ".ndl"), using(targets.build_description), most_bytes=LONGEST),
    Format("editing script", of(examples.MELS, ".mel"), in_models(targets.run_script), most_bytes=LONGEST),
)
