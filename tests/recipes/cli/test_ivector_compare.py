"""`argonaut ivector compare`: scores, error rates by class, the picture, and messages."""

from pathlib import Path

import numpy as np
import pytest

from readers.htk.parameter_file import write_htk
from recipes.cli.main import main

SPEAKERS = [f"s{number}" for number in range(12)]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """I-vectors of 12 speakers, four utterances each, in the current directory; s0 and s1 sound alike."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(6)
    places = {speaker: 3 * random.standard_normal(6) for speaker in SPEAKERS}
    places["s1"] = places["s0"]
    lines, names = [], []
    for speaker in SPEAKERS:
        for number in range(4):
            vector = places[speaker] + 0.3 * random.standard_normal(6)
            name = f"{speaker}-{number}"
            write_htk(f"{name}.ivec", np.asfortranarray(vector[:, None], np.float32), "USER")
            lines.append(f"{name}.ivec={name}.ivec[0,0]\n")
            names.append(f"{name} {speaker}\n")
    Path("all.scp").write_text("".join(lines))
    Path("test.scp").write_text("".join(lines[:24]))
    Path("train.scp").write_text("".join(lines[24:]))
    Path("speakers").write_text("".join(names))
    Path("classes").write_text("".join(f"{s} {'child' if s in ('s0', 's1', 's2') else 'adult'}\n" for s in SPEAKERS))
    return tmp_path


def compare(*more, speakers="speakers"):
    return main(["ivector", "compare", "test.scp", "--speakers", speakers, "-o", "scores", *map(str, more)])


def scores():
    return [(a, b, float(score), kind) for a, b, score, kind in map(str.split, Path("scores").read_text().splitlines())]


def test_scores_are_cosines_and_errors_are_counted_by_class(corpus, capsys):
    assert compare("--halves", "--classes", "classes", "--picture", "det.png") == 0
    rows = {row[:2]: row[2:] for row in scores()}
    assert len(rows) == 36

    def mean(speaker, numbers):
        from readers.htk.parameter_file import read_htk

        vectors = [read_htk(f"{speaker}-{number}.ivec").frames[:, 0] for number in numbers]
        return np.mean([vector / np.linalg.norm(vector) for vector in vectors], axis=0)

    left, right = mean("s3", (0, 1)), mean("s5", (2, 3))
    cosine = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
    score, kind = rows["s3/1", "s5/2"]
    assert (score, kind) == (pytest.approx(cosine, rel=1e-3), "nontarget")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("(6 pairs of one speaker, 30 of two); scores")
    assert "adult: equal error rate 0.0%" in lines
    alike = [line for line in lines if line.startswith("at the threshold of all, child: ")]
    assert alike[0].endswith(" of 6 false alarms")
    assert Path("det.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_of_other_speakers_scores_with_likelihood_ratios(corpus, capsys):
    assert compare("--training", "train.scp", "--dim", 3) == 0
    rows = scores()
    assert len(rows) == 24 * 23 // 2
    targets = [score for _, _, score, kind in rows if kind == "target"]
    others = [score for a, b, score, kind in rows if kind != "target" and {a[:2], b[:2]} != {"s0", "s1"}]
    assert np.median(targets) > 0 > np.median(others)
    assert "(36 pairs of one speaker, 240 of two)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--dim", 3), "--dim is given without --training"),
        (("--picture", "scores"), "--picture is scores, which has the results; expected another file"),
        (("--picture", "scores.report"), "--picture is scores.report, which has the results; expected another file"),
        (("--halves", "--trials", "trials"), "--halves is given with --trials; expected one of them"),
        (("--trials", "one"), "one: no pair of two speakers; expected pairs of both kinds"),
        (("--classes", "one"), "one:1: 's0-0 s0-1 target'; expected `name speaker`, each name once"),
    ],
)
def test_what_cannot_be_compared_is_refused(corpus, capsys, more, message):
    Path("one").write_text("s0-0 s0-1 target\n")
    assert compare(*more) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not Path("scores").exists()


def test_a_vector_that_cannot_be_read_is_left_out(corpus, capsys):
    Path("s0-1.ivec").unlink()
    assert compare() == 1
    assert len(scores()) == 23 * 22 // 2
    assert "s0-1" in Path("scores.report").read_text()


def test_a_vector_of_the_training_that_cannot_be_read_is_reported(corpus, capsys):
    Path("s9-1.ivec").unlink()
    assert compare("--training", "train.scp") == 1
    assert len(scores()) == 24 * 23 // 2
    assert "s9-1" in Path("scores.report").read_text()
