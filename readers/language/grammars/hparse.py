r"""HParse's notation of grammars (HTK).

    $digit = ONE | TWO | THREE;
    ( SENT-START ( DIAL <$digit> | [PLEASE] CALL {JULIAN | ODELL} ) SENT-END )

`|` separates alternatives, [ ] may be left out, { } is repeated any number of times, < > at least once.  A variable is
defined before it is used.  A backslash takes the next character literally, as in `\[unk\]`.  An external name, after %,
is ignored, but `WD_BEGIN%word ... WD_END%word` is the word, without the phones between.  Context-dependent loops,
<< >>, are refused.

References
----------
HTK Book 3.4, sections 12.3 and 17.16 (HParse).
"""

import functools
import re
from typing import Any, NamedTuple

from readers.common.text import unescape
from readers.errors import FormatError
from readers.language.grammars.expression import (
    Expression,
    Maybe,
    Reference,
    Repeat,
    Word,
    expand,
    references,
    series,
    weighted_choice,
)
from readers.language.grammars.network import WordNetwork
from readers.language.grammars.parsing import MOST_SHOWN, LineFault, parse

_EXTERNAL = re.compile(r"((?:\\.|[^\\%])*)(%(.*))?", re.DOTALL)
_NETWORK = "( ... )"  # no name of a variable
_GRAMMAR = r"""
start: subnet* "(" choice ")"
subnet: VARIABLE "=" choice ";"
choice: sequence ("|" sequence)*
sequence: factor+
factor: name | reference | group | maybe | any | many | LOOP
name: NAME
reference: VARIABLE
group: "(" choice ")"
maybe: "[" choice "]"
any: "{" choice "}"
many: "<" choice ">"
LOOP: "<<"
VARIABLE: /\$(?:\\.|[^\s{}\[\]<>|=$();\\\/*])+/
NAME: /(?:\\.|[^\s{}\[\]<>|=$();\\\/*])+/
COMMENT: /\/\*[^*]*\*+(?:[^\/*][^*]*\*+)*\//
%ignore COMMENT
%ignore /\s+/
"""
_NAMES = {
    **{"NAME": "a word", "VARIABLE": "$variable", "EQUAL": "'='", "SEMICOLON": "';'", "VBAR": "'|'", "LPAR": "'('"},
    **{"RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'", "RBRACE": "'}'", "LESSTHAN": "'<'"},
    **{"MORETHAN": "'>'", "$END": "the end"},
}


def parse_hparse(text: str, where: str = "HParse grammar") -> WordNetwork:
    r"""Parse a grammar in HParse's notation.

    Parameters
    ----------
    text : str
    where : str
        The file, for messages.

    Returns
    -------
    WordNetwork

    Raises
    ------
    FormatError
        For a syntax error, a variable that is not defined before it is used or is defined twice, a context-dependent
        loop, and a grammar that is too large or nested too deeply.

    Examples
    --------
    >>> parse_hparse("$state = on | off; ( turn [it] $state )").words
    ['turn', 'it', 'on', 'off']
    """
    subnets, network = parse(_parser(), text, where, _NAMES)
    rules: dict[str, Expression] = {}
    for name, line, expression in (*subnets, (_NETWORK, 0, network)):
        if name in rules:
            raise FormatError(f"{where}:{line}: variable {name} is defined already; expected each once")
        for reference in references(expression):
            if reference.rule not in rules:
                raise FormatError(
                    f"{where}:{reference.line}: variable {reference.rule}; expected one that is defined before its use"
                )
        rules[name] = expression
    return expand(rules, [_NETWORK], where)


class _Mark(NamedTuple):
    """WD_BEGIN or WD_END with the word that it stands for."""

    begins: bool
    word: str
    line: int


@functools.cache
def _parser() -> Any:
    from lark import Lark, Token, Transformer

    class Build(Transformer[Token, Any]):
        """Makes the expressions while lark parses, which takes no recursion."""

        def start(self, parts: list[Any]) -> tuple[list[Any], Expression]:
            return parts[:-1], parts[-1]

        def subnet(self, parts: list[Any]) -> tuple[str, int, Expression]:
            return str(parts[0]), parts[0].line, parts[1]

        def choice(self, parts: list[Any]) -> Expression:
            return weighted_choice(parts, [None] * len(parts), 0)

        def sequence(self, parts: list[Any]) -> Expression:
            return series(_words_of_marks(parts))

        def factor(self, parts: list[Any]) -> Any:
            part = parts[0]
            if isinstance(part, Token):
                raise LineFault(part.line or 0, "'<<', a context-dependent loop; expected < > or { } around words")
            return part

        def name(self, parts: list[Any]) -> Word | _Mark:
            match = _EXTERNAL.fullmatch(parts[0])
            assert match is not None
            name, _, external = match.groups()
            if name in ("WD_BEGIN", "WD_END"):
                if not external:
                    raise LineFault(parts[0].line, f"{name} without a word; expected {name}%word")
                return _Mark(name == "WD_BEGIN", unescape(external), parts[0].line)
            if not name:
                raise LineFault(parts[0].line, f"{str(parts[0])[:MOST_SHOWN]!r}; expected a word before the %")
            return Word(unescape(name))

        def reference(self, parts: list[Any]) -> Reference:
            return Reference(str(parts[0]), parts[0].line)

        def group(self, parts: list[Any]) -> Any:
            return parts[0]

        def maybe(self, parts: list[Any]) -> Maybe:
            return Maybe(parts[0])

        def any(self, parts: list[Any]) -> Repeat:
            return Repeat(parts[0], 0)

        def many(self, parts: list[Any]) -> Repeat:
            return Repeat(parts[0], 1)

    return Lark(_GRAMMAR, parser="lalr", transformer=Build())


def _words_of_marks(parts: list[Any]) -> list[Expression]:
    """Replace what stands from WD_BEGIN%word to WD_END%word by the word."""
    expressions: list[Expression] = []
    opened = None
    for part in parts:
        if not isinstance(part, _Mark):
            if opened is None:
                expressions.append(part)
        elif part.begins == (opened is None) and (opened is None or opened.word == part.word):
            opened = part if part.begins else None
            if part.begins:
                expressions.append(Word(part.word))
        else:
            raise LineFault(part.line, _unpaired(part))
    if opened is not None:
        raise LineFault(opened.line, _unpaired(opened))
    return expressions


def _unpaired(mark: _Mark) -> str:
    name, partner = ("WD_BEGIN", "WD_END") if mark.begins else ("WD_END", "WD_BEGIN")
    return f"{name}%{mark.word[:MOST_SHOWN]} alone; expected {partner} of the same word in the same sequence"
