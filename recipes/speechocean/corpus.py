"""speechocean762 as its repository lays it out, in train/ and test/, or its train half as one directory.

Each half is a Kaldi data directory, whose audio files have paths relative to the corpus.
Source: J. Zhang et al., speechocean762: an open-source non-native English speech corpus for pronunciation assessment,
Interspeech 2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from readers.common.files import write_lines
from readers.common.text import read_lines
from readers.dictionaries.forms import read_any_dictionary
from readers.dictionaries.phones import change_phones, without_stress
from readers.errors import FormatError
from readers.htk.dictionary import write_dictionary

ADULT = 18  # years; younger speakers are children
LISTS = Path(__file__).parent / "data"  # speakers of the development set, and of the test set if there is one half


@dataclass(frozen=True)
class Speechocean:
    """The corpus.

    root: its directory.
    train, test: the directories of its halves; the first is `root` itself and the second None for the train half alone.
    """

    root: Path
    train: Path
    test: Path | None

    @classmethod
    def find(cls, root: Path) -> "Speechocean":
        """Return the corpus in a directory.  Raises FormatError if there is none."""
        if (root / "train" / "wav.scp").is_file():
            test = root / "test"
            return cls(root, root / "train", test if test.is_dir() else None)
        root.stat()
        if not (root / "wav.scp").is_file():
            raise FormatError(f"{root}: neither train/wav.scp nor wav.scp; expected the corpus or its train half")
        return cls(root, root, None)

    @property
    def halves(self) -> list[Path]:
        return [self.train, *([self.test] if self.test else [])]

    @property
    def lexicon(self) -> Path:
        """Pronunciations of all words, with stress."""
        published = self.root / "resource" / "lexicon.txt"
        return published if published.is_file() else self.root / "lexicon.txt"

    @property
    def scores(self) -> Path:
        """What experts think of the pronunciations; it need not exist."""
        published = self.root / "resource" / "scores.json"
        return published if published.is_file() else self.root / "scores.jsonl"

    def table(self, name: str) -> dict[str, str]:
        """Return a table of the halves together, key -> value.

        Raises FormatError for a line without value and for a key that is there twice.
        """
        rows: dict[str, str] = {}
        for path in (half / name for half in self.halves):
            for number, line in enumerate(read_lines(path), 1):
                key, *values = line.split(None, 1) or [""]
                if not values or key in rows:
                    fault = "is repeated" if values else "has no value"
                    raise FormatError(f"{path}:{number}: {key!r} {fault}; expected lines `key value`, each key once")
                rows[key] = values[0].strip()
        return rows

    def test_speakers(self) -> list[str]:
        """Return the speakers of the test: those of the test half or, without it, of a fixed list."""
        if self.test is None:
            return read_lines(LISTS / "test_speakers.txt")
        return sorted({line.split()[-1] for line in read_lines(self.test / "utt2spk")})

    def children(self) -> set[str]:
        """Return the speakers below 18 years.  Raises FormatError for an age that is missing or no number."""
        ages = self.table("spk2age")
        for speaker, age in ages.items():
            if not age.isdecimal():
                raise FormatError(f"{self.root}: spk2age: {age!r} of {speaker}; expected a number of years")
        for speaker in self.table("utt2spk").values():
            if speaker not in ages:
                raise FormatError(f"{self.root}: spk2age: no age of {speaker}; expected one for each speaker")
        return {speaker for speaker, age in ages.items() if int(age) < ADULT}

    def write_kaldi(self, out: Path) -> None:
        """Write the halves as one Kaldi data directory, with absolute paths."""
        tables = {name: self.table(name) for name in ("text", "utt2spk", "wav.scp")}
        root = self.root.resolve()
        tables["wav.scp"] = {key: f"{root / path}" for key, path in tables["wav.scp"].items()}
        for name, rows in tables.items():
            write_lines(out / name, (f"{key} {rows[key]}" for key in sorted(rows)))


def write_joined_dictionary(paths: Sequence[Path], out: Path) -> None:
    """Write the pronunciations of several dictionaries, words in upper case and phones without stress."""
    entries = [
        entry._replace(word=entry.word.upper(), output=None, probability=None)
        for path in paths
        for entry in read_any_dictionary(path, on_note=_ignored)
    ]
    joined, _ = change_phones(entries, lambda phone: (without_stress(phone),))
    write_dictionary(out, sorted(joined, key=lambda entry: entry.word))


def _ignored(note: str) -> None:
    """Repeated lines need no mention: dictionaries repeat each other."""
