"""The case of words: transcripts are looked up in the case in which a dictionary has the most of their words."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Set
from typing import Literal, get_args

from readers.common.text import canonical
from readers.errors import ConfigError

AUTO = "auto"  # the case in which the dictionary lacks the fewest words
Case = Literal["keep", "upper", "lower"]
CASES: Mapping[str, Callable[[str], str]] = {
    "keep": canonical,
    "upper": lambda word: canonical(word.upper()),
    "lower": lambda word: canonical(word.lower()),
}


def check_case(case: str) -> str:
    """Return a case.  Raises ConfigError unless it is auto, keep, upper or lower."""
    if case not in (AUTO, *CASES):
        raise ConfigError(f"case {case!r}; expected {AUTO}, {', '.join(CASES)}")
    return case


def best_case(words: Mapping[str, int], known: Collection[str]) -> Case:
    """Return the case of transcripts that leaves the fewest words without a pronunciation: keep, upper or lower.

    words: how often each word occurs; known: the words of the dictionary, whose case counts where several are as good.
    """
    unknown = {
        case: sum(count for word, count in words.items() if change(word) not in known) for case, change in CASES.items()
    }
    fewest = min(unknown.values())
    best = [case for case in get_args(Case) if unknown[case] == fewest]
    usual = case_of(known) if fewest and len(best) > 1 else best[0]
    return usual if usual in best else best[0]


def case_of(words: Iterable[str]) -> Case:
    """Return the case of at least 99 % of words, apart from marks such as <s>: upper, lower or, of mixed ones, keep."""
    written = [word for word in words if not word.startswith(("<", "["))]
    for case in ("upper", "lower"):
        if sum(CASES[case](word) != word for word in written) <= 0.01 * len(written):
            return case
    return "keep"


class InCase(Set[str]):
    """The words that a dictionary has when their case is changed.

    Parameters
    ----------
    words : collection of str
        Those of the dictionary.
    case : {"keep", "upper", "lower"}
        To which words are changed before they are looked up.
    others : container of str
        Further words, in their own case.
    """

    def __init__(self, words: Collection[str], case: str, others: Container[str] = ()):
        self._words = words
        self._change = CASES[case]
        self._others = others

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and (self._change(word) in self._words or word in self._others)

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __len__(self) -> int:
        return len(self._words)
