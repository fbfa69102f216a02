"""Tables of the names of many utterances."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common import names as names_module
from readers.common.names import KeySet, KeyTable, hashes_of, names_for_any_path, repeated


def test_a_table_of_keys_finds_their_numbers_with_few_bytes_each():
    names = [f"speaker{i % 7}/utterance{i}" for i in range(3000)]
    table = KeyTable(names.__getitem__)
    for begin in range(0, 3000, 700):
        table.extend(hashes_of(names[begin : begin + 700]))
    assert len(table) == 3000
    assert [table.find(name) for name in names] == list(range(3000))
    assert table.find("speaker0/utterance1") is None
    assert KeyTable(names.__getitem__).find("a") is None
    assert table.known(hashes_of(["speaker0/utterance0", "other"])).tolist() == [True, False]
    assert KeyTable(names.__getitem__).known(hashes_of(names)).sum() == 0


def test_equal_hashes_do_not_make_keys_equal(monkeypatch):
    monkeypatch.setattr(names_module, "hash", len, raising=False)
    names = ["ab", "cd", "e", "ab"]
    table = KeyTable(names.__getitem__)
    table.extend(hashes_of(names[:3]))
    assert [table.find(name) for name in ("ab", "cd", "e", "xy")] == [0, 1, 2, None]
    assert list(repeated(names, names.__getitem__)) == [(3, 0)]


def test_a_set_of_keys_has_those_that_were_given():
    keys = KeySet(["b", "a", "b"])
    assert ["a" in keys, "b" in keys, "c" in keys, "a" in KeySet([])] == [True, True, False, False]
    assert keys.contains(hashes_of(["c", "b"])).tolist() == [False, True]
    assert KeySet([]).contains(hashes_of(["c"])).tolist() == [False]


@given(st.lists(st.sampled_from("abcde"), max_size=12))
def test_repeated_names_come_with_their_first_place(names):
    assert list(repeated(iter(names), names.__getitem__)) == [
        (i, names.index(name)) for i, name in enumerate(names) if names.index(name) < i
    ]


@settings(max_examples=100)
@given(st.lists(st.text("ab/", max_size=5), max_size=8, unique=True), st.booleans())
def test_names_for_any_path_are_last_parts_unless_several_end_alike(names, collide):
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            patch.setattr(names_module, "hash", lambda name: 0, raising=False)
        found = names_for_any_path(names)
    ends = [name.split("/")[-1] for name in names]
    assert found == {
        name: end if ends.count(end) == 1 else name.lstrip("/") for name, end in zip(names, ends, strict=True)
    }
