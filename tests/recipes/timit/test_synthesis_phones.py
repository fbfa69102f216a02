"""The phones of the synthesised corpus: what eSpeak's phonemes become in TIMIT's alphabet, and their times."""

import numpy as np
import pytest

from readers.errors import ArgonautError, FormatError
from recipes.timit.prepare import phone_set
from recipes.timit.synthesis import DATA, phones
from recipes.timit.synthesis.espeak import Sound
from recipes.timit.synthesis.phones import Phone, add_epenthetic_silence, read_phone_table, timit_phones
from recipes.timit.synthesis.speakers import read_voices

RATE = 22050
TABLE = read_phone_table(DATA / "espeak-phones.txt")


def voiced(length, silences=()):
    """int16 samples that are loud but for (start, end) stretches of silence."""
    samples = np.full(length, 1000, np.int16)
    for start, end in silences:
        samples[start:end] = 0
    return samples


def convert(spelling, silences=(), length=2000):
    """Phones of sounds of `length` samples each, `name:word` separated by blanks."""
    sounds = []
    for i, item in enumerate(spelling.split()):
        name, _, word = item.partition("/")
        sounds.append(Sound(name, i * length, (i + 1) * length, int(word or 0)))
    return timit_phones(sounds, voiced(len(sounds) * length, silences), RATE, TABLE)


def names(found):
    return [phone.name for phone in found]


def test_voiceless_stop_takes_its_closure_from_the_silence_before():
    found = convert("a t a", silences=[(1400, 2000)])
    assert found == [
        Phone("ae", 0, 1400, 0),
        Phone("tcl", 1400, 2000, 0),
        Phone("t", 2000, 4000, 0),
        Phone("ae", 4000, 6000, 0),
    ]


def test_voiced_stop_is_divided_by_its_shares():
    assert convert("a d a")[1:3] == [Phone("dcl", 2000, 3200, 0), Phone("d", 3200, 4000, 0)]


def test_voiced_stop_with_a_short_silence_has_both():
    # 200 samples are 9 ms: too little for a closure, so the share counts too.
    assert convert("a d a", silences=[(1800, 2000)])[1:3] == [Phone("dcl", 1800, 3200, 0), Phone("d", 3200, 4000, 0)]


def test_stop_after_a_pause_has_no_closure():
    assert names(convert("a _: k a", silences=[(2000, 4000)])) == ["ae", "pau", "k", "ae"]
    assert names(convert("k a")) == ["k", "ae"]


def test_stop_before_a_stop_is_not_released():
    found = convert("a d t a", silences=[(3250, 4000)])  # 50 samples of the d's burst are left
    assert names(found) == ["ae", "dcl", "tcl", "t", "ae"]
    assert found[1].end == found[2].start == 3250


def test_sonorant_that_lies_in_the_vowel_gets_a_share_of_it():
    found = convert("a l t a", silences=[(2010, 4000)])
    assert names(found) == ["ae", "l", "tcl", "t", "ae"]
    assert (found[1].start, found[1].end) == (2010 - int(0.030 * RATE), 2010)


def test_glottal_stop_is_long_enough_for_three_states():
    found = timit_phones(
        [Sound("V", 0, 3000, 0), Sound("?", 3000, 3441, 0), Sound("n-", 3441, 5000, 0)], voiced(5000), RATE, TABLE
    )
    assert names(found) == ["ah", "q", "en"]
    assert (found[1].start, found[1].end) == (3441 - int(0.042 * RATE), 3441)


def test_pauses_join_and_vanish_at_the_ends():
    found = convert("_: a _: _ a _:")
    assert [(p.name, p.start, p.end) for p in found] == [("ae", 2000, 4000), ("pau", 4000, 8000), ("ae", 8000, 10000)]


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("a h a", "ae hv ae"),
        ("s/0 h/1 a/1", "s hh ae"),
        ("n u:", "n ux"),
        ("m u:", "m uw"),
        ("V n i", "ah nx iy"),
        ("V n/0 i/1", "ah n iy"),
        ("@ n i", "ax n iy"),
        ("s @ f", "s ax-h f"),
        ("s @ v", "s ax v"),
        ("D @ m/0 a/1", "dh em ae"),
        ("D @ m a", "dh ax m ae"),
        ("l @ m/0 a/1", "l ax m ae"),
        ("eI k @ n/0 a/1", "ey kcl k eng ae"),
        ("eI l @ n/0 a/1", "ey l ax n ae"),
        ("D I2 ; a", "dh ix ae"),
        ("b V ? n-", "b ah q en"),
        ("b V t# 3 0 @L", "b ah dx axr aa el"),
    ],
)
def test_phones_in_context(spelling, expected):
    silences = [(3000, 4000)] if "k" in spelling.split() else ()
    assert " ".join(names(convert(spelling, silences))) == expected


def test_timit_phones_unknown_phoneme():
    with pytest.raises(ArgonautError, match="phoneme 'xx' of eSpeak NG: not in the phone table"):
        convert("a xx")
    with pytest.raises(ArgonautError, match="no phonemes; expected speech"):
        convert("_: _:")


@pytest.mark.parametrize("seed", [0])
def test_epenthetic_silence_is_heard_where_it_is_labelled(seed):
    samples = voiced(8000)
    found = [Phone("s", 0, 2000, 0), Phone("l", 2000, 4000, 0), Phone("s", 4000, 6000, 0), Phone("ow", 6000, 8000, 0)]
    rng = np.random.default_rng(seed)
    some = [add_epenthetic_silence(found, voiced(8000), RATE, rng) for _ in range(400)]
    split = [result for result in some if len(result) == 5]
    assert len(split) / 400 == pytest.approx(phones.EPENTHESIS_RATE, abs=0.06)
    assert {tuple(names(result)) for result in split} == {("s", "epi", "l", "s", "ow")}
    while len(result := add_epenthetic_silence(found, samples, RATE, rng)) == 4:
        pass
    assert not samples[result[1].start : result[1].end].any()
    assert np.count_nonzero(samples) == 8000 - (result[1].end - result[1].start)


def test_phone_table_gives_timit_phones_and_the_rest_comes_from_context():
    known = set(phone_set())
    given = {phone for parts in TABLE.values() for phone, _ in parts}
    assert known >= given
    assert known - given == {"hv", "ux", "nx", "ax-h", "em", "eng", "epi", "pau", "h#"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a ae:60 r:30\n", "table:1: shares 60 30; expected integers that sum to 100"),
        ("a ae\na ah\n", "table:2: 'a ah'; expected a phoneme, once"),
        ("a\n", "table:1: 'a'; expected a phoneme"),
    ],
)
def test_read_phone_table_faults_name_the_line(tmp_path, text, message):
    (tmp_path / "table").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_phone_table(tmp_path / "table")


def test_read_voices_faults_name_the_line(tmp_path):
    (tmp_path / "voices").write_text("# note\nf1 x\n")
    with pytest.raises(FormatError, match="voices:2: 'f1 x'; expected a voice and its sex"):
        read_voices(tmp_path / "voices")
