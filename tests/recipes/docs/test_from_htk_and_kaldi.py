"""from_htk_and_kaldi.md: its options and commands are there, and files of HTK and Kaldi are read as it says."""

import re
from pathlib import Path

from readers.dictionaries import read_any_dictionary
from readers.htk.slf import write_slf
from readers.results.nbest import read_nbest
from recipes.cli.argon.command import make_parser
from recipes.cli.argon.parser import canonical
from recipes.cli.main import COMMANDS, main
from tests.decoder.lattices.small_lattices import random_lattice
from tests.docs.pages import page_text

PAGE = page_text("from_htk_and_kaldi")


def test_kaldis_lexicons_are_dictionaries(tmp_path):
    lexicon = tmp_path / "lexiconp.txt"
    lexicon.write_text("!SIL 1.0 SIL\nA 0.5 AH\nA 1.0 EY\n'BOUT 1.0 B AW T\n")
    assert [(entry.word, entry.phones) for entry in read_any_dictionary(lexicon)] == [
        ("!SIL", ("SIL",)), ("A", ("AH",)), ("A", ("EY",)), ("'BOUT", ("B", "AW", "T")),
    ]  # fmt: skip


def test_the_options_and_commands_are_there():
    parser = make_parser()
    for flag in ("-acweight", "-beam", "-max-tokens", "--lm-scale", "--word-penalty", "--lattice-beam", "-alignmlf"):
        assert f"`{flag}" in PAGE or f" {flag}" in PAGE
        assert canonical([flag])[0] in parser._option_string_actions
    assert set(re.findall(r"`argonaut ([a-z0-9]+)", PAGE)) <= set(COMMANDS)


def test_lattices_of_htk_are_read_as_they_stand(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    Path("htk").mkdir()
    for number, name in enumerate(("u4", "u5")):
        write_slf(f"htk/{name}.lat", random_lattice(number))
    for line in re.findall(r"^argonaut .*", code, re.MULTILINE):
        assert main(line.split()[1:]) == 0
        assert "lattices: 2 done, 0 skipped, 0 failed" in capsys.readouterr().out
    assert set(read_nbest("lists.nbest")) == {"u4", "u5"}
