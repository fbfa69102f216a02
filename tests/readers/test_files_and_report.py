"""Writing whole files or none, and the account of what a run lost."""

import pytest

from readers.files import atomic_write
from readers.report import RunReport


def test_atomic_write_replaces_the_file_and_makes_directories(tmp_path):
    path = tmp_path / "new" / "file.txt"
    for text in ("first", "second"):
        with atomic_write(path, "w") as file:
            file.write(text)
        assert path.read_text() == text
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]


def test_atomic_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path, "w") as file:
        file.write("half of the new")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize(("num_done", "lost", "status"), [(3, [], 0), (0, [], 0), (2, ["u1"], 1), (0, ["u1"], 2)])
def test_report_exit_status(num_done, lost, status):
    report = RunReport("files", num_done=num_done)
    for name in lost:
        report.fail(name, "broken")
    assert report.exit_status == status


def test_report_file_names_each_loss_with_its_reason(tmp_path):
    report = RunReport("utterances")
    report.done(2)
    report.skip("u1", "no labels")
    report.fail("u2", "truncated")
    report.write(tmp_path / "report.txt")
    assert (tmp_path / "report.txt").read_text() == (
        "# utterances: 2 done, 1 skipped, 1 failed\nu1\tskipped\tno labels\nu2\tfailed\ttruncated\n"
    )
