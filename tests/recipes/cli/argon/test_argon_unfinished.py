"""`argon` if no path reaches a final state: wider beams, unfinished paths, report and exit status."""

import re

import numpy as np
import pytest

from decoder.search import Decoder
from readers.htk.mlf import read_mlf
from readers.htk.parameter_file import parse_kind, write_htk
from readers.htk.slf import read_slf
from tests.recipes.systems.argon_system import SENTENCES, decode, words_of

REASON = "no token reached a final state with a beam of"
UNFINISHED = f"{REASON} 60 instead of 15; wrote the words of the best unfinished path"


def closing(capsys):
    return capsys.readouterr().out.split("; frames")[0]


def report_of(path):
    lines = (path / "out.mlf.report").read_text().splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


@pytest.fixture
def short(made, tmp_path):
    """A list with an utterance of three frames, too short for any path, after those of the system."""
    write_htk(tmp_path / "short.htk", np.zeros((12, 3), np.float32), parse_kind("USER"))
    (tmp_path / "list.scp").write_text((made / "list.scp").read_text() + f"short.htk={tmp_path}/short.htk\n")
    return tmp_path / "list.scp"


def test_one_unfinished_utterance_is_written_and_marked(made, tmp_path, short, capsys):
    lattices = ("-lattice-prefix", str(tmp_path / "l"))
    assert decode(made, tmp_path, *lattices, infiles=short) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("utterances: 5 done, 0 skipped, 0 failed; 1 unfinished; frames")
    assert printed.err == f"unfinished: short: {UNFINISHED}\n"
    assert report_of(tmp_path) == [["short", "unfinished", UNFINISHED]]
    assert words_of(tmp_path / "out.mlf") == SENTENCES | {"short": ""}
    assert (tmp_path / "l.index").read_text().splitlines()[-1] == "5\tshort"
    assert read_slf(tmp_path / "l5.lat").time[-1] == pytest.approx(0.03)
    assert decode(made, tmp_path, "--partial", infiles=short) == 0


def test_without_partial_results_it_fails(made, tmp_path, short, capsys):
    assert decode(made, tmp_path, "--no-partial", "--widenings", "1", infiles=short) == 1
    assert closing(capsys) == "utterances: 4 done, 0 skipped, 1 failed"
    reason = f"{REASON} 30 instead of 15; try a larger -beam, or omit --no-partial"
    assert report_of(tmp_path) == [["short", "failed", reason]]
    assert words_of(tmp_path / "out.mlf") == SENTENCES


def test_when_every_utterance_is_unfinished_the_status_is_1(made, tmp_path, short, capsys):
    short.write_text(f"short.htk={tmp_path}/short.htk\n")
    assert decode(made, tmp_path, infiles=short) == 1
    assert closing(capsys) == "utterances: 1 done, 0 skipped, 0 failed; 1 unfinished"
    assert len(read_mlf(tmp_path / "out.mlf")) == 1


def test_an_utterance_that_dies_in_its_first_frame_fails(made, tmp_path, capsys):
    frames = np.full((12, 9), -np.inf, np.float32)
    np.savetxt(tmp_path / "frames.txt", frames.T)
    lines = "\n".join(" ".join(map(str, row)) for row in frames.T)
    (tmp_path / "scores.ark").write_text(f"dead [\n{lines} ]\n")
    scores = {"am": None, "infiles": None, "dnn_window_size": None, "scores": tmp_path / "scores.ark"}
    assert decode(made, tmp_path, **scores) == 2
    assert closing(capsys) == "utterances: 0 done, 0 skipped, 1 failed"
    assert report_of(tmp_path) == [
        ["dead", "failed", "every token died in frame 0: no state in reach has a score above -inf"]
    ]


def test_wider_beams_are_counted(made, tmp_path, capsys):
    narrow = {"max-tokens": 1}
    decode(made, tmp_path, "--widenings", "0", **narrow)
    assert closing(capsys) == "utterances: 4 done, 0 skipped, 0 failed; 4 unfinished"
    assert decode(made, tmp_path / "wide", "--widenings", "5", **narrow) == 0
    rows = report_of(tmp_path / "wide")
    assert [(name, outcome) for name, outcome, _ in rows] == [(name, "widened") for name in SENTENCES]
    assert all(re.fullmatch(r"a beam of (30|60|120|240|480) instead of 15", text) for _, _, text in rows)
    assert closing(capsys) == "utterances: 4 done, 0 skipped, 0 failed; 4 widened"


def test_without_a_beam_only_the_number_of_tokens_grows(made, tmp_path, short):
    short.write_text(f"short.htk={tmp_path}/short.htk\n")
    decode(made, tmp_path, infiles=short, beam="inf")
    text = (
        "no token reached a final state with 20000 tokens instead of 5000; wrote the words of the best unfinished path"
    )
    assert report_of(tmp_path) == [["short", "unfinished", text]]


def test_utterances_are_decoded_once_if_a_path_reaches_the_end(made, tmp_path, monkeypatch):
    calls, search = [], Decoder._decode
    monkeypatch.setattr(
        Decoder, "_decode", lambda self, frames, widenings: calls.append(widenings) or search(self, frames, widenings)
    )
    assert decode(made, tmp_path) == 0
    assert calls == [0] * len(SENTENCES)
