"""`argonaut import` of broken inputs: one line each, and nothing is written."""

import gzip

import pytest

from recipes.cli.main import main
from tests.readers.corpora import test_kaldi, test_lhotse, test_table
from tests.readers.corpora.conftest import audio, folder, kaldi, lhotse, table  # noqa: F401  (fixtures)
from tests.readers.corpora.test_folder import textgrid
from tests.readers.results import test_textgrid


def encoded(content):
    return content if isinstance(content, bytes) or content is None else content.encode("utf-8")


CASES = [
    *(("kaldi", name, encoded(content), message) for name, content, message in test_kaldi.BROKEN),
    *(
        ("lhotse", f"{kind}.jsonl.gz", None if content is None else gzip.compress(encoded(content), mtime=0), message)
        for kind, content, message in test_lhotse.BROKEN
    ),
    *(("table", "t.csv", encoded(content), message) for content, message in test_table.BROKEN),
]


@pytest.mark.parametrize(("kind", "name", "content", "message"), CASES, ids=map(str, range(len(CASES))))
def test_broken_manifests(kind, name, content, message, tmp_path, capsys, request):
    """Status 2, one line on the terminal with file and line, and no results."""
    source = request.getfixturevalue(kind)
    path = source.parent / name if kind == "table" else source / name
    source = path if kind == "table" else source
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)
    assert main(["import", kind, str(source), "--out", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("text", "message"), test_textgrid.BROKEN)
def test_broken_textgrids(text, message, folder, tmp_path, capsys):  # noqa: F811
    """Status 1, one line, and the other utterances are imported."""
    (folder / "bob/bob-1.lab").unlink()
    (folder / "bob/a.TextGrid").write_text(text, encoding="utf-8")
    (folder / "bob/bob-1.wav").rename(folder / "bob/a.wav")
    assert main(["import", "folder", str(folder), "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("failed: a: ")
    assert message.replace("\\n", " ")[:30] in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out.endswith("utterances: 2 done, 0 skipped, 1 failed\n")


def test_a_loop_of_links_and_a_huge_textgrid(folder, tmp_path, capsys):  # noqa: F811
    (folder / "anna/loop.wav").symlink_to("loop.wav")
    (folder / "anna/again").symlink_to("..")
    textgrid(folder / "bob/b.TextGrid", {"Bob": [(0, 0.5, "x")]})
    (folder / "bob/bob-1.wav").rename(folder / "bob/b.wav")
    (folder / "bob/bob-1.lab").unlink()
    with (folder / "bob/b.TextGrid").open("ab") as file:
        file.truncate(100 << 20)
    assert main(["import", "folder", str(folder), "--out", str(tmp_path / "out")]) == 1
    assert sorted(capsys.readouterr().err.splitlines()) == [
        f"failed: b: {folder}/bob/b.TextGrid: 104857600 bytes; expected a TextGrid of at most 33554432",
        f"failed: loop: {folder}/anna/loop.wav: Too many levels of symbolic links",
    ]
