"""`argonaut average`: the means of alignments; lost utterances and faults."""

from pathlib import Path

import pytest

from readers.htk.mlf import read_mlf

ONE = """#!MLF!#
"*/u.lab"
0 400000 a_s2 -1 a -2 AB
400000 1000000 b_s2 -1 b -2
.
"*/v.lab"
0 500000 a_s2 -1 a -2
.
"""
OTHER = '#!MLF!#\n"*/u.rec"\n0 800000 a_s2 a AB\n800000 1000000 b_s2 b\n.\n"*/v.rec"\n0 500000 b_s2 b\n.\n'


def test_boundaries_are_averaged(user):
    user.write("one.mlf", ONE)
    user.write("other.mlf", OTHER)
    outcome = user.run("average", "one.mlf", "other.mlf", "-o", "mean.mlf")
    assert outcome.status == 0, outcome.err
    assert outcome.out == [
        "utterances: 2 done, 0 skipped, 0 failed",
        "averaged: 2 utterances of 2 alignments, 1 with all of them",
    ]
    assert Path("mean.mlf").read_text().splitlines()[1:4] == [
        '"*/u.lab"',
        "0 600000 a_s2 a AB",
        "600000 1000000 b_s2 b",
    ]
    again = user.run("average", "mean.mlf", "mean.mlf", "-o", "same.mlf")
    assert again.status == 0
    assert dict(read_mlf("same.mlf")) == dict(read_mlf("mean.mlf"))


def test_lost_utterances_are_named(user):
    user.write("one.mlf", ONE.replace("0 400000", "100000 400000"))
    user.write("other.mlf", OTHER)
    outcome = user.run("average", "one.mlf", "other.mlf", "-o", "mean.mlf")
    assert outcome.status == 1
    assert list(read_mlf("mean.mlf")) == ["v"]
    assert "begins at frame 1; expected frame 0, the first" in Path("mean.mlf.report").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one.mlf",), "command line: MLF is one alignment; expected at least two"),
        (("one.mlf", "none.mlf"), "none.mlf: No such file or directory"),
        (
            ("one.mlf", "one.mlf", "--period", "0"),
            "command line: --period is 0; expected at least 0.0001, below 1000000",
        ),
    ],
)
def test_faults_are_one_line(user, arguments, message):
    user.write("one.mlf", ONE)
    outcome = user.run("average", *arguments, "-o", "mean.mlf")
    assert outcome.status == 2
    assert outcome.err[0].startswith(f"error: {message}")
    assert not Path("mean.mlf").exists()
