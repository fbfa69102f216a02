"""`argonaut import`."""

import json

import pytest

from readers.corpora import KINDS, import_corpus, read_corpus, write_corpus
from readers.dictionaries import read_any_dictionary
from recipes.cli.main import main
from tests.readers.corpora.conftest import audio, folder, kaldi, lhotse, table, tone  # noqa: F401  (fixtures)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "htk"])  # htk: own/test_alignments.py
def test_a_corpus_is_imported(kind, tmp_path, capsys, request):
    source = request.getfixturevalue(kind)
    assert main(["import", kind, str(source), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.endswith("utterances: 3 done, 0 skipped, 0 failed\n")
    assert read_corpus(tmp_path / "out") == import_corpus(kind, source)
    first = (tmp_path / "out/hcopy.list").read_text().splitlines()[0]
    assert first.endswith(f"/anna/anna-1.wav {tmp_path}/out/features/anna-1.htk")


def test_what_is_lost_is_named(folder, tmp_path, capsys):  # noqa: F811
    (folder / "bob/bob-1.wav").write_bytes(b"")
    assert main(["import", "folder", str(folder), "--out", str(tmp_path / "out"), "--case", "upper"]) == 1
    shown = capsys.readouterr()
    assert shown.err == f"failed: bob-1: {folder}/bob/bob-1.wav: empty file; expected audio\n"
    assert shown.out.splitlines()[-1] == "utterances: 2 done, 0 skipped, 1 failed"
    assert read_corpus(tmp_path / "out").utterances[0].words == ("ONE", "TWO")


def test_nothing_of_an_earlier_import_remains(folder, tmp_path):  # noqa: F811
    out = tmp_path / "out"
    (tmp_path / "words.dict").write_text("one W AH N\n")
    command = ["import", "folder", str(folder), "--out", str(out)]
    assert main([*command, "--dict", str(tmp_path / "words.dict")]) == 0
    assert (out / "unknown.words").exists()
    assert main(command) == 0
    assert not (out / "unknown.words").exists()
    for path in folder.rglob("*.wav"):
        path.write_bytes(b"")
    assert main(command) == 2
    assert sorted(path.name for path in out.iterdir()) == ["report.json", "report.txt"]


def test_an_interrupted_import_leaves_no_corpus(folder, tmp_path, monkeypatch):  # noqa: F811
    def interrupted(*_):
        raise KeyboardInterrupt

    assert main(["import", "folder", str(folder), "--out", str(tmp_path / "out")]) == 0
    corpus = read_corpus(tmp_path / "out")
    monkeypatch.setattr("readers.corpora.directory.write_mlf", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_corpus(corpus, tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        read_corpus(tmp_path / "out")


def test_nothing_is_written_from_a_broken_manifest(kaldi, tmp_path, capsys):  # noqa: F811
    (kaldi / "utt2spk").unlink()
    assert main(["import", "kaldi", str(kaldi), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {kaldi}/utt2spk: missing; expected")
    assert not (tmp_path / "out").exists()


def test_the_report(folder, tmp_path, capsys):  # noqa: F811
    (tmp_path / "words.dict").write_text("ONE W AH N\nTWO T UW\nTHREE TH R IY\n")
    options = ["--dict", str(tmp_path / "words.dict"), "--out", str(tmp_path / "out")]
    assert main(["import", "folder", str(folder), *options]) == 0
    assert capsys.readouterr().out == (
        "audio: 1.2 s of 2 speakers\nsample rates: 8000 Hz (3 files)\nchannels: 1 (3 files)\nwords: 4, 4 different\n"
        "without a pronunciation: 4 words, 4 times\n"
        "case: most of these are in the dictionary in another case; use --case upper\n"
        "utterances: 3 done, 0 skipped, 0 failed\n"
    )
    assert (tmp_path / "out/unknown.words").read_text() == "one 1\ntwo 1\nthree 1\ndon't 1\n"
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert (report["better_case"], report["lost"], report["total"]["words"]) == ("upper", [], 4)
    lines = (tmp_path / "out/report.txt").read_text().splitlines()
    assert lines[0] == "# utterances: 3 done, 0 skipped, 0 failed"
    assert "# speaker anna: 2 utterances, 0.8 s, 3 words" in lines
    assert main(["import", "folder", str(folder), *options, "--case", "upper"]) == 0
    assert (tmp_path / "out/unknown.words").read_text() == "DON'T 1\n"


def test_punctuation_of_the_dictionary_is_kept(folder, tmp_path):  # noqa: F811
    (folder / "anna/anna-1.lab").write_text("Mr. one.")
    (tmp_path / "words.dict").write_text("Mr. M IH S T ER\none W AH N\n")
    options = ["--dict", str(tmp_path / "words.dict"), "--out", str(tmp_path / "out")]
    assert main(["import", "folder", str(folder), *options]) == 0
    assert read_corpus(tmp_path / "out").utterances[0].words == ("Mr.", "one")


def test_features_of_an_imported_corpus(tmp_path, capsys):
    tone(tmp_path / "a.wav", 8000, channels=2)
    (tmp_path / "t.csv").write_text(
        "path,text,speaker,start,end,name\na.wav,one,ann,0,0.5,u1\na.wav,two,ann,0.5,1,u2\n"
    )
    assert main(["import", "table", str(tmp_path / "t.csv"), "--out", str(tmp_path / "out")]) == 0
    (tmp_path / "config").write_text("TARGETKIND = FBANK\nTARGETRATE = 100000\nWINDOWSIZE = 250000\nNUMCHANS = 10\n")
    command = ["hcopy", "-C", str(tmp_path / "config"), "-S", str(tmp_path / "out/hcopy.list"), "--channel", "0"]
    assert main([*command, "--scp", str(tmp_path / "features.scp")]) == 0
    assert (tmp_path / "features.scp").read_text() == "".join(
        f"{name}.htk={tmp_path}/out/features/{name}.htk[0,47]\n" for name in ("u1", "u2")
    )


def test_headers_alone(folder, tmp_path, capsys):  # noqa: F811
    path = folder / "bob/bob-1.flac"
    tone(path, 4000)
    (folder / "bob/bob-1.wav").unlink()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])  # its header is complete
    command = ["import", "folder", str(folder), "--out", str(tmp_path / "out")]
    assert main(command) == 1
    assert capsys.readouterr().out.endswith("utterances: 2 done, 0 skipped, 1 failed\n")
    assert main([*command, "--headers"]) == 0
    assert capsys.readouterr().out.endswith("utterances: 3 done, 0 skipped, 0 failed\n")


def test_inputs_are_not_overwritten(table, tmp_path, capsys):  # noqa: F811
    table.rename(tmp_path / "report.txt")
    assert main(["import", "table", str(tmp_path / "report.txt"), "--out", str(tmp_path)]) == 2
    assert "is an input and would be overwritten" in capsys.readouterr().err


@pytest.mark.slow
def test_guessed_pronunciations(folder, tmp_path, capsys):  # noqa: F811
    from decoder.g2p import G2P
    from readers.htk.dictionary import Pronunciation

    letters = "abehnortw"
    entries = [Pronunciation(a + b, None, None, (a.upper(), b.upper())) for a in letters for b in letters]
    G2P.train(entries, 2).save(tmp_path / "toy.g2p")
    (tmp_path / "words.dict").write_text("one W AH N\n")
    options = [
        "--dict",
        str(tmp_path / "words.dict"),
        "--g2p",
        str(tmp_path / "toy.g2p"),
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(["import", "folder", str(folder), *options]) == 0
    shown = capsys.readouterr().out
    assert f"pronunciations: 2 words guessed, see {tmp_path}/out/guessed.dict" in shown
    assert "not guessed: 1 word, such as don't: letters" in shown
    found = read_any_dictionary(tmp_path / "out/guessed.dict")
    assert {entry.word: entry.phones for entry in found} == {"two": tuple("TWO"), "three": tuple("THREE")}
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert sorted(report["guessed"]) == ["three", "two"]
    assert list(report["unknown"]) == ["two", "three", "don't"]
    correct = "two 1.0 T UW\n"  # by hand
    (tmp_path / "out/guessed.dict").write_text(correct)
    assert main(["import", "folder", str(folder), *options]) == 0
    found = read_any_dictionary(tmp_path / "out/guessed.dict")
    assert {entry.word: entry.phones for entry in found} == {"two": ("T", "UW"), "three": tuple("THREE")}
    kept = (tmp_path / "out/guessed.dict").read_bytes()
    assert main(["import", "folder", str(folder), *options]) == 0
    assert main(["import", "folder", str(folder), *options[:2], *options[4:]]) == 0
    assert (tmp_path / "out/guessed.dict").read_bytes() == kept
    capsys.readouterr()
    assert main(["import", "folder", str(folder), *options[2:]]) == 2
    assert "--g2p is given without --dict; expected both" in capsys.readouterr().err
