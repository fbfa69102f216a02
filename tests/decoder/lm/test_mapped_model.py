"""Language models in mapped files beside their ARPA files."""

import os

import numpy as np
import pytest

from decoder.lm.language_model import LanguageModel, LMArrays
from decoder.lm.mapped_model import (
    FORMAT,
    _source_of,
    load_language_model,
    mapped_path,
    open_language_model,
    save_language_model,
)
from decoder.storage.mapped_file import BLOCK, MappedFormat
from readers.errors import ArgonautError, FormatError
from readers.language.arpa import write_arpa
from tests.decoder.graphs import make_arpa, random_orders


@pytest.fixture
def arpa(tmp_path):
    return put(tmp_path / "lm.arpa", 1)


def put(path, seed):
    write_arpa(path, make_arpa(*random_orders(np.random.default_rng(seed), ["x", "y", "zwölf"], 3)))
    return path


def facts(model):
    return [array.tolist() for array in model.arrays], model.vocabulary, model.order, model.start_state, model.end_id


def test_mapped_file_is_written_once_and_gives_the_same_model(arpa):
    model = open_language_model(arpa, least_size=0)
    written = mapped_path(arpa).stat().st_mtime_ns
    again = open_language_model(arpa, least_size=0)
    assert facts(again) == facts(model)
    assert mapped_path(arpa).stat().st_mtime_ns == written
    arpa.write_text("no model any more", encoding="utf-8")
    os.utime(arpa, ns=(0, 0))
    with pytest.raises(FormatError):  # the file is of another text
        open_language_model(arpa, least_size=0)


def test_mapped_arrays_suit_the_kernels_that_others_were_compiled_for(arpa):
    model, mapped = open_language_model(arpa, least_size=0), open_language_model(arpa, least_size=0)
    for one, two in zip(model.arrays, mapped.arrays):
        assert (one.dtype, one.flags.writeable, one.flags.aligned) == (two.dtype, two.flags.writeable, True)
    assert mapped.step(mapped.start_state, 2) == model.step(model.start_state, 2)


def test_mapped_file_is_made_again_when_the_text_changes(arpa):
    open_language_model(arpa, least_size=0)
    put(arpa, 2)
    assert facts(open_language_model(arpa, least_size=0)) == facts(
        open_language_model(put(arpa.with_name("other"), 2), least_size=0)
    )


def test_sentences_of_a_model_without_a_start_begin_without_history(tmp_path):
    vocabulary, (unigrams,) = random_orders(np.random.default_rng(1), ["x"], 1)
    arpa = make_arpa(vocabulary[1:], [{words: value for words, value in unigrams.items() if words != ("<s>",)}])
    write_arpa(tmp_path / "lm", arpa)
    save_language_model(LanguageModel.from_arpa(arpa), tmp_path / "lm.mapped", _source_of(tmp_path / "lm"))
    for least_size in (0, 1 << 20):
        lines = []
        model = open_language_model(tmp_path / "lm", lines.append, least_size=least_size)
        assert lines == [f"{tmp_path / 'lm'}: no unigram <s>; sentences begin without history"]
        assert model.start_state == 0
    open_language_model(tmp_path / "lm")  # without a log


def test_small_models_have_no_mapped_file(arpa):
    open_language_model(arpa)
    assert not mapped_path(arpa).exists()


def test_damaged_mapped_file_is_made_again_with_a_line(arpa):
    model, lines = open_language_model(arpa, least_size=0), []
    whole = mapped_path(arpa).read_bytes()
    for damaged in (whole[:40], whole[:-7], b"not one" + whole[7:], whole[:8] + b"\x09" + whole[9:]):
        mapped_path(arpa).write_bytes(damaged)
        assert facts(open_language_model(arpa, lines.append, least_size=0)) == facts(model)
        assert mapped_path(arpa).read_bytes()[:8] == whole[:8]
    assert len(lines) == 4
    assert all(line.startswith(str(mapped_path(arpa))) and line.endswith("; writing it again") for line in lines)


def test_place_that_cannot_be_written_is_told(arpa):
    mapped_path(arpa).mkdir()
    lines = []
    assert open_language_model(arpa, lines.append, least_size=0).order == 3
    assert "not written" in lines[-1]


