"""A long line of a configuration, a network description or an editing script is parsed in linear time."""

import pytest

from acoustic.descriptions.mel.parse import parse_script
from acoustic.descriptions.ndl import parse_ndl
from readers.config.config import Config
from readers.config.syntax import Source
from tests.languages.targets import limited


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parse", "statement", "count"),
    [
        (lambda text: Config.from_text(text, "f").names(), "a=[]", 100_000),
        (lambda text: parse_ndl(Source.from_text(text, "f")).statements, "a=F(b) ", 50_000),
        (lambda text: parse_script(Source.from_text(text, "f")).statements, "a=[]", 150_000),
        (lambda text: Source.from_text(text, "f").text, '""', 600_000),
    ],
    ids=["configuration", "description", "script", "quotes"],
)
def test_a_long_line_takes_linear_time(parse, statement, count):
    with limited():
        assert parse(statement * count)
