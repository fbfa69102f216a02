"""Three small lattices in a directory, and `argonaut lattice` run on them."""

from readers.htk.mlf import Label, write_mlf
from readers.htk.slf import read_slf, write_slf
from recipes.cli.main import main
from tests.decoder.lattices.small_lattices import random_lattice

NAMES = ["u1", "u2", "u3"]


def make_lattices(tmp_path):
    """Three lattices, their index and a reference."""
    for number, name in enumerate(NAMES, 1):
        write_slf(tmp_path / f"test{number}.lat", random_lattice(number, utterance=name), 17)
    (tmp_path / "test.index").write_text("".join(f"{k}\t{name}\n" for k, name in enumerate(NAMES, 1)))
    write_mlf(tmp_path / "ref.mlf", ((f"*/{name}.lab", [Label(None, None, word) for word in "abca"]) for name in NAMES))
    return tmp_path


def run(place, capsys, action, *arguments):
    code = main(["lattice", action, "--lattices", str(place / "test.index"), *map(str, arguments)])
    return code, capsys.readouterr()


def lattices(place):
    return {name: read_slf(place / f"test{k}.lat") for k, name in enumerate(NAMES, 1)}
