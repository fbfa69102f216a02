"""What an assessment of pronunciation returns: scores of phones, words and the sentence, with times."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from readers.common.files import write_content
from readers.common.text import in_unicode
from readers.errors import ConfigError
from readers.results.timed_words import Word, textgrid_text

MISSING = ""  # said in place of a phone that was left out
COLUMNS = ("file", "level", "text", "start", "end", "score", "said")
SUFFIXES = ("txt", "json", "csv", "TextGrid")


class ScoredPhone(NamedTuple):
    """A phone as it was said.

    Attributes
    ----------
    text : str
        The phone that should be there.
    start, end : float
        Seconds.
    score : float
        From 0 (wrong) through 1 (a heavy accent) to 2 (right).
    said : str or None
        The phone that was probably said in its place, "" for silence; None if it was probably this phone.
    """

    text: str
    start: float
    end: float
    score: float
    said: str | None = None

    def __str__(self) -> str:
        said = "" if self.said is None else f">{self.said or '-'}"
        return f"{self.text}{said} {self.score:.1f}"


class ScoredWord(NamedTuple):
    """A word as it was said.

    Attributes
    ----------
    text : str
    start, end : float
        Seconds.
    score : float
        From 0 to 10.
    phones : tuple of ScoredPhone
    """

    text: str
    start: float
    end: float
    score: float
    phones: tuple[ScoredPhone, ...]

    def __str__(self) -> str:
        return f"{self.text} {self.score:.1f}: {', '.join(map(str, self.phones))}"


@dataclass(frozen=True, repr=False)
class Pronunciation:
    """How well a text was pronounced.

    Printed, it is a line for the sentence and one for each word: `WE 9.6: W 2.0, IY>IH 1.3`.

    Attributes
    ----------
    score : float
        Of the sentence, from 0 to 10.
    words : tuple of ScoredWord
    seconds : float
        Duration of the audio.
    notes : tuple of str
        What is unusual about the audio file, and whether another text was probably said.
    matched : float
        Share of the frames of a phone in which it is more likely than any other one, mean over all phones.
    """

    score: float
    words: tuple[ScoredWord, ...]
    seconds: float
    notes: tuple[str, ...] = ()
    matched: float = 1.0

    def __str__(self) -> str:
        return "\n".join((f"{self.score:.1f} {self.text}", *(f"  {word}" for word in self.words)))

    def __repr__(self) -> str:
        return f"<Pronunciation of {self.seconds:.2f} s: {self.score:.1f} {self.text}>"

    @property
    def text(self) -> str:
        """All words, with a blank between them."""
        return " ".join(word.text for word in self.words)

    @property
    def phones(self) -> tuple[ScoredPhone, ...]:
        """The phones of all words."""
        return tuple(phone for word in self.words for phone in word.phones)

    def as_dict(self) -> dict[str, object]:
        """Return the scores as an object of JSON.

        Returns
        -------
        dict
            `text`, `score`, `matched`, `seconds` and `words`, each with `word`, `start`, `end`, `score` and `phones`;
            these have `phone`, `start`, `end`, `score` and, where another phone was probably said, `said`; `notes`
            unless they are empty.
        """
        words = [
            {
                "word": word.text,
                **_timed(word),
                "phones": [
                    {"phone": phone.text, **_timed(phone)} | ({} if phone.said is None else {"said": phone.said})
                    for phone in word.phones
                ],
            }
            for word in self.words
        ]
        content = {"text": self.text, "score": round(self.score, 2), "matched": round(self.matched, 3)}
        content |= {"seconds": round(self.seconds, 3), "words": words}
        return content | ({"notes": list(self.notes)} if self.notes else {})

    def rows(self, name: str) -> Iterator[tuple[object, ...]]:
        """Yield the rows of a table with `COLUMNS`: the sentence, and each word before its phones."""
        yield name, "sentence", self.text, "0.000", f"{self.seconds:.3f}", f"{self.score:.2f}", ""
        for word in self.words:
            yield name, "word", word.text, *_texts(word), ""
            for phone in word.phones:
                said = "" if phone.said is None else phone.said or "-"
                yield name, "phone", phone.text, *_texts(phone), said

    def save(self, path: str | Path, name: str | None = None) -> None:
        """Write the scores to a file, in the format that its suffix selects.

        Parameters
        ----------
        path : str or Path
            `x.txt`: as printed; `.json`: see `as_dict`; `.csv`: a row for the sentence, each word and each phone;
            `.TextGrid` (Praat): tiers of words, their scores, phones, their scores, and what was said instead.
        name : str, optional
            Of the recording, for CSV; by default that of the file.

        Raises
        ------
        ConfigError
            For another suffix.
        OSError
        """
        path = Path(path)
        forms = {form.lower(): form for form in SUFFIXES}
        form = forms.get(path.suffix.lower().removeprefix("."))
        if form is None:
            raise ConfigError(f"{path}: unknown format; expected a name that ends in .{', .'.join(SUFFIXES)}")
        write_content(path, text_of(form, path.stem if name is None else name, self))

    def tiers(self) -> dict[str, Sequence[Word]]:
        """Return interval tiers: words, word scores, phones, phone scores, and what was said instead."""
        return {
            "words": [Word(*word[:3]) for word in self.words],
            "word scores": [Word(f"{word.score:.1f}", word.start, word.end) for word in self.words],
            "phones": [Word(*phone[:3]) for phone in self.phones],
            "phone scores": [Word(f"{phone.score:.1f}", phone.start, phone.end) for phone in self.phones],
            "said": [
                Word(phone.said or "-", phone.start, phone.end) for phone in self.phones if phone.said is not None
            ],
        }


def text_of(form: str, name: str, pronunciation: Pronunciation, header: bool = True) -> str:
    """Return the scores of a recording as `Pronunciation.save` writes them.

    Parameters
    ----------
    form : {"txt", "json", "csv", "TextGrid"}
    name : str
        Of the recording.
    pronunciation : Pronunciation
    header : bool
        Whether a table begins with the names of its columns.

    Returns
    -------
    str
        Lines, the last one with its end.
    """
    if form == "json":
        return json.dumps({"file": in_unicode(name)} | pronunciation.as_dict(), ensure_ascii=False) + "\n"
    if form == "csv":
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerows([COLUMNS, *pronunciation.rows(name)][not header :])
        return lines.getvalue()
    if form == "TextGrid":
        return textgrid_text(pronunciation.tiers(), pronunciation.seconds)
    return f"{pronunciation}\n"


def _timed(part: ScoredPhone | ScoredWord) -> dict[str, float]:
    return {"start": round(part.start, 3), "end": round(part.end, 3), "score": round(part.score, 2)}


def _texts(part: ScoredPhone | ScoredWord) -> tuple[str, str, str]:
    return f"{part.start:.3f}", f"{part.end:.3f}", f"{part.score:.2f}"
