"""`argon` with scores from elsewhere: archives of log-likelihoods, ONNX models."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from acoustic.network.model_file import load_model
from acoustic.scoring.scorer import AcousticScorer
from decoder.recognizer.jobs.decoding.utterances import DecodingPipeline
from readers.htk.mlf import read_mlf
from readers.htk.parameter_file import USER, read_htk, write_htk
from readers.htk.scp import read_scp
from readers.kaldi.ark import write_matrix
from tests.recipes.systems.small_system import DECODE, FIRST_OF_TEST

ROOT = str(Path(__file__).parents[4])

BY_SCORES = (
    *("-graph", "graph/graph.dg", "-lm", "lm.arpa", "-cntkmap", "graph/cntkmap", "-acweight", "0.5"),
    *("--threads", "1", "-outmlf", "hyp.mlf"),
)


@pytest.fixture
def archive(user):
    """scores.ark, scores.txt.ark, scores.scp and scores.list: what the network gives for the test files."""
    scorer = AcousticScorer("model/net", window=3)
    lines = []
    with Path("scores.ark").open("wb") as binary, Path("scores.txt.ark").open("wb") as text:
        for entry in read_scp("test.scp"):
            scores = scorer.score(read_htk(entry.path).frames).T
            key = entry.key.rsplit("/", 1)[-1]
            lines.append(f"{key} scores.ark:{write_matrix(binary, key, scores)}\n")
            write_matrix(text, key, scores, text=True)
    user.write("scores.scp", "".join(lines))
    user.write("scores.list", "".join(lines))


def words_of(path):
    return {
        key.rsplit("/", 1)[-1].split(".")[0]: [label.name for label in labels] for key, labels in read_mlf(path).items()
    }


def times_of(path):
    return {
        key.rsplit("/", 1)[-1].split(".")[0]: [(label.start, label.end) for label in labels]
        for key, labels in read_mlf(path).items()
    }


@pytest.mark.parametrize(
    "source", ["scores.ark", "ark:scores.ark", "scores.scp", "scp:scores.scp", "scores.txt.ark", "scores.list"]
)
def test_an_archive_of_likelihoods_stands_in_the_place_of_the_network(user, archive, source):
    assert user.decode().status == 0
    expected, times = words_of("hyp.mlf"), times_of("hyp.mlf")
    outcome = user.run("argon", *BY_SCORES, "--scores", source)
    assert (outcome.status, outcome.err) == (0, [])
    assert outcome.out[-1].startswith("utterances: 6 done, 0 skipped, 0 failed; frames ")
    assert words_of("hyp.mlf") == expected == words_of("words.mlf")
    assert times_of("hyp.mlf") == times
    assert user.run("argon", *BY_SCORES, "--scores", source, "--frame-shift", "20").status == 0
    assert times_of("hyp.mlf") == {key: [(2 * a, 2 * b) for a, b in rows] for key, rows in times.items()}


@pytest.fixture
def written(user):
    """out/*.ll: what action=write writes for the test files; out.scp lists them."""
    assert user.run("cntk", "configFile=net.cntk", "command=Write").status == 0


def test_files_that_cntk_writes_stand_in_the_place_of_the_network(user, written):
    assert user.decode().status == 0
    expected, times = words_of("hyp.mlf"), times_of("hyp.mlf")
    names = (user.root / "out.scp").read_text().split()
    user.write("named.list", "".join(f"{Path(name).stem}={name}[0,9]\n" for name in names))
    for source in ("out.scp", "scp:out.scp"):
        outcome = user.run("argon", *BY_SCORES, "--scores", source)
        assert (outcome.status, outcome.err) == (0, [])
        assert (words_of("hyp.mlf"), times_of("hyp.mlf")) == (expected, times)
    outcome = user.run("argon", *BY_SCORES, "--scores", "named.list", "--partial")
    assert "; frames 60; " in outcome.out[-1]
    assert set(words_of("hyp.mlf")) == set(expected)
    aligned = ("-alignmlf", "words.mlf", "--dict", "dict", "-graph", "graph/graph.dg", "-cntkmap", "graph/cntkmap")
    assert user.run("argon", *aligned, "--scores", "out.scp", "-outmlf", "aligned.mlf").status == 0
    assert words_of("aligned.mlf") == expected


def test_the_frame_shift_of_htk_files_is_in_their_headers(user, written):
    for name in (user.root / "out.scp").read_text().split():
        write_htk(name, read_htk(name).frames, USER, 200_000)
    assert user.decode().status == 0
    times = times_of("hyp.mlf")
    assert user.run("argon", *BY_SCORES, "--scores", "out.scp").status == 0
    assert times_of("hyp.mlf") == {key: [(2 * a, 2 * b) for a, b in rows] for key, rows in times.items()}
    assert user.run("argon", *BY_SCORES, "--scores", "out.scp", "--frame-shift", "10").status == 0
    assert times_of("hyp.mlf") == times


def test_features_in_place_of_scores(user, written):
    assert user.run("argon", *BY_SCORES, "--scores", "test.scp").fault == (
        f"feat/{FIRST_OF_TEST}.fb: HTK file of kind FBANK_K; expected scores, which have the kind USER"
    )
    user.replace("out.scp", "out/utt29.ll", "feat/utt29.fb")
    outcome = user.run("argon", *BY_SCORES, "--scores", "out.scp")
    assert outcome.status == 1
    assert "feat/utt29.fb: HTK file of kind FBANK_K" in outcome.err[0]


def test_alignment_of_an_archive(user, archive):
    aligned = ("-alignmlf", "words.mlf", "--dict", "dict", "-graph", "graph/graph.dg", "-cntkmap", "graph/cntkmap")
    assert user.run("argon", *aligned, "--scores", "scores.scp", "-outmlf", "aligned.mlf").status == 0
    assert words_of("aligned.mlf") == words_of("words.mlf")


def test_faults_of_archives_are_named(user, archive):
    def fault(*arguments):
        return user.run("argon", *BY_SCORES, *arguments).fault

    assert fault("--scores", "none.ark").startswith("none.ark: No such file")
    assert "--frame-shift is 0; expected at least 0.0001 ms" in fault("--scores", "scores.ark", "--frame-shift", "0")
    assert fault("--scores", "scores.ark", "-am", "model/net") == (
        "command line: -am is given with --scores; expected only one of them"
    )
    os.mkfifo("pipe")
    for pipe in ("-", "ark:-", "pipe", "scp:/dev/null"):
        assert f"--scores is {pipe[pipe.find(':') + 1 :]}: a pipe; expected a file, since" in fault("--scores", pipe)
    user.write("empty.scp", "")
    assert fault("--scores", "empty.scp") == "empty.scp: no files; expected at least one"
    with Path("small.ark").open("wb") as file:
        write_matrix(file, "u1", np.zeros((5, 3)))
    assert "small.ark: 3 outputs, but state" in fault("--scores", "small.ark")


def test_an_empty_matrix_at_the_beginning_is_one_lost_utterance(user, archive):
    others = Path("scores.ark").read_bytes()
    Path("scores.ark").write_bytes(b"empty \0BCM " + bytes(16) + others)
    outcome = user.run("argon", *BY_SCORES, "--scores", "scores.ark")
    assert outcome.out[-1].startswith("utterances: 6 done, 0 skipped, 1 failed")
    assert any("scores.ark:6: 0 frames of 0 values; expected at least one" in line for line in outcome.err)


def test_one_bad_matrix_is_one_lost_utterance(user, archive):
    with Path("scores.ark").open("ab") as file:
        write_matrix(file, "small", np.zeros((5, 3)))
        write_matrix(file, "bad", np.full((5, 8), np.nan))
    outcome = user.run("argon", *BY_SCORES, "--scores", "scores.ark")
    assert outcome.status == 1
    assert outcome.out[-1].startswith("utterances: 6 done, 0 skipped, 2 failed")
    assert "small: scores.ark: scores: shape (3, 5); expected (8 or more network outputs, frames)" in outcome.err[0]
    assert "bad: scores.ark: scores: NaN or +inf in frame 0; expected log-likelihoods" in outcome.err[1]


@pytest.fixture
def onnx(user):
    """net.onnx of the model, post.onnx with ln posteriors, and its priors."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from acoustic.export.onnx_export import export_onnx

    network = load_model("model/net")
    export_onnx(network, ["ScaledLogLikelihood"], "net.onnx")
    network.add("LogSoftmax", "LogPosterior", "HLast")
    export_onnx(network, ["LogPosterior"], "post.onnx")
    user.write("priors", " ".join(str(float(value)) for value in network["Prior"].value.ravel()))


def test_an_onnx_model_stands_in_the_place_of_ours(user, onnx):
    assert user.decode().status == 0
    expected = read_mlf("hyp.mlf")
    assert user.decode("-am", "net.onnx").status == 0
    assert times_of("hyp.mlf") == {key.rsplit("/", 1)[-1].split(".")[0]: [(l.start, l.end) for l in labels]
                                   for key, labels in expected.items()}  # fmt: skip
    assert words_of("hyp.mlf") == words_of("words.mlf")
    assert user.decode("-am", "post.onnx", "--priors", "priors", "--output-node", "LogPosterior").status == 0
    assert words_of("hyp.mlf") == words_of("words.mlf")


def test_faults_of_onnx_models_are_named(user, onnx):
    assert user.decode("-am", "net.onnx", "--chunks", "5:2").fault == (
        "command line: --chunks is given with -am net.onnx; expected it only with a native model"
    )
    assert user.decode("--priors", "priors").fault == (
        "command line: --priors is given with -am model/net; expected it only with an ONNX model"
    )
    user.write("priors", "1 2 3")
    assert (
        "net.onnx: priors of shape (3,), sum 6; expected 8"
        in user.decode("-am", "net.onnx", "--priors", "priors").fault
    )
    user.write("bad.onnx", b"nothing of the kind")
    assert user.decode("-am", "bad.onnx").fault.startswith("bad.onnx: ")


UNUSED = (
    "acoustic.export",
    "acoustic.training",
    "decoder.gaussians",
    "decoder.scoring",
    "concurrent.futures.process",
    "onnx",
    "rich",
)


@pytest.mark.slow
def test_decoding_imports_nothing_that_only_other_commands_need(user):
    code = (
        "import sys; from recipes.cli.argon.command import main; "
        f"print(main(sys.argv[1:]), [name for name in {UNUSED!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, *DECODE, "-infiles", "test.scp", "-outmlf", "hyp.mlf"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": ROOT}, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("\n0 []\n"), done.stderr


def test_eight_bit_weights_find_the_same_words(user, archive):
    assert user.decode().status == 0
    expected = words_of("hyp.mlf")
    outcome = user.decode("--int8")
    assert outcome.status == 0
    assert words_of("hyp.mlf") == expected
    outcome = user.run("argon", *BY_SCORES, "--scores", "scores.ark", "--int8")
    assert (outcome.status, outcome.err) == (
        2,
        ["error: command line: --int8 is given with --scores; expected only one of them"],
    )
    outcome = user.decode("--int8", "-am", "net.onnx")
    expected = "error: command line: --int8 is given with -am net.onnx; expected it only with a native model"
    assert (outcome.status, outcome.err[-1]) == (2, expected)


def test_a_processor_without_vnni_is_noted(user, monkeypatch):
    from acoustic.kernels.compiled import int8_loops

    monkeypatch.setattr(int8_loops, "has_vnni", lambda: False)
    outcome = user.decode("--int8")
    note = "note: --int8: this processor has no AVX-512 VNNI; expected it to be slower here"
    assert (outcome.status, outcome.err[-1]) == (0, note)
    assert words_of("hyp.mlf") == words_of("words.mlf")


def test_threads_switch_quickly_while_utterances_are_decoded(user, monkeypatch):
    seen, decode = [], DecodingPipeline.__call__
    monkeypatch.setattr(
        DecodingPipeline, "__call__", lambda *given: (seen.append(sys.getswitchinterval()), decode(*given))[1]
    )
    assert user.decode("--threads", "2").status == 0
    assert seen == pytest.approx([0.0005] * 6)
    assert sys.getswitchinterval() > 0.001
