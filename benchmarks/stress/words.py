"""Dictionaries of any size: words of a text, invented words, and pronunciations by spelling or from a file.

Invented words are sequences of syllables; rarer words are longer.  The rules of `data/spelling.txt` give their
pronunciations, so that some are homophones (`seak` and `seek`).  Words are sorted by rank: the first 5,000 of 60,000
words are those of a dictionary of 5,000.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.stress.donor import PHONES, SILENCE, VOWELS
from benchmarks.stress.spelling import NEUTRAL, Spelling
from readers.dictionaries.forms import read_any_dictionary
from readers.errors import ConfigError
from readers.htk.dictionary import Pronunciation, write_dictionary

ONSETS = (
    "b c d f g h j l m n p r s t v w b d f g h k l m n p r s t "
    "bl br ch cl cr dr fl fr gl gr pl pr qu sc sh sk sl sm sn sp st str sw th tr wh wr y z"
).split()
NUCLEI = "a a a e e e i i i o o o u u ai au ay ea ee ei ew ia ie oa oi oo ou ow oy ue er ar or".split()
CODAS = "b ck d g ll m n p r s t x b d m n r s t ct ff ft ld lk lm lt mp nch nd ng nk nt ph pt rd rk rm rn rt sh sk sp st th".split()  # noqa: E501
OPEN_SYLLABLES = 0.45  # fraction of syllables that end in a vowel
EXTRA_SYLLABLES, FIRST_RANKS = 0.19, 30  # a word of rank r has 1 + Poisson(0.19 ln(1 + r / 30)) syllables
MOST_SYLLABLES = 6
VARIANTS = 0.05  # fraction of words with a second pronunciation
VARIANT_PROBABILITY = 0.3  # relative to the first pronunciation
MARKS = ("<s>", "</s>")


def make_words(count: int, rng: np.random.Generator, taken: Iterable[str] = ()) -> list[str]:
    """Return distinct words that are not in `taken`, the most frequent first."""
    words = dict.fromkeys(taken)
    num_taken = len(words)
    while len(words) < num_taken + count:
        rank = len(words)
        word = ""
        for _ in range(min(1 + rng.poisson(EXTRA_SYLLABLES * np.log1p(rank / FIRST_RANKS)), MOST_SYLLABLES)):
            word += ONSETS[rng.integers(len(ONSETS))] if rng.random() < 0.85 or word else ""
            word += NUCLEI[rng.integers(len(NUCLEI))]
            word += "" if rng.random() < OPEN_SYLLABLES else CODAS[rng.integers(len(CODAS))]
        words[word] = None
    return list(words)[num_taken:]


def pronounce(words: Sequence[str], rng: np.random.Generator, known: dict[str, list] | None = None) -> list:
    """Return dictionary entries for <s>, </s> and the words: from `known`, else by spelling; some have a variant."""
    spelling = Spelling()
    entries = [Pronunciation(mark, "", None, (SILENCE,)) for mark in MARKS]
    for word in words:
        ways = (known or {}).get(word)
        if ways is None:
            ways = [spelling.phones(word)]
            if rng.random() < VARIANTS and len(ways[0]) > 2:
                ways.append(_reduced(ways[0]))
        for number, phones in enumerate(dict.fromkeys(ways)):
            entries.append(Pronunciation(word, None, VARIANT_PROBABILITY if number else 1.0, phones))
    return entries


def _reduced(phones: tuple[str, ...]) -> tuple[str, ...]:
    """Return a reduced pronunciation: the last vowel except the first becomes schwa, or the last sound is dropped."""
    later = [place for place, phone in enumerate(phones) if phone in VOWELS and phone != NEUTRAL][1:]
    if not later:
        return phones[:-1]
    return (*phones[: later[-1]], NEUTRAL, *phones[later[-1] + 1 :])


def rank_words(sentences: Iterable[Sequence[str]]) -> list[str]:
    """Return the words of a text, the most frequent first; words of equal count in order of occurrence."""
    return [word for word, _ in Counter(word for sentence in sentences for word in sentence).most_common()]


def read_known(path: Path) -> dict[str, list[tuple[str, ...]]]:
    """Return word -> pronunciations of a CMUdict file, with words in lower case and phones without stress.

    Raises ConfigError for an unknown phone.
    """
    known: dict[str, list[tuple[str, ...]]] = {}
    for entry in read_any_dictionary(path, "cmu"):
        phones = tuple(phone.rstrip("012").lower() for phone in entry.phones)
        unknown = [phone for phone in phones if phone not in PHONES]
        if unknown:
            raise ConfigError(f"{path}: phone {unknown[0]} of '{entry.word}'; expected one of CMUdict's {len(PHONES)}")
        known.setdefault(entry.word.lower(), []).append(phones)
    return known


def write_words(path: Path, words: Sequence[str], seed: int, known: dict[str, list] | None = None) -> None:
    write_dictionary(path, pronounce(words, np.random.default_rng([seed, 1]), known))
