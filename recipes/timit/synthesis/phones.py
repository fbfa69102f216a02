"""eSpeak's phonemes as TIMIT's 61 phones: a table for single phonemes, rules for those that depend on their context."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from readers.common.text import read_rows
from readers.errors import ArgonautError, FormatError
from recipes.timit.synthesis.espeak import Sound

EDGE_SILENCE, PAUSE = "h#", "pau"
JOINED = ()  # table entry of a phoneme that is merged with the previous one
QUIET = 0.004  # fraction of the utterance's peak below which a sample is silent
# Seconds: shortest silence that is considered, silence that is a whole closure, minimum lengths of some phones.
SHORTEST_GAP, WHOLE_CLOSURE = 0.004, 0.015
SHORTEST_RELEASE, SHORTEST_SONORANT, SHORTEST_GLOTTAL = 0.005, 0.030, 0.042

EPENTHESIS, EPENTHESIS_RATE = 0.032, 0.5  # duration of an epi in seconds, and its probability

CLOSURES = {"pcl", "tcl", "kcl", "bcl", "dcl", "gcl"}
VOICELESS = {"p", "t", "k", "ch", "f", "th", "s", "sh", "pcl", "tcl", "kcl", "hh"}
FRICATIVES = {"f", "th", "s", "sh"}
SONORANTS = {"l", "m", "n", "w", "r"}
CORONALS = {"t", "d", "n", "s", "z", "ch", "jh", "sh", "th", "y", "dx"}
STRESSED = {"iy", "ih", "eh", "ey", "ae", "aa", "aw", "ay", "ah", "ao", "oy", "ow", "uh", "uw", "er"}
UNSTRESSED = {"ax", "ix", "axr", "iy", "el", "en"}
VOWELS = STRESSED | UNSTRESSED
VOICED_BEFORE_H = VOWELS | {"l", "m", "n", "ng", "r", "w", "y"}


class Phone(NamedTuple):
    """A TIMIT phone from sample `start` to `end`, exclusive; words are counted from 0, -1 is silence."""

    name: str
    start: int
    end: int
    word: int


Table = Mapping[str, tuple[tuple[str, float], ...]]


def read_phone_table(path: Path) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return eSpeak phoneme -> ((TIMIT phone, share of the length), ...), with shares that sum to 1; JOINED for a dash.

    Raises FormatError, with file and line, for a malformed line, shares that do not sum to 100, and a repeated phoneme.
    """
    table: dict[str, tuple[tuple[str, float], ...]] = {}
    for where, (name, *parts) in read_rows(path, comment="# "):
        if name in table or not parts:
            raise FormatError(f"{where}: {' '.join([name, *parts])!r}; expected a phoneme, once, and its TIMIT phones")
        if parts == ["-"]:
            table[name] = JOINED
            continue
        pairs = [part.partition(":") for part in parts]
        shares = [share if colon else "100" for _, colon, share in pairs]
        if not all(share.isdecimal() for share in shares) or sum(map(int, shares)) != 100:
            raise FormatError(f"{where}: shares {' '.join(shares)}; expected integers that sum to 100")
        table[name] = tuple((phone, int(share) / 100) for (phone, _, _), share in zip(pairs, shares))
    return table


def timit_phones(sounds: list[Sound], samples: np.ndarray, sample_rate: int, table: Table) -> list[Phone]:
    """Return the phones of one utterance, without pauses at its ends.

    The sounds cover the samples (N,).  Raises ArgonautError for a phoneme that is not in the table, and for silence.
    """
    last_loud = last_loud_samples(samples)
    phones: list[Phone] = []
    for sound in sounds:
        if sound.name.startswith("_"):
            add_pause(phones, sound)
            continue
        if sound.name not in table:
            raise ArgonautError(f"phoneme {sound.name!r} of eSpeak NG: not in the phone table; expected a line for it")
        parts = table[sound.name]
        if parts is JOINED and phones:
            phones[-1] = phones[-1]._replace(end=sound.end)
        elif parts:
            gap = sound.start - 1 - int(last_loud[sound.start - 1]) if sound.start > 0 else 0
            add_parts(phones, sound, parts, gap if gap >= SHORTEST_GAP * sample_rate else 0, sample_rate)
    while phones and phones[-1].name == PAUSE:
        phones.pop()
    if not phones:
        raise ArgonautError("no phonemes; expected speech")
    return context_variants(fix_short_phones(phones, sample_rate))


def add_pause(phones: list[Phone], sound: Sound) -> None:
    if phones and phones[-1].name == PAUSE:
        phones[-1] = phones[-1]._replace(end=sound.end)
    elif phones:
        phones.append(Phone(PAUSE, sound.start, sound.end, -1))


