"""Names of numbers by rules, as in ICU's rule-based number formats.

A rule `base: text` names the numbers from its base up to the next rule's.  The divisor is the largest power of ten that
is at most the base; with `base/radix: text` it is a power of the radix.  In the text

    <<  is the name of the number divided by the divisor, >> that of the remainder
    <form<, >form> and =form=  are the same by the rules of another form, = for the number itself
    [text|other]  is `text` if there is a remainder, else `other`, which may be missing with its |

For example, `100: << hundred[ and >>]` names 205 two hundred and five.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

MOST_DIGITS = 18  # of a number with a name; longer ones are read digit by digit
_SUBSTITUTION = re.compile(r"<(\w*)<|>(\w*)>|=(\w+)=")
_OPTIONAL = re.compile(r"\[([^][|]*)(?:\|([^][|]*))?\]")


class NumberRule(NamedTuple):
    """The names of the numbers from `base` up."""

    base: int
    divisor: int
    text: str


def number_rule(base: int, radix: int, text: str) -> NumberRule:
    """Return the rule; its divisor is the largest power of the radix that is at most the base."""
    divisor = 1
    while divisor * radix <= base:
        divisor *= radix
    return NumberRule(base, divisor, text)


def forms_in(text: str) -> set[str]:
    """Return the forms that the text of a rule names; "" is its own."""
    return {next((name for name in names if name), "") for names in _SUBSTITUTION.findall(text)}


def name_of(number: int, form: str, forms: Mapping[str, Sequence[NumberRule]]) -> str:
    """Return the words of a number that is not negative; forms: form -> rules, sorted, the first for 0."""
    rules = forms[form]
    rule = rules[bisect_right(rules, number, key=lambda each: each.base) - 1]
    quotient, remainder = divmod(number, rule.divisor)
    text = _OPTIONAL.sub(lambda match: match[1] if remainder else match[2] or "", rule.text)

    def part(match: re.Match[str]) -> str:
        if match[3]:
            return name_of(number, match[3], forms)
        if match[1] is not None:
            return name_of(quotient, match[1] or form, forms)
        return name_of(remainder, match[2] or form, forms)

    return _SUBSTITUTION.sub(part, text)
