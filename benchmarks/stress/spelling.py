"""Pronunciations derived from the spelling of words, by the rules of `data/spelling.txt`."""

from itertools import groupby
from pathlib import Path

from benchmarks.stress.donor import PHONES
from readers.common.text import read_lines
from readers.errors import FormatError

RULES = Path(__file__).parent / "data" / "spelling.txt"
START, END, NOTHING = "^", "$", "-"
NEUTRAL = "ah"


class Spelling:
    """Letters to phones; there is a rule for every letter and the apostrophe."""

    def __init__(self, path: Path = RULES):
        self._rules = {START: (), END: ()} | read_rules(path)
        self._longest = max(map(len, self._rules))

    def phones(self, word: str) -> tuple[str, ...]:
        """Return the pronunciation of a lower-case word, at least one phone.

        Raises FormatError for other characters.
        """
        text, at, phones = f"{START}{word}{END}", 0, []
        while at < len(text):
            fitting = (text[at : at + size] for size in range(self._longest, 0, -1))
            rule = next((letters for letters in fitting if letters in self._rules), None)
            if rule is None:
                raise FormatError(f"word '{word}': no rule for '{text[at]}'; expected lower-case letters")
            phones += self._rules[rule]
            at += len(rule)
        # A doubled sound at the boundary of two rules counts once.
        return tuple(phone for phone, _ in groupby(phones)) or (NEUTRAL,)


def read_rules(path: Path) -> dict[str, tuple[str, ...]]:
    """Return letters -> phones for the rules of a file.

    Raises FormatError, with file and line, for a rule without phones, an unknown phone and a repeated rule.
    """
    rules: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(read_lines(path), 1):
        letters, *phones = line.split("#")[0].split() or [""]
        if not letters:
            continue
        unknown = [phone for phone in phones if phone not in PHONES and phone != NOTHING]
        if not phones or unknown or letters in rules:
            found = f"phone {unknown[0]}" if unknown else "a repeated rule" if letters in rules else "no phones"
            raise FormatError(
                f"{path}:{number}: {found} for '{letters}'; expected `letters phone phone ...`, each once"
            )
        rules[letters] = tuple(phone for phone in phones if phone != NOTHING)
    return rules
