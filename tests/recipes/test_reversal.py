"""The recipe of the encoder and decoder: its strings, its files, the whole of it with few pairs and small networks."""

import json
import re
from pathlib import Path

import pytest

from readers.errors import FormatError
from recipes.cli.main import main
from recipes.reversal import data
from recipes.reversal.run import CONFIG
from recipes.reversal.score import score
from tests.docs.pages import page_text

pytestmark = pytest.mark.slow


def test_strings_are_reversed_and_no_part_has_one_of_another():
    parts = data.reversals(3)
    seen = [{" ".join(source) for source, _ in parts[part]} for part in data.PARTS]
    assert [len(one) for one in seen] == [len(parts[part]) for part in data.PARTS]
    assert len(seen[0] | seen[1] | seen[2]) == sum(map(len, seen))
    for part, pairs in parts.items():
        assert all(target == source[::-1] for source, target in pairs)
        lengths = {len(source) for source, _ in pairs}
        assert lengths == set(range(1, 9)), part
    assert len(seen[0] | seen[1] | seen[2]) == 10 + 100 + 1000 + 5 * data.MAX_STRINGS
    again = data.reversals(3)
    assert again == parts
    assert data.reversals(4) != parts


def write_user_pairs(directory: Path) -> None:
    """Words and how they might be spoken."""
    directory.mkdir()
    for part, words in (("train", "abba cab bad dab add a b"), ("dev", "bad"), ("test", "dada cede")):
        sources = [" ".join(word) for word in words.split()]
        targets = [" ".join(letter.upper() + "0" for letter in word) for word in words.split()]
        (directory / f"{part}.source").write_text("\n".join(sources) + "\n")
        (directory / f"{part}.target").write_text("\n".join(targets) + "\n")


def test_files_hold_pairs_and_the_words_of_both_sides(tmp_path):
    write_user_pairs(tmp_path / "mine")
    data.write_pairs(data.read_pairs(tmp_path / "mine"), tmp_path / "data")
    assert (tmp_path / "data" / "source.words").read_text().split() == ["<s>", "</s>", "<unk>", "a", "b", "c", "d"]
    assert (tmp_path / "data" / "target.words").read_text().split()[3:] == ["A0", "B0", "C0", "D0"]
    assert (tmp_path / "data" / "train.target").read_text().splitlines()[1] == "C0 A0 B0"


def test_files_that_do_not_fit_are_refused(tmp_path, capsys):
    write_user_pairs(tmp_path / "mine")
    (tmp_path / "mine" / "dev.target").write_text("A0\nB0\n")
    with pytest.raises(FormatError, match=r"dev.target: 2 lines; expected 1, as in dev.source"):
        data.read_pairs(tmp_path / "mine")
    assert main(["recipe", "reversal", "--data", str(tmp_path / "mine"), "--out", str(tmp_path / "out")]) == 2
    assert "dev.target: 2 lines" in capsys.readouterr().err
    (tmp_path / "mine" / "dev.target").write_text("\n")
    with pytest.raises(FormatError, match=r"dev.source: no sequence"):
        data.read_pairs(tmp_path / "mine")


def test_score_counts_by_length(tmp_path):
    for name, text in (("s", "a b\na\nb a\n"), ("t", "b a\na\na b\n"), ("o", "b a\n\na a\n")):
        (tmp_path / name).write_text(text)
    lines = list(score(*(tmp_path / name for name in "sto")).lines())
    assert lines[:2] == ["length 1: 0 of 1", "length 2: 1 of 2"]
    assert lines[2] == "exact 33.3% (test, 3 sequences, 5 tokens, 40.0% of them wrong)"
    (tmp_path / "o").write_text("b a\n")
    with pytest.raises(FormatError, match="1 lines, for 3 sources"):
        score(*(tmp_path / name for name in "sto"))


SMALL = ("--set", "HiddenDim=12", "--set", "Train=[SGD=[maxEpochs=2]]")


def test_recipe_goes_from_pairs_to_a_score_and_resumes(tmp_path, capsys):
    write_user_pairs(tmp_path / "mine")
    arguments = ["recipe", "reversal", "--data", str(tmp_path / "mine"), "--out", str(tmp_path / "out"), *SMALL]
    assert main(arguments) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith("exact ")
    assert shown[-1].endswith("of them wrong)")
    assert "(test, 2 sequences, 8 tokens, " in shown[-1]
    assert (tmp_path / "out" / "score.txt").read_text().splitlines()[-1] == shown[-1]
    assert len((tmp_path / "out" / "decoded" / "test.target").read_text().splitlines()) == 2
    assert json.loads((tmp_path / "out" / "stages" / "train.done").read_text())["lost_something"] is False
    assert main(arguments) == 0
    again = capsys.readouterr().out.splitlines()
    assert sum("done before" in line for line in again) == 4
    assert again[-1] == shown[-1]

    settings = [f"DataDir={tmp_path / 'out' / 'data'}", f"ExpDir={tmp_path / 'out'}", "SourceWords=7"]
    configuration = ["validate", str(CONFIG / "reversal.cntk"), *settings]
    assert main([*configuration, "TargetWords=7", "HiddenDim=12"]) == 0
    assert capsys.readouterr().out == "0 faults; checked 2 commands, 20 utterances\n"
    assert main([*configuration, "TargetWords=8", "HiddenDim=12"]) == 1
    faults = capsys.readouterr().out.splitlines()
    assert any("Train.decoderReader: features has dimension 7; expected 8" in line for line in faults)


def test_what_the_documentation_shows_works(tmp_path, monkeypatch, capsys):
    text = page_text("encoder_decoder")
    blocks = re.findall(r"```(?:cntk|ndl)\n(.*?)```", text, re.DOTALL)
    train, networks, builders, decode = blocks
    monkeypatch.chdir(tmp_path)
    Path("doc.cntk").write_text("deviceId=-1\n" + train + networks + decode)
    pairs = data.reversals(0)["test"][:20]
    data.write_pairs(dict.fromkeys(data.PARTS, pairs), tmp_path)
    assert main(["cntk", "configFile=doc.cntk", "command=Train:Decode"]) == 0
    assert "Decoded 20 sequences: exact = " in capsys.readouterr().err
    assert len(Path("out/test.target").read_text().splitlines()) == 20
    first, last = train.index("  EncoderNetworkBuilder"), train.index("  SGD=")
    small = re.sub(r"\b[45]000\b", "13", builders).replace(":100:200", ":5:6")
    Path("built.cntk").write_text(
        "deviceId=-1\n" + train[:first] + small + train[last:].replace("exp/pair", "exp/built")
    )
    assert main(["cntk", "configFile=built.cntk", "command=Train"]) == 0
    assert Path("exp/built").is_file()
