"""The progress display, on a terminal and elsewhere."""

import io
import sys

from readers.common.report import RunReport, loss_lines
from readers.errors import ConfigError
from recipes.cli.console import one_line, progress_display, show_losses


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_results_go_to_their_file_while_a_bar_is_on_the_terminal(monkeypatch):
    terminal, file = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", file)
    with progress_display("transcribe", "files") as show:
        print("one result")
        show(1, 2)
    assert file.getvalue() == "one result\n"
    assert "one result" not in terminal.getvalue()
    assert "transcribe" in terminal.getvalue()


def test_when_nothing_could_be_done_the_most_frequent_error_is_shown():
    report = RunReport("utterances")
    report.fail("a", "a.txt:1: byte 0xf6 is not UTF-8; expected UTF-8 text")
    report.fail("b", "my recordings/b.wav: 2 channels; expected one; choose it")
    report.fail("c", "my recordings/c.wav: 2 channels; expected one; choose it")
    assert loss_lines(report, "report", where="my recordings") == [
        "error: my recordings: none of 3 utterances could be done; most frequent error, 2 times: b: "
        "my recordings/b.wav: 2 channels; expected one; choose it; all are listed in report"
    ]
    report.lost.pop()
    assert "first error: a.txt:1: byte 0xf6" in loss_lines(report, None)[0]


def test_the_program_is_named_by_its_path_if_the_environment_is_not_activated(monkeypatch, tmp_path):
    from recipes.cli.console import program_name

    program = tmp_path / ".venv" / "bin" / "argonaut"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program.with_name("python")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert program_name() == ".venv/bin/argonaut"
    monkeypatch.setenv("PATH", str(program.parent))
    assert program_name() == "argonaut"


def test_options_that_the_library_names_are_flags(capsys):
    fault = ConfigError("a.wav: 8000 Hz; the option upsample accepts it, the option drop_missing; audio option x")
    assert one_line(fault) == "a.wav: 8000 Hz; --upsample accepts it, --drop-missing; audio option x"
    report = RunReport("files")
    report.fail("a.wav", str(fault))
    show_losses(report, None)
    assert "; --upsample accepts it," in capsys.readouterr().err
