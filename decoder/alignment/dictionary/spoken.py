"""Takes the words of alignments with the pronunciations that were chosen, and the pauses beside them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from readers.common.text import canonical, read_lines
from readers.errors import FormatError
from readers.htk.mlf import MLF, Label, read_mlf
from readers.htk.storage.label_fields import HEADER
from readers.htk.trees import split_triphone
from readers.htk.units import TICKS_PER_SECOND
from readers.results.textgrid import read_textgrid
from readers.results.tiers import Tier
from readers.results.timed_words import Word, read_ctm

SILENCE = ("sil", "SIL", "sp")
SHORT_PAUSE = "sp"  # within words, as HTK writes it; the graphs treat it as no silence
WORDS, PHONES = "words", "phones"  # tiers of TextGrids, and names of CTM files
LEAST_PAUSE = 1e-3  # seconds; shorter gaps come from rounding


class SpokenUtterance(NamedTuple):
    """The words of an utterance.

    Attributes
    ----------
    words : tuple of (str, tuple of str)
        Each word with the phones that were aligned.
    pauses : tuple of (bool or None)
        Whether there is silence before each word, and after the last one; None where that is not known.
    """

    words: tuple[tuple[str, tuple[str, ...]], ...]
    pauses: tuple[bool | None, ...]


class Aligned(NamedTuple):
    """An utterance of an alignment.

    Attributes
    ----------
    key : str
        Its name without directories, as in lists.
    name : str
        As it is shown, with the speaker if a TextGrid has several.
    words : SpokenUtterance or FormatError
        What was said, or what is wrong with it.
    """

    key: str
    name: str
    words: SpokenUtterance | FormatError


class _Phone(NamedTuple):
    text: str
    start: float
    end: float
    word: str | None  # that begins here
    is_spoken: bool = True  # a part of a word


def spoken_of(
    words: Sequence[Word],
    phones: Sequence[Word],
    start: float = 0.0,
    end: float | None = None,
    silence: Collection[str] = SILENCE,
) -> SpokenUtterance:
    """Return the words of an utterance with their phones and pauses.

    Parameters
    ----------
    words, phones : sequence of Word
        By time, in seconds; those without text are silence.
    start, end : float
        Of the utterance; without an end it is not known whether silence follows the last word.
    silence : collection of str
        Phones of silence.  Gaps are silence, too; short pause, `sp`, is none.

    Returns
    -------
    SpokenUtterance
        A word is spoken by the phones whose middles are in it.

    Raises
    ------
    FormatError
        For a word without phones.
    """
    spoken = [word for word in words if word.text]
    beginnings: dict[int, str] = {}
    inside: set[int] = set()
    number = 0
    timed = [phone for phone in phones if phone.text]
    for word in spoken:
        while number < len(timed) and _middle(timed[number]) < word.start:
            number += 1
        if number == len(timed) or _middle(timed[number]) > word.end:
            raise FormatError(f"word {word.text!r} at {word.start:g} s has no phones; expected at least one")
        beginnings[number] = word.text
        while number < len(timed) and _middle(timed[number]) <= word.end:
            inside.add(number)
            number += 1
    rows = (_Phone(phone.text, phone.start, phone.end, beginnings.get(i), i in inside) for i, phone in enumerate(timed))
    return _spoken(rows, start, end, silence)


def _middle(phone: Word) -> float:
    return (phone.start + phone.end) / 2


def _spoken(rows: Iterable[_Phone], start: float, end: float | None, silence: Collection[str]) -> SpokenUtterance:
    """Return the words of phones; silence, and what is before the first word, is a part of none."""
    words: list[tuple[str, list[str]]] = []
    pauses: list[bool | None] = []
    time, is_pause, in_word = start, False, False
    for row in rows:
        is_pause |= row.start - time > LEAST_PAUSE
        time = row.end
        if row.text in silence and row.word is None:
            is_pause |= row.text != SHORT_PAUSE and row.end > row.start
            in_word = in_word and not is_pause
            continue
        if row.word is not None:
            words.append((row.word, []))
            pauses.append(is_pause)
            is_pause, in_word = False, True
        if in_word and row.is_spoken:
            words[-1][1].append(split_triphone(row.text)[1])
    is_known = end is not None or is_pause
    pauses.append(is_pause or (end or 0.0) - time > LEAST_PAUSE if is_known else None)
    return SpokenUtterance(tuple((word, tuple(phones)) for word, phones in words), tuple(pauses))


def read_spoken(path: Path, silence: Collection[str]) -> Iterator[Aligned]:
    """Yield the utterances of an alignment.

    path: an MLF with words beside phones or states; a TextGrid with tiers `words` and `phones`, of each speaker if
    there are several; or a folder of TextGrids, or with words.ctm and phones.ctm.
    Raises FormatError for a file that cannot be read, and OSError.
    """
    ctm = path / f"{WORDS}.ctm", path / f"{PHONES}.ctm"
    if path.is_dir() and all(file.is_file() for file in ctm):
        words, phones = (read_ctm(file, ctm) for file in ctm)
        for name in words:
            yield Aligned(Path(name).name, name, _attempt(words[name], phones.get(name, ()), None, silence))
    elif path.is_dir():
        grids = sorted(path.rglob("*.TextGrid"))
        if not grids:
            raise FormatError(f"{path}: no TextGrids; expected some, or {WORDS}.ctm and {PHONES}.ctm")
        for grid in grids:
            yield from _of_textgrid(grid, silence)
    elif any(line.startswith(HEADER) for line in read_lines(path)[:1]):
        yield from _of_mlf(path, read_mlf(path), silence)
    else:
        yield from _of_textgrid(path, silence)


def _attempt(
    words: Sequence[Word], phones: Sequence[Word], end: float | None, silence: Collection[str]
) -> SpokenUtterance | FormatError:
    try:
        return spoken_of(words, phones, 0.0, end, silence)
    except FormatError as fault:
        return fault


def _of_textgrid(path: Path, silence: Collection[str]) -> Iterator[Aligned]:
    tiers = {tier.name: tier for tier in read_textgrid(path)}
    speakers = [
        name[: -len(WORDS)] for name in tiers if name.endswith(WORDS) and f"{name[: -len(WORDS)]}{PHONES}" in tiers
    ]
    if not speakers:
        raise FormatError(f"{path}: tiers {', '.join(tiers) or 'none'}; expected {WORDS} and {PHONES}")
    for speaker in speakers:
        words, phones = _timed(tiers[speaker + WORDS]), _timed(tiers[speaker + PHONES])
        end = tiers[speaker + PHONES].intervals[-1].end if tiers[speaker + PHONES].intervals else None
        name = f"{path.with_suffix('')}{f' {speaker}'.rstrip(' -')}"
        yield Aligned(canonical(path.stem), name, _attempt(words, phones, end, silence))


def _timed(tier: Tier) -> list[Word]:
    return [Word(interval.text.strip(), interval.start, interval.end) for interval in tier.intervals]


def _of_mlf(path: Path, alignment: MLF, silence: Collection[str]) -> Iterator[Aligned]:
    """Words are beside the first phones, which are labels, or beside the first states."""
    depths = (len(label.aux) for name in alignment for label in alignment[name])
    depth = max(depths, default=0)
    if depth not in (1, 2):
        raise FormatError(f"{path}: {depth} names beside labels; expected words, beside phones or states")
    has_silence = any(_phone(label, depth) in silence for name in alignment for label in alignment[name])
    for name in alignment:
        labels = alignment[name]
        key = Path(name).name
        if any(label.start is None or label.end is None for label in labels):
            fault = FormatError(f"{alignment.where(name)}: labels without times; expected an alignment")
            yield Aligned(key, name, fault)
            continue
        rows = [
            _Phone(
                _phone(label, depth) or "",
                (label.start or 0) / TICKS_PER_SECOND,
                (label.end or 0) / TICKS_PER_SECOND,
                label.aux[depth - 1][0] if len(label.aux) == depth else None,
            )
            for label in labels
        ]
        end = rows[-1].end if rows and has_silence else None
        yield Aligned(key, name, _spoken(_phones_of_states(rows), 0.0, end, silence))


def _phone(label: Label, depth: int) -> str | None:
    """Return the phone that begins at a label; None at a later state."""
    phone = label.name if depth == 1 else label.aux[0][0] if label.aux else None
    return None if phone is None else split_triphone(phone)[1]


def _phones_of_states(rows: Sequence[_Phone]) -> Iterator[_Phone]:
    """Join the states of each phone."""
    for number, row in enumerate(rows):
        if row.text:
            end = row.end
            for state in rows[number + 1 :]:
                if state.text:
                    break
                end = state.end
            yield row._replace(end=end)
