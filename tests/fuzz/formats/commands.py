"""Whole commands and bundles: one damaged file in the small system that the tests of the commands use."""

import contextlib
import functools
import io
import json
import os
import random
import shutil
import zipfile
import zlib
from pathlib import Path

from decoder.recognizer import BundleParts, Calibration, Recognizer, add_calibration, pack
from decoder.recognizer.bundle import DESCRIPTION
from decoder.recognizer.description import CHECKSUM, dump
from decoder.recognizer.packing import _write_zip
from readers.errors import ConfigError
from recipes.cli.main import run
from tests.fuzz.format import Format, temporary_directory
from tests.fuzz.formats.graphs import sections
from tests.fuzz.formats.networks import header_change, node_change
from tests.fuzz.mutators import mutate_json, mutate_text
from tests.recipes.systems.small_system import DECODE, FIRST_OF_TEST, GRAPH, RATE, make_small_system

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


def bundle(rng: random.Random, directory: Path) -> bytes:
    root = system()
    parts = BundleParts(
        model=root / "model/net",
        graph=root / "graph/graph.dg",
        features=root / "hcopy.config",
        sample_rate=RATE,
        lm=root / "lm.arpa",
        dictionary=root / "dict",
        options={"acweight": 0.5, "beam": 20.0},
    )
    calibration = Calibration((0.0, 0.5, 1.0), (0.1, 0.4, 0.9), "beta", 1, 5, 4)
    add_calibration(pack(parts, directory / "a.argo"), calibration, directory / "b.argo")
    return (directory / "b.argo").read_bytes()


def description(content: bytes, rng: random.Random) -> bytes:
    """Change the description of a bundle and correct its checksum."""
    files = members(content)
    found = json.loads(files[DESCRIPTION])
    found.pop(CHECKSUM)
    changed = mutate_json(found, rng)
    try:
        return zipped(files, changed)
    except (AttributeError, TypeError, ValueError):  # cannot be written: infinite, or no object
        return content


def member(content: bytes, rng: random.Random) -> bytes:
    """Change a member of a bundle and correct all checksums."""
    files = members(content)
    name = rng.choice([name for name in files if name != DESCRIPTION])
    known = {
        ".json": json_text,
        ".dg": sections,
        ".mapped": sections,
        ".safetensors": rng.choice((node_change, header_change)),
    }
    change = known.get(Path(name).suffix, mutate_text)
    files[name] = change(files[name], rng)
    found = json.loads(files[DESCRIPTION])
    found.pop(CHECKSUM)
    entry = next(entry for entry in found["members"] if entry["name"] == name)
    entry |= {"size": len(files[name]), CHECKSUM: [zlib.crc32(files[name])] if files[name] else []}
    return zipped(files, found)


def json_text(content: bytes, rng: random.Random) -> bytes:
    """Change a value of JSON, or its text."""
    try:
        return json.dumps(mutate_json(json.loads(content), rng)).encode()
    except (TypeError, ValueError, RecursionError):  # cannot be read or written
        return mutate_text(content, rng)


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def zipped(files: dict[str, bytes], described: dict) -> bytes:
    with temporary_directory() as holder:
        directory = Path(holder) / "b"
        directory.mkdir()
        for name, content in (files | {DESCRIPTION: dump(described)}).items():
            (directory / name).write_bytes(content)
        _write_zip(Path(holder) / "b.argo", directory)
        return (Path(holder) / "b.argo").read_bytes()


def recognise(path: Path) -> None:
    """Recognise and align a recording with a bundle, whose checksums may be ignored."""
    recognizer = Recognizer.load(path)
    Recognizer.load(path, verify=False)
    recognizer.transcribe(system() / AUDIO)
    recognizer.align(system() / AUDIO, "AB C")


def original(name: str):
    return lambda rng, directory: (system() / name).read_bytes()


FORMATS = (
    Format("bundle", bundle, recognise, (description, member, member), True, ".argo"),
    *(
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
    ),
)
