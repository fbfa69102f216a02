"""Splits transcripts into words and changes them to the form that a dictionary uses."""

import re
import unicodedata
from collections.abc import Collection, Sequence, Set

from readers.common.text import canonical
from readers.dictionaries.case import CASES
from readers.errors import ConfigError

PUNCTUATION = ("strip", "keep")
_BRACKET = re.compile(r"[][<>{}()]")
_ANNOTATIONS = re.compile(r"\[[^\[\]]*\]|<[^<>]*>|\{[^{}]*\}|\(\([^()]*\)\)")  # such as [door slams]
_ANNOTATION = re.compile(r"\[.+\]|<.+>|\{.+\}|\(\(.+\)\)")
_DASHES = re.compile("[\u2013\u2014\u2026]|--+")  # dashes and an ellipsis between words
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Typographic apostrophes and hyphens, soft hyphens, and marks of direction; a space without width separates words.
_PLAIN = str.maketrans(
    dict.fromkeys("\u2019\u02bc\uff07", "'")
    | dict.fromkeys("\u2010\u2011", "-")
    | dict.fromkeys("\u00ad\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff", "")
    | {"\u200b": " "}
)


class WordForms:
    """Splits text into words.

    Parameters
    ----------
    case : {"keep", "upper", "lower"}
        Case of the words.
    punctuation : {"strip", "keep"}
        With "strip", punctuation marks at both ends of a word are removed, except an apostrophe on one side only;
        dashes separate words, typographic apostrophes and hyphens become `'` and `-`, and soft hyphens and marks of
        direction are removed.  Text in brackets, such as `[noise]`, `<unk>` and `((laughs))`, is one word with its
        brackets, but simple round ones are punctuation.
    known : collection of str
        Words, for instance of a dictionary, which "strip" does not change, whatever they contain.  The apostrophe on
        one side of another word is removed if that makes it one of these, and a word with hyphens is divided if all its
        parts are.

    Raises
    ------
    ConfigError
        For other values.
    """

    def __init__(self, case: str = "keep", punctuation: str = "strip", known: Collection[str] = ()):
        if case not in CASES:
            raise ConfigError(f"case {case!r}; expected {', '.join(CASES)}")
        if punctuation not in PUNCTUATION:
            raise ConfigError(f"punctuation {punctuation!r}; expected {', '.join(PUNCTUATION)}")
        self.case = case
        self.punctuation = punctuation
        # Sets have the words of dictionaries, which are canonical, and may answer for more than they list (InCase).
        self.known = known if isinstance(known, Set) else frozenset(map(canonical, known))

    def split(self, text: str) -> tuple[str, ...]:
        """Return the words of a text; control characters separate words."""
        change = CASES[self.case]
        tokens = [change(token) for token in canonical(_CONTROL.sub(" ", text)).split()]
        if self.punctuation == "keep":
            return tuple(tokens)
        words: list[str] = []
        plain_tokens: list[str] = []  # since the last word that is known in spite of its brackets
        for token in tokens:
            if _BRACKET.search(token) and token in self.known:
                words += [*self._plain_words(plain_tokens), token]
                plain_tokens = []
            else:
                plain_tokens.append(token)
        return (*words, *self._plain_words(plain_tokens))

    def _plain_words(self, tokens: Sequence[str]) -> list[str]:
        """Return the words of tokens, of which several may be in brackets together."""
        text = _ANNOTATIONS.sub(lambda match: f" {'_'.join(match[0].split())} ", " ".join(tokens))
        return [word for token in text.split() for word in self._words(token)]

    def _words(self, token: str) -> list[str]:
        """Return the words of a token, none if it is only punctuation."""
        if token in self.known or _ANNOTATION.fullmatch(token):
            return [token]
        words: list[str] = []
        for piece in token.translate(_PLAIN).split():
            parts = [piece] if piece in self.known else _DASHES.split(piece)
            words += [part if part in self.known else self._known_or_same(part) for part in parts]
        return [canonical(piece) for word in words if word for piece in self._pieces(word)]

    def _pieces(self, word: str) -> list[str]:
        """Return the parts of a word with hyphens, if only they are known."""
        pieces = word.split("-")
        return [word] if word in self.known or not all(piece in self.known for piece in pieces) else pieces

    def _known_or_same(self, part: str) -> str:
        """Return a word without punctuation; hyphens, and the apostrophe of a quotation, remain as they are known."""
        hyphenated = _stripped(part, "'-")
        if hyphenated in self.known:
            return hyphenated
        word = _stripped(part)
        bare = word.strip("'")
        return bare if bare in self.known and word not in self.known else word


def _stripped(token: str, kept: str = "'") -> str:
    """Return a token without punctuation at its ends; an apostrophe remains that has no counterpart."""
    first, last = 0, len(token)
    while first < last and _is_mark(token[first]) and token[first] not in kept:
        first += 1
    while first < last and _is_mark(token[last - 1]) and token[last - 1] not in kept:
        last -= 1
    word = token[first:last]
    while len(word) > 1 and word[0] == word[-1] == "'":
        word = word[1:-1]
    return "" if all(map(_is_mark, word)) else word


def _is_mark(character: str) -> bool:
    """Whether a character is a punctuation mark or a symbol such as +, but not &, %, @, # and signs of currency."""
    kind = unicodedata.category(character)
    return (kind[0] == "P" and character not in "&%@#") or kind in ("Sm", "So", "Sk")
