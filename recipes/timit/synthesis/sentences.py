"""Random sentences of the corpus' grammar."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from readers.common.text import read_text
from readers.errors import FormatError
from readers.language.grammars.expression import Expression, random_sentence, references
from readers.language.grammars.jsgf import jsgf_rules


def read_grammar(path: Path) -> dict[str, Expression]:
    """Return the rules of a JSGF grammar by their names in angle brackets.

    Raises FormatError, with file and line, for malformed rules and a name without a rule.
    """
    rules, _ = jsgf_rules(read_text(path), str(path))
    for expression in rules.values():
        for reference in references(expression):
            if reference.rule not in rules:
                raise FormatError(f"{path}:{reference.line}: rule {reference.rule}; expected a rule of the grammar")
    return rules


def make_sentence(grammar: Mapping[str, Expression], rng: np.random.Generator, start: str = "sentence") -> str:
    """Return one random sentence of a rule; blanks separate the words, commas are kept."""
    text = " ".join(random_sentence(grammar, f"<{start}>", rng)).replace(" ,", ",")
    return re.sub(r"\ba (?=[aeiou])", "an ", text)


def words_of(sentence: str) -> list[str]:
    """Return the words in lower case, without punctuation except apostrophes."""
    return re.findall(r"[a-z']+", sentence.lower())
