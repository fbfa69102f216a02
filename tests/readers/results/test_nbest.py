"""N-best lists: a round trip, a file laid out by hand, one test per message."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import FormatError
from readers.results.nbest import Hypothesis, read_nbest, write_nbest

WORD = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_categories=("Z", "C")), min_size=1)
SCORE = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.lists(WORD, max_size=5).map(tuple)


@st.composite
def hypothesis(draw):
    words = draw(WORDS)
    bounds = draw(st.lists(st.integers(0, len(words)), max_size=2).map(sorted))
    return Hypothesis(words, draw(SCORE), draw(SCORE), tuple(bounds))


NAME = WORD.filter(lambda name: not name.startswith("#"))
LISTS = st.dictionaries(NAME, st.lists(hypothesis(), min_size=1, max_size=4), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(lists=LISTS)
def test_lists_survive_the_file(tmp_path_factory, lists):
    path = tmp_path_factory.mktemp("nbest") / "lists"
    write_nbest(path, lists)
    found = read_nbest(path)
    assert found == lists
    assert list(found) == list(lists)


def test_a_file_by_hand(tmp_path):
    path = tmp_path / "lists"
    path.write_text("# two utterances\nb1 -100.5 -7 2 one two\nb1 -101 -6.25 1 one\n\na2 -3 0 0\n")
    assert read_nbest(path) == {
        "b1": [Hypothesis(("one", "two"), -100.5, -7.0), Hypothesis(("one",), -101.0, -6.25)],
        "a2": [Hypothesis((), -3.0, 0.0)],
    }


def test_sentences_of_a_hypothesis(tmp_path):
    path = tmp_path / "lists"
    path.write_text("a -3 0 3 !SENT_START one two !SENT_START three\n")
    one = read_nbest(path)["a"][0]
    assert (one.words, one.bounds) == (("one", "two", "three"), (0, 2))
    assert one.sentences == ((), ("one", "two"), ("three",))
    assert Hypothesis((), 0.0, 0.0).sentences == ((),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u1 -1 -2\n", r"lists:1: 'u1 -1 -2'; expected `utterance acoustic lm number-of-words word ...`"),
        ("u1 -1 -2 x y\n", r"lists:1: 'u1 -1 -2 x y'; expected `utterance"),
        ("u1 -1 -2 1 y\nu1 -1 -2 3 y\n", "lists:2: 1 words; expected 3"),
        ("a 0 0 0\nb 0 0 0\na 0 0 0\n", "lists:3: a again; expected adjacent lines for an utterance"),
        ("a x 0 0\n", "lists:1: acoustic score 'x'; expected a finite number"),
        ("a 0 nan 0\n", "lists:1: lm score 'nan'; expected a finite number"),
        ("a -inf 0 0\n", "lists:1: acoustic score '-inf'"),
        ("# nothing\n", "lists: no hypotheses; expected lines"),
    ],
)
def test_what_is_no_list_is_refused_with_its_line(tmp_path, text, message):
    (tmp_path / "lists").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_nbest(tmp_path / "lists")


@pytest.mark.parametrize("name", ["a b", "#a", ""])
def test_a_name_that_cannot_be_read_back_is_not_written(tmp_path, name):
    with pytest.raises(FormatError, match="expected a name without blanks"):
        write_nbest(tmp_path / "lists", {name: [Hypothesis((), 0.0, 0.0)]})
    assert not list(tmp_path.iterdir())
