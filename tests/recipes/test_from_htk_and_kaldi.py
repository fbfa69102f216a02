"""docs/from_htk_and_kaldi.md: its commands run on a data directory of Kaldi's form, its options are there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from readers.dictionary import read_dictionary
from readers.errors import FormatError
from recipes.cli.argon_options import canonical, make_parser
from recipes.cli.main import COMMANDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "from_htk_and_kaldi.md").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a Unix shell")
def test_the_commands_run(user):
    (code,) = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    user.write("data/wav.scp", "".join(f"u{i} audio/utt2{i}.wav\n" for i in (4, 5)))
    user.write("data/text", "u4 one two\nu5 two\n")
    user.write("hypotheses.text", "u5 two\nu4 one\n")
    user.write("fbank.config", (user.root / "hcopy.config").read_text())
    root = Path(__file__).resolve().parents[2]
    program = f'argonaut() {{ PYTHONPATH="{root}" "{sys.executable}" -m recipes.cli.main "$@"; }}\nset -e\n'
    done = subprocess.run(["bash", "-c", program + code], capture_output=True, text=True, cwd=user.root, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "WER 33.3% (2 utterances, 3 words)"
    assert "files: 2 done, 0 skipped, 0 failed" in done.stdout
    listed = (user.root / "feats.scp").read_text().splitlines()
    assert [line.split("=")[0] for line in listed] == ["u4.fbank", "u5.fbank"]


def test_kaldis_lexicons_are_dictionaries(tmp_path):
    lexicon = tmp_path / "lexiconp.txt"
    lexicon.write_text("!SIL 1.0 SIL\nA 0.5 AH\nA 1.0 EY\n\\'BOUT 1.0 B AW T\n<s> [] SIL\n</s> [] SIL\n")
    assert [(entry.word, entry.phones) for entry in read_dictionary(lexicon)][:4] == [
        ("!SIL", ("SIL",)), ("A", ("AH",)), ("A", ("EY",)), ("'BOUT", ("B", "AW", "T")),
    ]  # fmt: skip
    lexicon.write_text("'BOUT 1.0 B AW T\n")
    with pytest.raises(FormatError, match=r"expected another ', or \\' where a name begins with it"):
        read_dictionary(lexicon)


def test_the_options_and_commands_are_there():
    parser = make_parser("")
    for flag in ("-acweight", "-beam", "-max-tokens", "--lm-scale", "--word-penalty", "--lattice-beam", "-alignmlf"):
        assert f"`{flag}" in PAGE or f" {flag}" in PAGE
        assert canonical([flag], parser)[0] in parser._option_string_actions
    assert set(re.findall(r"`argonaut ([a-z]+)", PAGE)) <= set(COMMANDS)
