"""How `argon` fails: one line for each thing that does not fit."""

import gzip
import re

import pytest

from recipes.cli.argon.command import main
from tests.recipes.systems.argon_system import compile_arguments, decode, save_identity


def rewrite(made, path, edit):
    """A copy of the language model of `made`, edited."""
    path.write_text(edit((made / "lm.arpa").read_text()))
    return path


def no_word_x(arpa):
    return arpa.replace("-0.5 X", "-0.5 V").replace(" X", " V")


def broken(made, tmp_path):
    """What was broken -> (changes of flags, what the message must say)."""
    lines = (made / "cntkmap").read_text().splitlines(keepends=True)
    graph = (made / "g.dg").read_bytes()
    (tmp_path / "cut.dg").write_bytes(graph[: len(graph) // 2])
    (tmp_path / "text.dg").write_bytes(gzip.decompress((made / "graph.fsa.gz").read_bytes()))
    save_identity(tmp_path / "small", 8)
    (tmp_path / "empty").write_text("\n")
    files = {
        "lacking": "".join(lines[1:]),
        "unknown": "".join([*lines, "[zz_s2] 3\n"]),
        "alike": "a/one=x\nb/one=y\n",
        "beyond": "".join([*lines[:-1], lines[-1].split()[0] + " 40\n"]),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return {
        "graph state without index": ({"cntkmap": tmp_path / "lacking"}, r"state \[a_s2\] has no index in \S+lacking;"),
        "state that the graph lacks": ({"cntkmap": tmp_path / "unknown"}, r"unknown: state \[zz_s2\] not in"),
        "index beyond the outputs": ({"cntkmap": tmp_path / "beyond"}, "12 outputs, but state .* has index 40"),
        "another model": ({"am": tmp_path / "small"}, "8 outputs, but state .* has index 11"),
        "half a graph": ({"graph": tmp_path / "cut.dg"}, "expected .*; the file is damaged, compile it again"),
        "graph as text": ({"graph": tmp_path / "text.dg"}, "expected a compiled decoding graph"),
        "no such graph": ({"graph": tmp_path / "none"}, "none: No such file"),
        "words unknown": ({"lm": rewrite(made, tmp_path / "no_x", no_word_x)}, "not in the language model"),
        "ARPA line": ({"lm": rewrite(made, tmp_path / "bad", lambda s: s.replace("-0.6 Y", "x Y"))}, "bad:9: 'x' in"),
        "chunks": ({"chunks": "0:1"}, "--chunks is '0:1'; expected frames per chunk and frames of look-ahead"),
        "even window": ({"dnn_window_size": 2}, r"window of 2 frames \(-dnn_window_size\); expected an odd number"),
        "no files": ({"infiles": tmp_path / "empty"}, "no files; expected at least one"),
        "silence": ({"silence": "quiet"}, "no silence model 'quiet'"),
        "beam": ({"beam": "-3"}, "-beam is -3; expected at least 0"),
        "no model": ({"am": None}, "-am is missing; expected it for decoding"),
        "no output": ({"outmlf": None}, "-outmlf is missing; expected an output file: it, -lattice-prefix or --words"),
        "two kinds of model": ({"lm-collection": "x"}, "-lm is given with -lm-collection; expected only one of them"),
        "unknown format of words": ({"words": tmp_path / "w.doc"}, "w.doc: unknown format of words; expected a name"),
        "a file for a directory": ({"words": tmp_path / "alike.srt"}, "directory of its files, .*alike, is a file;"),
        "names alike": ({"words": "w.srt", "infiles": tmp_path / "alike"}, "w.srt: two utterances are named one;"),
        "one file for two": ({"words": "w.ctm", "outmlf": "w.ctm"}, "--words is w.ctm, as -outmlf; expected two"),
        "for streams": ({"running-mean": "whole"}, "--running-mean is given without --stream; expected both"),
        "threads": ({"threads": 0}, "--threads is 0; expected at least 1"),
        "unknown flag": ({"beem": "3"}, "unrecognized arguments: --beem 3; did you mean -beam"),
    }  # fmt: skip


CASES = (
    *("graph state without index", "state that the graph lacks", "index beyond the outputs", "another model"),
    *("half a graph", "graph as text", "no such graph", "words unknown", "ARPA line", "even window", "no files"),
    *(
        "chunks",
        "silence",
        "beam",
        "no model",
        "no output",
        "two kinds of model",
        "unknown format of words",
        "a file for a directory",
        "names alike",
        "one file for two",
        "for streams",
        "threads",
        "unknown flag",
    ),
)


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_fit_is_one_line_and_status_2(made, tmp_path, capsys, case):
    changes, message = broken(made, tmp_path)[case]
    assert decode(made, tmp_path / "out", **changes) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert re.search(message, printed.err), printed.err
    assert not (tmp_path / "out").exists()


def test_all_broken_cases_are_tested(made, tmp_path):
    assert set(broken(made, tmp_path)) == set(CASES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"infsm": "none.fsa"}, "none.fsa: No such file"),
        ({"graph": ""}, "-graph: an empty file name"),
        ({"precompile": "perhaps"}, "'perhaps'; expected true or false"),
        ({"infsm": ""}, "-precompile is given without -infsm; expected both"),
    ],
)
def test_precompile_faults_are_one_line(made, capsys, changes, message):
    capsys.readouterr()
    assert main(compile_arguments(made, **changes)) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1


def test_no_options_and_help(capsys):
    assert main([]) == 2
    assert "argon -help shows them" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["-help"])
    assert stop.value.code == 0
    assert "worked example" in capsys.readouterr().out