def refused(arpa, message, order=3, **changes):
    """Check that a mapped file with some arrays changed is refused with `message`."""
    model = open_language_model(arpa, least_size=0)
    arrays = model.arrays._replace(**changes)
    save_language_model(LanguageModel(arrays, model.vocabulary, order, model.start_state), arpa.with_name("wrong"))
    with pytest.raises(ArgonautError, match=message):
        load_language_model(arpa.with_name("wrong"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("first_arc", -1), ("first_arc", 10**9), ("word", -1), ("word", 99), ("next_state", -1), ("next_state", 99)),
        *(("cost", np.nan), ("cost", -np.inf), ("cost", -3e38), ("backoff_cost", np.nan), ("backoff_cost", 3e38)),
        *(("backoff_state", 99), ("backoff_state", -2)),
    ],
)
@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_numbers_out_of_range_are_refused(arpa, name, value, place):
    array = getattr(open_language_model(arpa, least_size=0).arrays, name).copy()
    array[round(place * (len(array) - 1))] = value
    refused(arpa, f"wrong: (offsets in )?{name} (from|contains|do not rise)", **{name: array})


def test_offsets_whose_differences_overflow_are_refused(arpa):
    first = open_language_model(arpa, least_size=0).arrays.first_arc.copy()
    first[2:5] = (2**63 - 1, -(2**63), -1)
    refused(arpa, "offsets in first_arc do not rise from 0", first_arc=first)


def test_back_off_states_lead_to_the_empty_history(arpa):
    model = open_language_model(arpa, least_size=0)
    states = model.arrays.backoff_state.copy()
    states[0] = 1
    refused(arpa, "backing off does not end", backoff_state=states)
    chain = np.maximum(np.arange(model.num_states, dtype=np.int32) - 1, 0)  # longer than the stacks of the kernels
    refused(arpa, "after at most 3 steps", backoff_state=chain)
    refused(arpa, "order 2000000000, start state", order=2_000_000_000)


def test_the_empty_history_lists_every_word(arpa):
    word = open_language_model(arpa, least_size=0).arrays.word.copy()
    word[:2] = word[1::-1]
    refused(arpa, "the empty history does not list every word", word=word)


def test_a_changed_bit_is_noticed_and_the_file_made_again(arpa):
    model, lines = open_language_model(arpa, least_size=0), []
    raw = bytearray(mapped_path(arpa).read_bytes())
    raw[-40] ^= 1
    mapped_path(arpa).write_bytes(raw)
    with pytest.raises(FormatError, match="wrong checksum of the bytes from 0"):
        load_language_model(mapped_path(arpa))
    assert facts(open_language_model(arpa, lines.append, least_size=0)) == facts(model)
    assert "wrong checksum" in lines[0]


def test_every_block_has_a_checksum(tmp_path):
    format = MappedFormat(b"ANYTHING", 1, {"numbers": "<i4"}, "file", "make it")
    numbers = np.arange(3 * BLOCK // 4 + 5, dtype=np.int32)
    format.write(tmp_path / "file", 0, {"numbers": numbers})
    np.testing.assert_array_equal(format.read(tmp_path / "file")[1]["numbers"], numbers)
    for block in range(4):
        raw = bytearray((tmp_path / "file").read_bytes())
        raw[block * BLOCK + 100] ^= 16
        (tmp_path / "changed").write_bytes(raw)
        with pytest.raises(FormatError, match=f"changed: wrong checksum of the bytes from {block * BLOCK}; "):
            format.read(tmp_path / "changed")


def test_arrays_of_different_lengths_are_refused(arpa):
    model = open_language_model(arpa, least_size=0)
    sections = FORMAT.read(mapped_path(arpa))[1]
    FORMAT.write(arpa.with_name("wrong"), 3, {**sections, "cost": model.arrays.cost[:-1]})
    with pytest.raises(FormatError, match="entries in cost; expected"):
        load_language_model(arpa.with_name("wrong"))
    assert set(LMArrays._fields[:6]) < set(sections)
