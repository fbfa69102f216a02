"""`argon` with a model of half the frame rate: as if every second column of the scores were decoded."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from acoustic.network.model_file import load_model, save_model
from acoustic.scoring.scorer import AcousticScorer
from readers.htk.mlf import read_mlf
from readers.htk.parameter_file import read_htk, read_htk_header
from readers.htk.scp import read_scp
from readers.htk.slf import read_slf
from readers.kaldi.ark import write_matrix
from readers.results.timed_words import read_ctm
from recipes.cli.main import main
from tests.recipes.systems.small_system import DECODE

STEP = 2
STORED = (
    *("-graph", "graph/graph.dg", "-lm", "lm.arpa", "-cntkmap", "graph/cntkmap", "-acweight", "0.5"),
    *("--threads", "1", "--scores", "every.ark", "--frame-shift", "20"),
)


@pytest.fixture
def slow(user):
    """The network of `user` remembers a subsampling of 2; every.ark: every second column of its scores."""
    scorer = AcousticScorer("model/net", window=3)
    with Path("every.ark").open("wb") as file:
        for entry in read_scp("test.scp"):
            scores = scorer.score(read_htk(entry.path).frames)
            write_matrix(file, entry.key, scores[:, ::STEP].T)
    network = load_model("model/net")
    records = network.feature_records
    network.feature_records = {name: replace(one, subsampling=STEP) for name, one in records.items()}
    save_model(network, "model/net")
    return user


def rows_of(path):
    return {key.rsplit("/", 1)[-1].split(".")[0]: labels for key, labels in read_mlf(path).items()}


def ends():
    """The end of the last frame of each utterance."""
    return {
        entry.key.rsplit("/", 1)[-1]: 100_000 * read_htk_header(entry.path).num_frames for entry in read_scp("test.scp")
    }


def assert_alike(found, expected):
    """Compare labels; the last digits of scores depend on the widths of products."""

    def without_scores(label):
        return label._replace(score=None, aux=tuple(name for name, _ in label.aux))

    def scores(labels):
        return [score or 0.0 for label in labels for score in (label.score, *(score for _, score in label.aux))]

    assert found.keys() == expected.keys()
    for name, labels in found.items():
        assert list(map(without_scores, labels)) == list(map(without_scores, expected[name]))
        np.testing.assert_allclose(scores(labels), scores(expected[name]), atol=1e-4)


def cut(rows):
    """Labels of every second column, which may end after the last frame, with the times that argon writes."""
    last = ends()
    return {name: [label._replace(end=min(label.end, last[name])) for label in labels] for name, labels in rows.items()}


def lattices_in(folder):
    return {
        lattice.utterance.rsplit("/", 1)[-1]: lattice for lattice in map(read_slf, sorted(Path(folder).glob("*.lat")))
    }


@pytest.mark.parametrize("more", [(), ("-detailed-alignment",)])
def test_words_states_and_lattices(slow, more):
    outcome = slow.run("argon", *STORED, "-outmlf", "hyp.mlf", *more, "--words", "hyp.ctm", "-lattice-prefix", "a/")
    assert (outcome.status, outcome.err) == (0, [])
    expected, timed = cut(rows_of("hyp.mlf")), read_ctm("hyp.ctm")
    lattices = lattices_in("a")
    outcome = slow.decode(*more, "--words", "hyp.ctm", "-lattice-prefix", "a/")
    assert (outcome.status, outcome.err) == (0, [])
    assert_alike(rows_of("hyp.mlf"), expected)
    assert read_ctm("hyp.ctm") == timed
    for name, found in lattices_in("a").items():
        plain, end = lattices[name], ends()[name] / 1e7
        np.testing.assert_allclose(found.time, np.minimum(plain.time, end), atol=1e-6)
        assert found.word == plain.word
        np.testing.assert_allclose(found.acoustic, plain.acoustic, atol=1e-4)
        for link, segments in enumerate(found.segments.rows()):
            length = found.time[found.end[link]] - found.time[found.start[link]]
            assert sum(seconds for _, seconds, _ in segments or [(None, length, None)]) == pytest.approx(
                length, abs=1e-6
            )
    if more:
        assert {name: labels[-1].end for name, labels in expected.items()} == ends()


def test_alignments(slow):
    options = ("-alignmlf", "words.mlf", "--dict", "dict", "-outmlf", "aligned.mlf", "--level", "phone")
    stored = [text for text in STORED if text not in ("-lm", "lm.arpa", "-acweight", "0.5")]
    assert slow.run("argon", *stored, *options).status == 0
    expected = cut(rows_of("aligned.mlf"))
    decode = [text for text in DECODE if text not in ("-lm", "lm.arpa", "-acweight", "0.5")]
    assert slow.run("argon", *decode, *options, "-infiles", "test.scp").status == 0
    assert_alike(rows_of("aligned.mlf"), expected)
    assert {name: labels[-1].end for name, labels in expected.items()} == ends()


def test_a_stream(slow):
    assert slow.decode("--features", "hcopy.config", infiles="audio.list").status == 0
    options = [text for text in DECODE if text not in ("--threads", "1")]
    for name, labels in rows_of("hyp.mlf").items():
        outcome = slow.run(
            *("argon", *options, "--features", "hcopy.config", "--stream", f"audio/{name}.wav", "--whole", "--json")
        )
        assert (outcome.status, outcome.err) == (0, [])
        final = [json.loads(line) for line in outcome.out][-2]
        assert [(word["word"], round(word["start"] * 1e7), round(word["end"] * 1e7)) for word in final["words"]] == [
            (label.name, label.start, label.end) for label in labels
        ]


def test_info_prints_it(slow, capsys):
    assert main(["info", "model/net"]) == 0
    assert "subsampling 2" in capsys.readouterr().out
