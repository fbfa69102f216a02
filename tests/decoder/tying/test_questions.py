"""Questions made from the statistics of the phones: classes that sound alike, on either side, for any names."""

import numpy as np
import pytest

from decoder.tying import StateRun, Statistics, phone_questions
from readers.errors import GraphError
from readers.htk.edit_script import EditScript, read_edit_script, write_edit_script


def statistics_of(means: dict[str, list[float]], frames: int = 50) -> Statistics:
    """Statistics of phones: a mean for each of their states."""
    rng, statistics = np.random.default_rng(0), Statistics(1)
    for model, places in means.items():
        phone = model.split("-")[-1].split("+")[0]
        runs = [
            StateRun(phone, model, state, frames * i, frames * (i + 1), 0)
            for i, state in enumerate(range(2, 2 + len(places)))
        ]
        values = np.concatenate([mean + 0.1 * rng.normal(size=frames) for mean in places])
        statistics.add(runs, np.asfortranarray(values[None], dtype=np.float32))
    return statistics


def classes(questions, side: str) -> set[frozenset[str]]:
    """The sets of phones that a side's questions ask for."""
    names = [[p.removesuffix("-*").removeprefix("*+") for p in q.patterns] for q in questions.values()]
    return {frozenset(found) for found, name in zip(names, questions) if name[0] == side}


def test_phones_with_like_states_form_classes_and_every_phone_a_question():
    means = {"a": [0, 0], "e": [1, 1], "i": [2, 2], "p": [50, 50], "t": [51, 51], "sil": [200, 200]}
    questions = phone_questions(statistics_of(means), {"sil"})
    for side in "LR":
        found = classes(questions, side)
        assert {frozenset("aei"), frozenset("pt")} < found
        assert {frozenset([phone]) for phone in means} < found
        assert frozenset(means) not in found
    for name, yes, no in (("L_a", "a-b+c", "b-a+a"), ("R_a", "b-c+a", "a-b+c")):
        assert questions[name](yes)
        assert not questions[name](no)


def test_last_states_give_the_left_classes_and_first_states_the_right_ones():
    """Diphthongs: two begin alike and two end alike, but no two are alike."""
    means = {"ai": [0, 300], "au": [0, 600], "oi": [1000, 300], "eu": [2000, 600]}
    questions = phone_questions(statistics_of(means), ())
    assert {frozenset({"ai", "oi"}), frozenset({"au", "eu"})} <= classes(questions, "L")
    assert frozenset({"ai", "au"}) in classes(questions, "R")
    assert frozenset({"ai", "oi"}) not in classes(questions, "R")


def test_triphones_are_added_up_and_pauses_left_out():
    triphones = statistics_of({"sil-a+b": [0], "b-a+b": [2], "a-b+a": [9], "sil": [30], "sp": [31]})
    questions = phone_questions(triphones, {"sil", "sp"}, "sp")
    assert {name for name in questions if not name[2:].isdigit()} == {
        f"{s}_{p}" for s in "LR" for p in ("a", "b", "sil")
    }
    assert frozenset("ab") in classes(questions, "L")


def test_phones_with_different_numbers_of_states_and_any_names(tmp_path):
    means = {"tʃ": [0, 0, 0, 0, 0], "a:": [0, 0, 0], "6'": [90, 90, 90], '"E': [91, 91], "\\": [500]}
    questions = phone_questions(statistics_of(means), ())
    assert {frozenset({"tʃ", "a:"}), frozenset({"6'", '"E'})} < classes(questions, "R")
    write_edit_script(tmp_path / "questions.hed", EditScript(questions))
    assert read_edit_script(tmp_path / "questions.hed").questions == questions


def test_numbers_of_classes_skip_phones_that_are_numbers():
    questions = phone_questions(statistics_of({"1": [0], "3": [1], "a": [50], "b": [51]}), ())
    assert classes(questions, "L") >= {frozenset(found) for found in ("13", "ab", "1", "3", "a", "b")}
    assert questions["L_1"].patterns == ("1-*",)
    assert {name for name in questions if name.startswith("R_")} == {"R_1", "R_2", "R_3", "R_4", "R_a", "R_b"}


def test_no_question_asks_for_phones_with_wildcards():
    """X-SAMPA's glottal stop is `?`, which matches any phone of one letter in a pattern."""
    statistics = statistics_of({"?": [0], "?\\": [1], "a": [50], "b": [51], "c": [2]})
    questions = phone_questions(statistics, ())
    assert classes(questions, "R") == {frozenset(found) for found in ("ab", "a", "b", "c")}
    with pytest.raises(GraphError, match="no frames of any phone"):
        phone_questions(statistics_of({"?": [0]}), ())


@pytest.mark.parametrize(("names", "expected"), [("a", 2), ("ab", 4), ("abc", 9)])
def test_few_phones(names, expected):
    questions = phone_questions(statistics_of({name: [7.0 * i, 0.0] for i, name in enumerate(names)}), ())
    assert len(questions) == expected


def test_no_phones():
    with pytest.raises(GraphError, match="questions: no frames of any phone; expected statistics"):
        phone_questions(Statistics(1), ())
