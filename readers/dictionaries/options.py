"""The options of a dictionary: its file, its form, and what changes its phones to those of models."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readers.common.faults import counted
from readers.common.report import Log, silent
from readers.config.options import Options, option
from readers.dictionaries.forms import read_any_dictionary
from readers.dictionaries.phones import change_phones, read_phone_replacements, without_stress
from readers.errors import FormatError, ManyFaults
from readers.htk.dictionary import Pronunciation


@dataclass(frozen=True, kw_only=True)
class WordList(Options):
    """A dictionary whose phones do not matter."""

    dict: Path | None = option(None, "pronunciation dictionary")
    dict_format: Literal["auto", "htk", "cmu", "kaldi", "mfa"] = option(
        "auto",
        "form of {dict}: HTK's, CMUdict's (;;; comments, WORD(2)), Kaldi's lexicon.txt or lexiconp.txt, or MFA's "
        "(default: from its content)",
    )

    def read(self, note: Log = silent) -> list[Pronunciation]:
        """Return the pronunciations; without a dictionary, none.

        Parameters
        ----------
        note : callable
            Receives a text about pronunciations that are repeated.

        Raises
        ------
        ManyFaults
            With all malformed lines.
        """
        faults: list[Exception] = []
        entries = read_any_dictionary(self.dict, self.dict_format, faults.append, note) if self.dict else []
        if faults:
            raise ManyFaults(str(faults[0]), list(map(str, faults)))
        return entries


@dataclass(frozen=True, kw_only=True)
class DictionaryOptions(WordList):
    """A pronunciation dictionary, and what changes its phones to those of models.

    Raises
    ------
    OptionFault
        For options that change phones without a dictionary.
    """

    strip_stress: bool = option(False, "remove CMUdict's stress from the phones of {dict}: AH0 becomes AH")
    map_phones: Path | None = option(
        None, "replace phones of {dict}, after {strip_stress}: lines `phone new-phone ...`; a phone alone is deleted"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("strip_stress", "map_phones"):
            fine = self.dict is not None or not getattr(self, name)
            self.require(name, fine, "is given without {dict}; expected both")

    def read(self, note: Log = silent) -> list[Pronunciation]:
        """Return the pronunciations with the phones of the models; without a dictionary, none.

        Parameters
        ----------
        note : callable
            Receives texts about pronunciations that are repeated, or become equal.

        Raises
        ------
        ManyFaults
            With all malformed lines.
        FormatError
            For words that have no phones left.
        """
        entries = super().read(note)
        if not self.strip_stress and not self.map_phones:
            return entries
        replacements = read_phone_replacements(self.map_phones) if self.map_phones else {}

        def change(phone: str) -> tuple[str, ...]:
            phone = without_stress(phone) if self.strip_stress else phone
            return replacements.get(phone, (phone,))

        changed, num_merged = change_phones(entries, change)
        empty = {entry.word for entry in changed if not entry.phones}
        empty -= {entry.word for entry in entries if not entry.phones}
        if empty:
            raise FormatError(
                f"{self.dict}: {self.map_phones} deletes all phones of {counted(len(empty), 'word')}, such as "
                f"{min(empty)!r}; expected at least one phone for each"
            )
        if num_merged:
            note(f"{self.dict}: {num_merged} pronunciations have become equal to others; merged")
        return changed
