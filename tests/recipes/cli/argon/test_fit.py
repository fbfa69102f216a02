"""Whether `argon` notices an acoustic weight that is far off."""

from types import SimpleNamespace

import numpy as np
import pytest

from decoder.recognizer.jobs.decoding.fit import NO_FIT, measure, weight_remark
from recipes.cli.main import main


def result(acoustic, reason=""):
    return SimpleNamespace(reason=reason, path=SimpleNamespace(acoustic=np.array(acoustic)))


def test_the_gap_and_the_spread_are_those_of_the_rows_in_use():
    scores = np.asfortranarray(np.tile(np.array([[-1, 50, -3, -9, -4]], np.float32).T, 16))
    rows = np.array([0, 2, 3])
    fit = measure(scores, rows, result([-20, -30]))
    assert fit == (16, 16 * 2, 16, -16 + 50, 16 * 2)
    assert measure(scores, rows, result([], "no token reached a final state")) == (16, 32, 0, 0, 0)
    assert measure(scores, np.arange(5), result([-100])) == (16, 16 * 53, 16, 16 * 50 + 100, 16 * 53)
    scores[[2, 3]] = -np.inf
    assert measure(scores, rows, result([-20])) == NO_FIT
    assert fit.plus(fit) == (32, 64, 32, 68, 64)


@pytest.mark.parametrize(
    ("gap", "acweight", "expected"),
    [
        (0.2, 0.15, ""),
        (2.3, 0.15, ""),
        (2.5, 0.15, "-acweight 0.15 is probably too small: the best paths score 2.5 less per frame than the best "
         "states, 16% of the distance to the median state (1 to 5% is usual); otherwise the scores do not fit the"),
        (0.2, 2.4, ""),
        (9.0, 2.6, "-acweight 2.6 is probably too large: the median state of a frame costs 41.6 more than the best"),
    ],
)  # fmt: skip
def test_the_remark(gap, acweight, expected):
    fit = NO_FIT._replace(frames=200, spread=3200, path_frames=100, gap=100 * gap, path_spread=1600)
    assert weight_remark(fit, acweight).startswith(expected)
    assert bool(expected) == bool(weight_remark(fit, acweight))
    assert weight_remark(fit._replace(frames=99), acweight) == ""
    assert weight_remark(fit._replace(path_frames=0, gap=0, path_spread=0), 0.01) == ""
    assert weight_remark(fit._replace(spread=0, path_spread=0), 0.01) == ""  # most states tie with the best one


def test_argon_remarks_on_a_weight_that_is_far_off(user, capsys):
    assert user.decode().err == []
    assert user.decode("-acweight", "0.1").err == []
    for acweight, what in (("0.0005", "small"), ("40", "large")):
        outcome = user.decode("-acweight", acweight, "-beam", "30")
        note = next(line for line in outcome.err if line.startswith("note: "))
        assert f"-acweight {acweight} is probably too {what}: " in note
        assert (user.root / "hyp.mlf.report").read_text().splitlines()[1] == note.replace(
            "note: ", "# acoustic weight: "
        )
        capsys.readouterr()
        assert main(["info", "hyp.mlf.report"]) == 0
        assert "  acoustic weight -acweight" in capsys.readouterr().out
