"""`argonaut ivector`: models, lists of i-vectors, resumption, and messages."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from features.ivectors import IvectorModel
from readers.config.feature_record import FeatureRecord
from readers.config.side_files import write_side_file
from readers.htk.parameter_file import read_htk, write_htk
from readers.htk.scp import read_scp
from recipes.cli.main import main
from tests.features.ivectors.corpus import make_speakers
from tests.readers.common.child_processes import needs_proc

ROOT = Path(__file__).parents[3]
TRAIN = ("--gaussians", "4", "--dim", "3", "--passes", "2", "--extractor-passes", "3")


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Features, their list, and the speakers, in the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    lines, speakers = [], []
    for speaker, utterances in make_speakers(4, 3, 55).items():
        for number, frames in enumerate(utterances):
            write_htk(f"data/{speaker}-{number}.mfc", frames, "MFCC_0")
            lines.append(f"{speaker}-{number}.mfc=data/{speaker}-{number}.mfc[0,{frames.shape[1] - 1}]\n")
            speakers.append(f"{speaker}-{number} {speaker}\n")
    Path("list.scp").write_text("".join(lines))
    Path("speakers").write_text("".join(speakers))
    return tmp_path


def run(*words):
    return main(["ivector", *map(str, words)])


def train(*more):
    return run("train", "--features", "list.scp", "-o", "m.ivector", "-j", 1, *TRAIN, *more)


def extract(*more):
    return run("extract", "m.ivector", "--features", "list.scp", "--out", "out", "--scp", "iv.scp", "-j", 1, *more)


def frames_of(name):
    return read_htk(f"data/{name}.mfc").frames


def test_a_model_of_utterances(corpus, capsys):
    write_side_file("data/features.mfc.json", FeatureRecord({"TARGETKIND": "MFCC_0", "TARGETRATE": 100000}, (8000.0,)))
    assert train() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("pass 1 of 10: diagonal, 1 Gaussians, -")
    assert lines[-1].startswith("m.ivector: 4 Gaussians, 3 values, 12 utterances, -")
    assert lines[-1].endswith("next: argonaut ivector extract m.ivector --features list.scp --out DIR --scp FILE")
    assert not Path("m.ivector.state").exists()
    assert IvectorModel.load("m.ivector").record.rates == (8000.0,)
    assert extract() == 0
    assert capsys.readouterr().out == "utterances: 12 done, 0 skipped, 0 failed\n"
    model = IvectorModel.load("m.ivector")
    for entry in read_scp("iv.scp"):
        vector = read_htk(entry.path, entry.start, entry.end)
        assert (vector.frames.shape, vector.period) == ((3, 1), 100000)
        np.testing.assert_allclose(vector.frames[:, 0], model.offline([frames_of(entry.key)]), rtol=1e-6)


def test_more_gaussians_than_frames_are_refused(corpus, capsys):
    assert train("--gaussians", "4000") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == ("error: list.scp: 660 frames; expected at least 4000, one for each Gaussian, and better a hundred")
    assert not list(Path().glob("m.ivector*"))


@pytest.mark.parametrize("speakers", [("--speakers", "speakers"), ("--speaker-pattern", "^(s.)-")])
def test_one_vector_for_each_speaker(corpus, capsys, speakers):
    assert train(*speakers) == 0
    assert "no features.mfc.json beside it" in capsys.readouterr().err
    assert extract(*speakers) == 0
    entries = read_scp("iv.scp")
    assert [entry.key for entry in entries] == [entry.key for entry in read_scp("list.scp")]
    files = {path.name for path in Path("out").iterdir()}
    assert files == {"features.ivec.json", "made-with", "s0.ivec", "s1.ivec", "s2.ivec", "s3.ivec"}
    expected = IvectorModel.load("m.ivector").offline([frames_of(f"s2-{number}") for number in range(3)])
    for number in range(3):
        found = read_htk(entries[6 + number].path).frames[:, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("speakers", [(), ("--speakers", "speakers")])
def test_a_vector_for_each_period(corpus, speakers):
    assert train() == 0
    assert extract("--online", "--period", 7, *speakers) == 0
    model = IvectorModel.load("m.ivector")
    state = None
    for number, entry in enumerate(read_scp("iv.scp")[:3]):
        found = read_htk(entry.path, entry.start, entry.end)
        assert (found.frames.shape, found.period) == ((3, 8), 700000)
        stream = model.stream(state)
        for block in range(8):
            before = frames_of(entry.key)[:, max(0, 7 * block - 6) : 7 * block + 1]
            stream.push(before)
            np.testing.assert_allclose(found.frames[:, block], stream.current(), atol=1e-5)
        stream.push(frames_of(entry.key)[:, 50:])
        state = stream.state() if speakers else None
        assert Path(entry.path) == Path(f"out/s0-{number}.ivec")


def test_extraction_goes_on_where_it_stopped(corpus):
    assert train() == 0
    assert extract("--speakers", "speakers") == 0
    before = {path: path.stat().st_mtime_ns for path in Path("out").glob("*.ivec")}
    Path("out/s1.ivec").unlink()
    os.utime("data/s3-2.mfc", ns=(2**62, 2**62))
    assert extract("--speakers", "speakers") == 0
    after = {path: path.stat().st_mtime_ns for path in before}
    assert [path.stem for path in sorted(before) if after[path] != before[path]] == ["s1", "s3"]
    assert extract("--speakers", "speakers", "--posterior-scale", 0.2) == 0
    assert all(path.stat().st_mtime_ns != after[path] for path in before)


def test_a_damaged_file_is_made_again(corpus):
    assert train() == 0
    assert extract() == 0
    whole = Path("out/s1-0.ivec").read_bytes()
    Path("out/s1-0.ivec").write_bytes(whole[:2])
    assert extract() == 0
    assert Path("out/s1-0.ivec").read_bytes() == whole


def test_a_directory_has_the_files_of_one_model(corpus, capsys):
    assert train() == 0
    assert extract() == 0
    lines = Path("list.scp").read_text().splitlines()
    Path("list.scp").write_text(lines[0] + "\n")
    assert train("--seed", "7", "--dim", "2") == 0
    before = Path("out/features.ivec.json").read_bytes()
    capsys.readouterr()
    assert extract() == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: out/s0-1.ivec: from another model than m.ivector (11 such files); expected")
    assert Path("out/features.ivec.json").read_bytes() == before
    Path("list.scp").write_text("\n".join(lines) + "\n")
    assert extract() == 0


def test_copies_of_an_utterance_belong_to_other_speakers(corpus):
    lines = [line.replace("=", "=", 1) for line in Path("list.scp").read_text().splitlines()]
    Path("list.scp").write_text("\n".join([*lines, *(f"warp92/{line}" for line in lines)]) + "\n")
    assert train("--speakers", "speakers") == 0
    assert extract("--speakers", "speakers") == 0
    assert {entry.path for entry in read_scp("iv.scp")} == {
        f"out/{w}s{n}.ivec" for w in ("", "warp92/") for n in range(4)
    }


@pytest.mark.slow
@needs_proc
def test_a_killed_training_goes_on_with_the_same_bits(corpus, capsys):
    many = ("--extractor-passes", "300")  # more than can be done before the process is killed
    assert train(*many) == 0
    before = Path("m.ivector").read_bytes()
    Path("m.ivector").unlink()
    words = ("ivector", "train", "--features", "list.scp", "-o", "m.ivector", "-j", "2", *TRAIN, *many)
    command = subprocess.Popen(
        [sys.executable, "-m", "recipes.cli.main", *words], env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        command.stdout.readline()  # of the first pass
    finally:
        command.kill()
        command.communicate()
    assert Path("m.ivector.state").exists()
    assert not Path("m.ivector").exists()
    capsys.readouterr()
    assert train(*many) == 0
    assert " of 307 passes are done; going on" in capsys.readouterr().out
    assert Path("m.ivector").read_bytes() == before
    assert sorted(path.name for path in Path().glob("m.ivector*")) == ["m.ivector", "m.ivector.report"]


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits(corpus, capsys):
    distributed = pytest.importorskip("distributed")
    full = ("--covariance", "full", "--full-passes", 2)
    assert train(*full) == extract("--speakers", "speakers") == 0
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as workers:
        place = ("--scheduler", workers.scheduler_address)
        assert run("train", "--features", "list.scp", "-o", "c.ivector", *TRAIN, *full, *place) == 0
        words = ("--features", "list.scp", "--speakers", "speakers", "--out", "c", "--scp", "c.scp")
        assert run("extract", "c.ivector", *words, *place) == 0
    assert Path("c.ivector").read_bytes() == Path("m.ivector").read_bytes()
    for number in range(4):
        assert Path(f"c/s{number}.ivec").read_bytes() == Path(f"out/s{number}.ivec").read_bytes()
    capsys.readouterr()
    assert train("--scheduler", "tcp://127.0.0.1:1") == 2
    assert (
        capsys.readouterr().err
        == "error: command line: --workers is given with --scheduler; expected only one of them\n"
    )


def test_info_shows_a_model(corpus, capsys):
    assert train("--covariance", "full", "--period", 7) == 0
    capsys.readouterr()
    assert main(["info", "m.ivector"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "m.ivector: i-vector model"
    assert [" ".join(line.split()) for line in shown[1:]] == [
        "i-vectors 3 values",
        "background 4 Gaussians of 3 values, full",
        "mean of 600 frames, at first with 200 frames of the training",
        "options select 5, min_posterior 0.025, posterior_scale 0.1, max_count 100, period 7",
        "trained on TARGETKIND MFCC_0, TARGETRATE 100000",
    ]


def test_features_that_were_computed_in_different_ways(corpus, capsys):
    Path("more").mkdir()
    lines = Path("list.scp").read_text().splitlines()
    Path("data/s1-0.mfc").rename("more/s1-0.mfc")
    Path("list.scp").write_text("\n".join(lines).replace("data/s1-0", "more/s1-0") + "\n")
    record = FeatureRecord({"TARGETKIND": "MFCC_0", "TARGETRATE": 100000, "NUMCHANS": 24}, (8000.0,))
    write_side_file("data/features.mfc.json", record)
    write_side_file("more/features.mfc.json", replace(record, rates=(16000.0,)))
    assert train() == 0
    assert IvectorModel.load("m.ivector").record.rates == (8000.0, 16000.0)
    write_side_file("more/features.mfc.json", replace(record, settings={**record.settings, "NUMCHANS": 26}))
    capsys.readouterr()
    assert train() == 2
    error = capsys.readouterr().err
    assert "more/s1-0.mfc: NUMCHANS 26; expected NUMCHANS 24, as in " in error
    assert error.endswith("data/s0-0.mfc, listed too in list.scp\n")


def test_utterances_that_are_lost(corpus, capsys):
    assert train() == 0
    write_htk("data/s0-1.mfc", np.ones((4, 55)), "MFCC_0")
    write_htk("data/s0-2.mfc", np.ones((3, 55)), "PLP_0")
    Path("data/s1-0.mfc").unlink()
    capsys.readouterr()
    assert extract() == 1
    printed = capsys.readouterr()
    assert printed.out == "utterances: 9 done, 0 skipped, 3 failed\n"
    assert "expected frames of 3, as in the training of m.ivector" in printed.err
    assert "TARGETKIND PLP_0; expected TARGETKIND MFCC_0, with which m.ivector was trained" in printed.err
    assert "s1-0.mfc: No such file or directory" in printed.err
    assert "iv.scp lacks the utterances that were lost" in printed.err
    assert len(read_scp("iv.scp")) == 9
    assert Path("iv.scp.report").read_text().count("failed") == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--speakers", "none"), "none: No such file or directory"),
        (("--speakers", "bad"), "bad:1: 'one two three'; expected `name speaker`, each name once"),
        (("--speakers", "two"), "two:2: 's0-0 b'; expected `name speaker`, each name once"),
        (
            ("--speakers", "others"),
            "list.scp: s0-0: others: no line `s0-0 SPEAKER`; expected one; no utterance has a speaker",
        ),
        (
            ("--speaker-pattern", "s."),
            "command line: --speaker-pattern is s., without a group; expected the speaker in parentheses",
        ),
        (("--speaker-pattern", "("), "speaker pattern: '(': missing )"),
        (("--gaussians", 0), "command line: --gaussians is 0; expected 1 to 65536"),
        (("--select", 0), "command line: --select is 0; expected 1 to 65536"),
        (("-j", 0), "command line: --workers is 0; expected at least 1"),
        (("--features", "empty"), "empty: no entries; expected a feature file on each line"),
        (("--features", "twice"), "twice:2: 'a' is already at twice:1; expected each name once"),
        (("-o", "list.scp"), "list.scp: is an input and would be overwritten"),
    ],
)
def test_messages(corpus, capsys, words, message):
    Path("bad").write_text("one two three\n")
    Path("two").write_text("s0-0 a\ns0-0 b\n")
    Path("others").write_text("x y\n")
    Path("empty").write_text("\n")
    Path("twice").write_text("a=data/s0-0.mfc\na=data/s0-1.mfc\n")
    assert train(*words) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"error: {message}")
    assert printed.err.count("\n") == 1
    assert not Path("m.ivector").exists()


def test_names_that_lead_out_of_the_directory(corpus, capsys):
    assert train() == 0
    Path("list.scp").write_text("../x.mfc=data/s0-0.mfc\n")
    capsys.readouterr()
    assert extract() == 2
    assert capsys.readouterr().err == "error: name '../x'; expected one that is a path below out, without ..\n"
    assert not Path("x.ivec").exists()


def test_a_file_that_is_no_model(corpus, capsys):
    Path("m.ivector").write_bytes(b"none")
    assert extract() == 2
    assert capsys.readouterr().err.startswith("error: m.ivector: ")
    assert not Path("out").exists()
