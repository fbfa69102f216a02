"""The progress display, on a terminal and elsewhere."""

import io
import sys

from recipes.cli.console import progress_display


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