def last_loud_samples(samples: np.ndarray) -> np.ndarray:
    """Return for every sample of (N,) the index of the last sample up to it that is not silent, -1 before the first."""
    level = np.abs(samples.astype(np.int32))
    loud = level > QUIET * level.max(initial=1)
    return np.maximum.accumulate(np.where(loud, np.arange(len(samples)), -1))


def add_parts(phones: list[Phone], sound: Sound, parts: tuple[tuple[str, float], ...], gap: int, rate: int) -> None:
    """Append the phones of a sound.  gap: samples of silence before it.

    eSpeak inserts the closure of a stop as silence before the stop, so it is cut off the previous phone.  If there is
    little silence, as before most voiced stops, the closure also takes the given share of the sound.  After a pause no
    closure is audible.
    """
    start = sound.start
    end = sound.end
    word = sound.word
    if parts[0][0] in CLOSURES:
        after_pause = not phones or phones[-1].name == PAUSE
        if after_pause or gap >= WHOLE_CLOSURE * rate:
            total = sum(share for _, share in parts[1:])
            parts = ((parts[0][0], 0.0), *((name, share / total) for name, share in parts[1:]))
        if not after_pause:
            start -= min(gap, phones[-1].end - phones[-1].start - 1)
            phones[-1] = phones[-1]._replace(end=start)
    bounds = sound.start + np.rint(np.cumsum([share for _, share in parts]) * (end - sound.start)).astype(int)
    for (name, _), last in zip(parts, bounds.tolist()):
        if last > start:
            phones.append(Phone(name, start, last, word))
        start = last


def fix_short_phones(phones: list[Phone], rate: int) -> list[Phone]:
    """Correct phones that are too short: a release is merged with its closure, a sonorant is extended into the vowel.

    eSpeak does not release a stop before another one, may place the transition to a sonorant in the vowel, and makes a
    glottal stop only 20 ms long, which is too short for three states.
    """
    out: list[Phone] = []
    for phone in phones:
        length = phone.end - phone.start
        before = out[-1] if out else None
        if before and before.name == phone.name + "cl" and length < SHORTEST_RELEASE * rate:
            out[-1] = before._replace(end=phone.end)
            continue
        least = int(SHORTEST_SONORANT * rate) if phone.name in SONORANTS else int(SHORTEST_GLOTTAL * rate)
        if before and before.name in VOWELS and phone.name in SONORANTS | {"q"} and length < least:
            start = phone.start - min(least - length, (before.end - before.start) // 3)
            out[-1] = before._replace(end=start)
            phone = phone._replace(start=start)
        out.append(phone)
    return out


def context_variants(phones: list[Phone]) -> list[Phone]:
    """Return the phones with TIMIT's context-dependent variants, within and across words.

    hv: h after a voiced sound; ux: uw after a coronal; nx: n between a stressed and an unstressed vowel of one word;
    ax-h: ax between voiceless sounds; em, eng: ax with m, or a syllabic n after k and g, at the end of a word.
    """
    out: list[Phone] = []
    for i, phone in enumerate(phones):
        before = out[-1].name if out else PAUSE
        after = phones[i + 1] if i + 1 < len(phones) else Phone(PAUSE, phone.end, phone.end, -1)
        last_of_word = after.word != phone.word
        name = phone.name
        if name == "hh" and before in VOICED_BEFORE_H:
            name = "hv"
        elif name == "uw" and before in CORONALS:
            name = "ux"
        elif (
            name == "n" and before in STRESSED and after.name in UNSTRESSED and after.word == phone.word == out[-1].word
        ):
            name = "nx"
        elif name == "ax" and before in VOICELESS and after.name in VOICELESS:
            name = "ax-h"
        elif (
            name == "m" and before == "ax" and last_of_word and len(out) > 1 and out[-2].name in ("z", "dh", "s", "th")
        ):
            phone = phone._replace(start=out.pop().start)
            name = "em"
        elif name == "n" and before == "ax" and last_of_word and len(out) > 1 and out[-2].name in ("k", "g"):
            phone = phone._replace(start=out.pop().start)
            name = "eng"
        out.append(phone._replace(name=name))
    return out


def add_epenthetic_silence(
    phones: list[Phone], samples: np.ndarray, sample_rate: int, rng: np.random.Generator
) -> list[Phone]:
    """Add TIMIT's epi: some fricatives end in silence before a sonorant of their word; mutes the samples in place."""
    out = []
    for phone, after in zip(phones, [*phones[1:], None]):
        length = int(EPENTHESIS * sample_rate)
        fits = phone.name in FRICATIVES and after and after.name in SONORANTS and after.word == phone.word
        if fits and phone.end - phone.start > 1.5 * length and rng.random() < EPENTHESIS_RATE:
            middle = phone.end - length
            samples[middle : phone.end] = 0
            out += [phone._replace(end=middle), phone._replace(name="epi", start=middle)]
        else:
            out.append(phone)
    return out
