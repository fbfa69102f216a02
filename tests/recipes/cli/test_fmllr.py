"""`argonaut fmllr`: transforms from aligned features, transformed features to train with; faults."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from decoder.gaussians.adaptation.job import MODEL, PASSES, REPORT
from readers.config.side_files import read_side_file, side_file, write_side_file
from readers.htk.frame_labels import read_state_list
from readers.htk.parameter_file import read_htk, write_htk
from readers.htk.scp import read_scp

ALIGNED = ("--features", "train.scp", "--alignment", "train.mlf", "--state-list", "states.list")
SMALL = ("--dim", "6", "--splice", "1", "--gaussians", "20", "--passes", "2", "--rounds", "1", "-j", "2")
SPEAKERS = ("--speakers", "speakers", "--min-frames", "20")


@pytest.fixture
def aligned(user):
    """The user, who knows the speakers of the training set."""
    keys = [entry.key for entry in read_scp("train.scp")]
    user.write("speakers", "".join(f"{Path(key).name} s{i % 2}\n" for i, key in enumerate(keys)))
    return user


@pytest.mark.slow
def test_features_of_the_training_and_of_new_speakers(aligned):
    outcome = aligned.run("fmllr", "train", *ALIGNED, *SMALL, *SPEAKERS, "--out", "fm")
    assert outcome.status == 0, outcome.err
    assert {path.name for path in Path("fm").iterdir()} == {MODEL, PASSES, REPORT}
    rows = [json.loads(line) for line in Path("fm", PASSES).read_text().splitlines()]
    assert [row["kind"] for row in rows][-2:] == ["fmllr", "gaussians"]
    last = rows[-1]
    assert outcome.out[-1] == (
        f"fmllr: 6 values per frame, {last['gaussians']} Gaussians, {last['log_likelihood_per_frame']:.2f} per frame, "
        "2 speakers, 2 with a transform"
    )
    assert aligned.run("fmllr", "train", *ALIGNED, *SMALL, *SPEAKERS, "--out", "fm").out[0] == (
        f"{len(rows)} of {len(rows)} passes are done; going on"
    )
    apply = ("fmllr", "apply", "fm", "--features", "train.scp", "--min-frames", "20", "-j", "2")
    known = aligned.run(*apply, "--speakers", "speakers", "--out", "feats", "--scp", "known.scp")
    assert known.status == 0, known.err
    assert known.out[-1] == "known.scp: 6 values per frame, 2 speakers with a transform"
    plain = aligned.run(*apply, "--out", "plain", "--scp", "plain.scp")
    assert plain.out[-1] == "plain.scp: 6 values per frame, 0 speakers with a transform"
    aligned.replace("speakers", " s", " new")
    new = (*apply, "--speakers", "speakers")
    estimated = aligned.run(*new, "--alignment", "train.mlf", "--out", "new", "--scp", "new.scp")
    assert estimated.status == 0, estimated.err
    assert estimated.out[-1] == "new.scp: 6 values per frame, 2 speakers with a transform"
    anew = moved = 0.0
    for entry, one, other, third in zip(*(read_scp(f"{x}.scp") for x in ("train", "known", "plain", "new"))):
        frames = [read_htk(part.path).frames for part in (one, other, third)]
        assert one.key == other.key == third.key == entry.key
        size = read_htk(entry.path, entry.start or 0, entry.end).frames.shape[1]
        assert {part.shape for part in frames} == {(6, size)}
        anew += np.abs(frames[0] - frames[2]).mean()  # transforms estimated anew, from the same frames
        moved += np.abs(frames[0] - frames[1]).mean()
    assert 0 < anew < 0.8 * moved
    unknown = aligned.run(*new, "--out", "unknown", "--scp", "unknown.scp")
    assert unknown.status == 2
    assert not Path("unknown.scp").exists()
    line = Path("unknown", REPORT).read_text().splitlines()[1]
    assert line.endswith(f"failed\tfm/{MODEL}: speaker 'new0' is not in the training; expected an alignment")


@pytest.mark.slow
def test_the_model_shows_itself_as_features_of_new_networks(aligned):
    """`validate` and `info` read the transformed features as any others."""
    assert aligned.run("fmllr", "train", *ALIGNED, *SMALL, *SPEAKERS, "--out", "fm").status == 0
    apply = ("fmllr", "apply", "fm", "--features", "train.scp", "--speakers", "speakers")
    assert aligned.run(*apply, "--out", "feats", "--scp", "t.scp").status == 0
    file = read_scp("t.scp")[0].path
    assert any("USER" in line for line in aligned.run("info", file).out)


def test_features_that_were_computed_in_another_way_are_refused(aligned):
    first, *others = read_scp("train.scp")
    side = side_file(first.path)
    assert {side_file(entry.path) for entry in others} == {side}
    record = read_side_file(side)
    assert record.settings["USEHAMMING"] is True
    assert aligned.run("fmllr", "train", *ALIGNED, *SMALL, "--out", "fm").status == 0
    write_side_file(side, replace(record, settings={**record.settings, "USEHAMMING": False}))
    outcome = aligned.run("fmllr", "apply", "fm", "--features", "train.scp", "--out", "feats", "--scp", "t.scp")
    assert outcome.status == 2
    assert not Path("t.scp").exists()
    expected = (
        f"{Path(first.path).absolute()}: USEHAMMING F; expected USEHAMMING T, with which the transforms were trained"
    )
    assert f"{first.key}\tfailed\t{expected}" in Path("feats", REPORT).read_text()


def test_features_that_were_computed_in_different_ways_are_refused(aligned):
    first, *_ = read_scp("train.scp")
    side, other = side_file(first.path), Path("other")
    other.mkdir()
    moved = other / Path(first.path).name
    moved.write_bytes(Path(first.path).read_bytes())
    record = read_side_file(side)
    write_side_file(side_file(moved), replace(record, settings={**record.settings, "USEHAMMING": False}))
    aligned.replace("train.scp", str(first.path), f"{moved}")
    outcome = aligned.run("fmllr", "train", *ALIGNED, *SMALL, "--out", "fm")
    assert (outcome.status, outcome.out) == (2, [])
    assert "USEHAMMING T; expected USEHAMMING F, as in " in outcome.err[-1]
    assert not Path("fm", MODEL).exists()


def test_speakers_with_few_frames_are_named(aligned):
    assert aligned.run("fmllr", "train", *ALIGNED, *SMALL, *SPEAKERS, "--out", "fm").status == 0
    first, *others = Path("speakers").read_text().splitlines()
    aligned.write("speakers", "\n".join([f"{first.split()[0]} few", *others]) + "\n")
    apply = ("fmllr", "apply", "fm", "--features", "train.scp", "--speakers", "speakers", "--min-frames", "1000")
    outcome = aligned.run(*apply, "--alignment", "train.mlf", "--out", "feats", "--scp", "t.scp")
    assert outcome.status == 0
    assert "# speakers without a transform, because of few frames: few (" in Path("feats", REPORT).read_text()


def test_lost_utterances_are_named(aligned):
    _, *others = Path("speakers").read_text().splitlines()
    aligned.write("speakers", "\n".join(others) + "\n")
    second = read_scp("train.scp")[1].key
    aligned.replace("train.mlf", f"{Path(second).name}.lab", "other.lab")
    outcome = aligned.run("fmllr", "train", *ALIGNED, *SMALL, *SPEAKERS, "--out", "fm")
    assert outcome.status == 1
    report = Path("fm", REPORT).read_text()
    assert f"speakers: no speaker of '{read_scp('train.scp')[0].key}'; expected a line `name speaker`" in report
    assert "train.mlf: no alignment; expected an entry" in report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dim", "0"), "command line: --dim is 0; expected 1 to 10000"),
        (("-j", "0"), "command line: --workers is 0; expected at least 1"),
        (("--min-frames", "0"), "command line: --min-frames is 0; expected at least 1 frame"),
        (
            ("--silence", "pau"),
            "command line: --silence is pau, and there is no state pau_s2; expected",
        ),
        (("--alignment", "none.mlf"), "none.mlf: No such file or directory"),
        (("--dim", "100"), "fmllr: 100 values after LDA; expected at most"),
    ],
)
def test_faults_are_one_line(aligned, arguments, message):
    outcome = aligned.run("fmllr", "train", *ALIGNED, *SMALL, *SPEAKERS, *arguments, "--out", "fm")
    assert outcome.status == 2
    assert outcome.err[-1].startswith(f"error: {message}")
    assert not Path("fm", MODEL).exists()


def test_faults_of_apply_are_one_line(aligned):
    assert aligned.run("fmllr", "train", *ALIGNED, *SMALL, "--out", "plain").status == 0
    apply = ("fmllr", "apply", "plain", "--features", "train.scp", "--out", "feats", "--scp", "t.scp")
    for arguments, message in (
        (("--alignment", "train.mlf"), "command line: --alignment is given without --speakers; expected both"),
        (("--speakers", "speakers"), f"plain/{MODEL}: trained without speakers; expected none, or a training"),
    ):
        outcome = aligned.run(*apply, *arguments)
        assert outcome.status == 2
        assert outcome.err[-1].startswith(f"error: {message}")
    aligned.write("train.scp", f"../x.mfc={read_scp('train.scp')[0].path}\n")
    outcome = aligned.run(*apply)
    assert outcome.err[-1].startswith("error: '../x': a name of a feature file in another directory; expected no '..'")
    assert not Path("feats").exists()
    outcome = aligned.run("fmllr", "apply", ".", *apply[3:])
    assert outcome.err == [f"error: .: no {MODEL}; expected a directory that `argonaut fmllr train` wrote"]


def test_a_training_that_is_not_complete_is_refused(aligned, monkeypatch):
    from decoder.gaussians.adaptation.training import AdaptationTraining

    class Killed(Exception):
        pass

    def stop(self, *_):
        raise Killed

    monkeypatch.setattr(AdaptationTraining, "_fmllr", stop)
    with pytest.raises(Killed):
        aligned.run("fmllr", "train", *ALIGNED, *SMALL, *SPEAKERS, "--out", "fm")
    outcome = aligned.run("fmllr", "apply", "fm", "--features", "train.scp", "--out", "feats", "--scp", "t.scp")
    assert outcome.err == [
        f"error: fm/{MODEL}: the training is not complete; expected that `argonaut fmllr train` is run again"
    ]


def test_features_without_variation_are_refused_in_one_line(aligned):
    for entry in read_scp("train.scp"):
        file = read_htk(entry.path)
        write_htk(entry.path, np.ones_like(file.frames), file.kind, file.period)
    outcome = aligned.run("fmllr", "train", *ALIGNED, *SMALL, *SPEAKERS, "--out", "fm")
    assert outcome.status == 2
    assert outcome.err[-1].startswith("error: train.scp: LDA: within the states, values of the frames are constant or ")


def test_states_are_those_of_the_list(aligned):
    names = read_state_list("states.list")
    aligned.write("states.list", "".join(f"{name}\n" for name in names[1:]))
    outcome = aligned.run("fmllr", "train", *ALIGNED, *SMALL, *SPEAKERS, "--silence", names[1], "--out", "fm")
    assert outcome.status == 1
    assert f"state '{names[0]}' (label " in Path("fm", REPORT).read_text()
