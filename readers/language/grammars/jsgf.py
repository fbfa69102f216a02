r"""JSGF, the Java Speech Grammar Format.

    #JSGF V1.0;
    grammar lights;
    public <command> = [please] turn (on | off) the <lamp>+ {light};
    <lamp> = /3/ kitchen lamp | /1/ "St. John's" lamp;

The sentences are those of all public rules.  "..." is one word with any characters.  Weights are relative: `/3/ a |
/1/ b` costs -ln 3/4 and -ln 1/4; alternatives without weights cost nothing.  They may be Java's, as /3.14e3/ and /8f/.
A tag belongs to what it follows: the words of `<lamp>+ {light}` have the tag `light`.  `<NULL>` is the empty sentence,
`<VOID>` cannot be spoken.  A rule may refer to itself at its end; what refers to it has no tag.  Imports are refused.

References
----------
Sun Microsystems, JSpeech Grammar Format, W3C note, June 2000.
"""

import functools
import re
from typing import Any, NoReturn

from readers.common.text import canonical, is_number
from readers.errors import FormatError
from readers.language.grammars.expression import (
    IMPOSSIBLE,
    NOTHING,
    Expression,
    Maybe,
    Reference,
    Repeat,
    Tagged,
    Word,
    expand,
    series,
    weighted_choice,
)
from readers.language.grammars.network import WordNetwork
from readers.language.grammars.parsing import MOST_SHOWN, LineFault, parse

HEADER = re.compile(r"\s*#JSGF[ \t]+[Vv]1\.0(?:[ \t]+[\w.-]+){0,2}[ \t]*;")
SPECIAL: dict[str, Expression] = {"<NULL>": NOTHING, "<VOID>": IMPOSSIBLE}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_GRAMMAR = r"""
start: "grammar" TOKEN ";" (import_ | rule)*
import_: IMPORT RULE ";"
rule: PUBLIC? RULE "=" choice ";"
choice: alternative ("|" alternative)*
alternative: WEIGHT? item+
item: (word | reference | group | maybe) (STAR | PLUS)? TAG*
word: TOKEN | QUOTED
reference: RULE
group: "(" choice ")"
maybe: "[" choice "]"
PUBLIC: "public"
IMPORT: "import"
STAR: "*"
PLUS: "+"
RULE: /<[^<>\s]+>/
WEIGHT: /\/[ \t]*[0-9.][0-9.eE+-]*[fFdD]?[ \t]*\//
TAG: /\{(?:[^{}\\]|\\.)*\}/s
QUOTED: /"(?:[^"\\\n]|\\.)+"/
TOKEN: /(?:[^\s;=|*+<>()\[\]{}\/"\\]|\\\S)+/
COMMENT: /\/\/[^\n]*/ | /\/\*[^*]*\*+(?:[^\/*][^*]*\*+)*\//
%ignore COMMENT
%ignore /\s+/
"""
_NAMES = {
    **{"TOKEN": "a word", "RULE": "<rule>", "EQUAL": "'='", "SEMICOLON": "';'", "VBAR": "'|'"},
    **{"LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "GRAMMAR": "'grammar NAME;'", "PUBLIC": "'public'"},
}


def parse_jsgf(text: str, where: str = "JSGF grammar") -> WordNetwork:
    """Parse a JSGF grammar.

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
        For a syntax error, unknown rules, imports, recursion that is not at the end of a rule, a grammar without a
        public rule, and one that is too large or nested too deeply.

    Examples
    --------
    >>> parse_jsgf("#JSGF V1.0; grammar g; public <s> = turn (on | off);").words
    ['turn', 'on', 'off']
    """
    rules, public = jsgf_rules(text, where)
    if not public:
        raise FormatError(f"{where}: no public rule; expected `public <name> = ...;`, whose sentences are recognised")
    return expand(rules, public, where)


def jsgf_rules(text: str, where: str = "JSGF grammar") -> tuple[dict[str, Expression], list[str]]:
    """Return the rules of a JSGF grammar by their names in angle brackets, and the names of the public ones.

    Raises FormatError for a syntax error, imports, and a rule that is defined twice.
    """
    header = HEADER.match(text)
    if header is None:
        first_line = text.strip().split("\n")[0][:MOST_SHOWN]
        raise FormatError(f"{where}:1: {first_line!r}; expected '#JSGF V1.0;', the header of a JSGF grammar")
    blank = "\n" * text.count("\n", 0, header.end())  # keeps the numbers of the lines
    name, definitions = parse(_parser(), blank + text[header.end() :], where, _NAMES)
    rules: dict[str, Expression] = {}
    for rule, line, expression, _ in definitions:
        if rule in rules or rule in SPECIAL:
            raise FormatError(f"{where}:{line}: rule {rule} is defined already; expected each name once")
        rules[rule] = expression
    public = [rule for rule, _, _, is_public in definitions if is_public]
    qualified = {f"<{name}.{rule[1:]}": Reference(rule, 1) for rule in rules}
    return {**qualified, **rules, **SPECIAL}, public


@functools.cache
def _parser() -> Any:
    from lark import Lark, Token, Transformer

    class Build(Transformer[Token, Any]):
        """Makes the expressions while lark parses, which takes no recursion."""

        def start(self, parts: list[Any]) -> tuple[str, list[Any]]:
            return str(parts[0]), [part for part in parts[1:] if part is not None]

        def import_(self, parts: list[Any]) -> NoReturn:
            raise LineFault(parts[0].line, f"import of {parts[1]}; expected all rules in one file, without imports")

        def rule(self, parts: list[Any]) -> tuple[str, int, Expression, bool]:
            name = parts[-2]
            return str(name), name.line, parts[-1], len(parts) == 3

        def choice(self, parts: list[Any]) -> Expression:
            expressions, weights = zip(*parts)
            numbers = [None if weight is None else _number(weight) for weight in weights]
            line = next((weight.line for weight in weights if weight is not None), 0)
            return weighted_choice(expressions, numbers, line)

        def alternative(self, parts: list[Any]) -> tuple[Expression, Token | None]:
            weight = parts.pop(0) if isinstance(parts[0], Token) else None
            return series(parts), weight

        def item(self, parts: list[Any]) -> Any:
            expression, *marks = parts
            for mark in marks:
                if mark.type == "TAG":
                    tag = canonical(_ESCAPE.sub(r"\1", mark[1:-1])).strip()
                    expression = Tagged(expression, tag) if tag else expression
                else:
                    expression = Repeat(expression, int(mark.type == "PLUS"))
            return expression

        def word(self, parts: list[Any]) -> Word:
            text = str(parts[0])
            return Word(canonical(_ESCAPE.sub(r"\1", text[1:-1] if text.startswith('"') else text)))

        def reference(self, parts: list[Any]) -> Reference:
            return Reference(str(parts[0]), parts[0].line)

        def group(self, parts: list[Any]) -> Any:
            return parts[0]

        def maybe(self, parts: list[Any]) -> Maybe:
            return Maybe(parts[0])

    return Lark(_GRAMMAR, parser="lalr", transformer=Build(), maybe_placeholders=False)


def _number(weight: Any) -> float:
    """Return the value of a weight such as /10/ or /8f/."""
    text = weight.strip("/").strip().rstrip("fFdD")
    if not is_number(text):
        raise LineFault(weight.line, f"weight {weight[:MOST_SHOWN]}; expected a number, such as /2.5/")
    return float(text)
