"""`argonaut import`."""

import pytest

from readers.corpora import KINDS, import_corpus, read_corpus
from recipes.cli.main import main
from tests.readers.corpora.conftest import audio, folder, kaldi, lhotse, table  # noqa: F401  (fixtures)


@pytest.mark.parametrize("kind", KINDS)
def test_a_corpus_is_imported(kind, tmp_path, capsys, request):
    source = request.getfixturevalue(kind)
    assert main(["import", kind, str(source), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == "utterances: 3 done, 0 skipped, 0 failed\n"
    assert read_corpus(tmp_path / "out") == import_corpus(kind, source)
    first = (tmp_path / "out/hcopy.list").read_text().splitlines()[0]
    assert first.endswith(f"/anna/anna-1.wav {tmp_path}/out/features/anna-1.htk")


def test_what_is_lost_is_named(folder, tmp_path, capsys):  # noqa: F811
    (folder / "bob/bob-1.wav").write_bytes(b"")
    assert main(["import", "folder", str(folder), "--out", str(tmp_path / "out"), "--case", "upper"]) == 1
    shown = capsys.readouterr()
    assert shown.err == f"failed: bob-1: {folder}/bob/bob-1.wav: empty file; expected audio\n"
    assert shown.out == "utterances: 2 done, 0 skipped, 1 failed\n"
    assert read_corpus(tmp_path / "out").utterances[0].words == ("ONE", "TWO")


def test_nothing_is_written_from_a_broken_manifest(kaldi, tmp_path, capsys):  # noqa: F811
    (kaldi / "utt2spk").unlink()
    assert main(["import", "kaldi", str(kaldi), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {kaldi}/utt2spk: missing; expected")
    assert not (tmp_path / "out").exists()
