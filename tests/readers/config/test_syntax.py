"""Records, brackets, quotes and comments: every message names the line where the fault stands."""

import pytest

from readers.config.syntax import Source, split_assignment, split_records, strip_comment
from readers.errors import ConfigError


def records(text: str, separators: str = ";") -> list[str]:
    return [record.text for record in split_records(Source.from_text(text, "f").span, separators)]


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("a=1 # note", "a=1"),
        ("   # note", ""),
        ("var=1#INF", "var=1#INF"),
        ("var=1#INF # note", "var=1#INF"),
        ('a="x # y" # z', 'a="x # y"'),
        ('a=5" # z', 'a=5"'),
        ("a=1\t# z", "a=1"),
    ],
)
def test_strip_comment(line, left):
    assert strip_comment(line) == left


def test_records_end_at_newline_comma_and_separator_outside_of_brackets():
    assert records("a=1,b=2;c=[d=1;e=2\nf=3]\n\n g = F(x, y) ;; h") == [
        "a=1",
        "b=2",
        "c=[d=1;e=2\nf=3]",
        "g = F(x, y)",
        "h",
    ]
    assert records('a="x;y,z]";b', ";") == ['a="x;y,z]"', "b"]
    assert records("a=1|b=2;c", "|") == ["a=1", "b=2;c"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = b", ("a", "b")),
        ("a=b=c", ("a", "b=c")),
        ("a[b=1]", ("a", "[b=1]")),
        ("F (x, y)", ("F", "(x, y)")),
        ("a", ("a", None)),
        ("a=", ("a", "")),
    ],
)
def test_split_assignment(text, parts):
    name, value = split_assignment(Source.from_text(text, "f").span)
    assert (name.text, value and value.text if value is None else value.text) == parts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=[\nb=1\n", r"^f:1: \[ is opened and not closed before f:3; expected a \]"),
        ("a=1\nb=[c=(1]\n", r"^f:2: found \]; expected \) to close the \( of f:2"),
        ("a=1\n]\n", r"^f:2: found \] without an opening \["),
        ('a=[\n b="x\n', "^f:2: a quote is opened and not closed"),
        ('a=[\n b="x[\n]', "^f:2: a quote is opened and not closed"),
        ('a="x\nb=y"', "^f:1: a quote is opened and not closed"),
        ("a=[\n[x)\n]", r"^f:2: found \); expected \] to close the \[ of f:2"),
    ],
)
def test_bracket_faults_name_the_line(text, message):
    with pytest.raises(ConfigError, match=message):
        records(text)


def test_spans_know_their_place_in_mixed_sources():
    source = Source([("a=1", "base:7"), ("b=2", "exp:1"), ("", "exp:2"), ("c=3", "line of command")])
    assert [(r.text, r.where) for r in split_records(source.span, ";")] == [
        ("a=1", "base:7"),
        ("b=2", "exp:1"),
        ("c=3", "line of command"),
    ]
