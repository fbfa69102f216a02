"""`argonaut lattice rescore`: the scores of another language model, and faults."""

import pytest

from decoder.lm.mapped_model import open_language_model
from readers.htk.mlf import read_mlf
from readers.htk.slf import read_slf
from recipes.cli.main import main
from tests.decoder.lattices.small_lattices import paths, spoken
from tests.recipes.cli.three_lattices import NAMES, lattices, make_lattices, run

ARPA = """\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-99 <s> -0.5
-1 </s>
-0.5 a -0.25
-0.75 b -1
-2 c -0.5

\\2-grams:
-0.125 <s> c
-0.25 a b
-0.25 b </s>

\\end\\
"""


@pytest.fixture
def place(tmp_path):
    """Three lattices, their index and a reference."""
    return make_lattices(tmp_path)


def test_scores_of_another_language_model(place, capsys):
    (place / "other.arpa").write_text(ARPA)
    arguments = ("--lm", place / "other.arpa", "--lm-scale", 1.5, "--prefix", place / "new", "--mlf", place / "new.mlf")
    code, shown = run(place, capsys, "rescore", *arguments)
    assert code == 0
    model = open_language_model(place / "other.arpa")
    before, after = lattices(place), [read_slf(place / f"new{k}.lat") for k in (1, 2, 3)]
    assert (place / "new.index").read_text() == (place / "test.index").read_text()
    chosen, others = {}, 0
    for lattice, (name, old) in zip(after, before.items()):
        assert lattice.utterance == name
        assert lattice.header == old.header | {"lmname": "other.arpa"}
        assert (lattice.lm_scale, lattice.acoustic_scale) == (1.5, old.acoustic_scale)
        scores = []
        for path, old_score in paths(old):
            words = spoken(old, path)
            lm = -float(model.sentence_costs([words])[0].sum())
            scores.append((old_score - 2.0 * old.lm[list(path)].sum() + 1.5 * lm, old_score, words))
        assert sorted(s for _, s in paths(lattice)) == pytest.approx(sorted(s for s, _, _ in scores), abs=1e-5)
        chosen[name] = max(scores)[2]
        others += chosen[name] != max(scores, key=lambda one: one[1])[2]
    links = sum(one.num_links for one in before.values()), sum(one.num_links for one in after)
    assert f"new.index: {links[0]} links became {links[1]}, {others} best paths have other words; lat" in shown.out
    assert others  # or the test says little

    # What other commands make of the result.
    assert main(["lattice", "words", "--lattices", str(place / "new.index"), "--mlf", str(place / "words.mlf")]) == 0
    for file in ("new.mlf", "words.mlf"):
        found = read_mlf(place / file)
        assert {name: [label.name for label in found[name]] for name in NAMES} == chosen
    capsys.readouterr()
    assert main(["score", str(place / "ref.mlf"), str(place / "new.mlf")]) == 0
    assert "WER" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--lm", "none.arpa", "--prefix", "new"], 2, "none.arpa: No such file"),
        (["--lm", "other.arpa", "--prefix", "test"], 2, "would overwrite --lattices; expected another prefix"),
        (
            ["--lm", "other.arpa", "--prefix", "new", "--lm-scale", "nan"],
            2,
            "--lm-scale is nan; expected a finite number, at least 0",
        ),
        (["--lm", "few.arpa", "--prefix", "new"], 2, "words not in the language model: "),
        (["--lm", "bad.arpa", "--prefix", "new"], 2, "bad.arpa"),
    ],
)
def test_faults_of_rescoring_are_one_line(place, capsys, monkeypatch, arguments, code, message):
    monkeypatch.chdir(place)
    (place / "other.arpa").write_text(ARPA)
    (place / "few.arpa").write_text("\\data\\\nngram 1=2\n\n\\1-grams:\n-99 <s>\n-1 </s>\n\n\\end\\\n")
    (place / "bad.arpa").write_text("what is this\n")
    found, shown = run(place, capsys, "rescore", *arguments)
    assert found == code
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) == 1
    assert not list(place.glob("new*"))


def test_a_scale_that_is_no_number(place, capsys):
    (place / "other.arpa").write_text(ARPA)
    text = (place / "test2.lat").read_text()
    (place / "test2.lat").write_text(text.replace("acscale=0.25", "acscale=quiet"))
    code, shown = run(place, capsys, "rescore", "--lm", place / "other.arpa", "--prefix", place / "new")
    assert code == 1
    assert "test2.lat: header: acscale=quiet; expected a number" in shown.err
    assert "2 done, 0 skipped, 1 failed" in shown.out
