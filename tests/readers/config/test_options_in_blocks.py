"""Options as a block of a configuration sets them: names, converted texts, faults."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from readers.config.config import Config
from readers.config.options import Option, Options, Range, group, like, option
from readers.errors import ConfigError

SPELLINGS = {"off": "none", "search": "before"}


def positive(text: str) -> int:
    if not text.isdecimal():
        raise ConfigError("a sign; expected digits")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class Rates(Options):
    mode: Literal["none", "before"] = option("none", "when", parse=lambda text: SPELLINGS.get(text.lower(), text))
    count: int = option(1, "how many", parse=positive)
    size: Sequence[int] = option((4,), "frames", unit="frames", least=1, cntk="size oldSize")
    limit: float = option(1.0, "limit", above=0, most=math.inf)


@dataclass(frozen=True, kw_only=True)
class Others(Options):
    size: Sequence[int] = like(Rates, "size")


def read(text: str, options: type[Options] = Rates) -> Options:
    return options.from_block(Config.from_text(text, "r.cntk").block("B"))


def test_texts_are_converted_and_empty_ones_are_the_default():
    assert read("B=[mode=Search;count=7;limit=1#INF]") == Rates(mode="before", count=7, limit=math.inf)
    assert read("B=[mode=;count=]") == Rates()


@pytest.mark.parametrize(
    ("text", "size"), [("oldSize=3\nB=[size=2]", 2), ("size=3\nB=[oldSize=2]", 2), ("B=[size=1;oldSize=2]", 1)]
)
def test_a_name_in_the_block_precedes_names_in_blocks_around(text, size):
    assert read(text).size == (size,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("B=[mode=befor]", "r.cntk:1: B.mode is 'befor'; expected none or before; did you mean before"),
        ("\nB=[count=-1]", "r.cntk:2: B.count is '-1': a sign; expected digits"),
        ("B=[oldSize=0]", "r.cntk:1: B.oldSize is 0; expected at least 1 frame"),
        ("B=[limit=0]", "r.cntk:1: B.limit is 0; expected above 0"),
    ],
)
def test_faults_name_place_value_and_expectation(text, message):
    with pytest.raises(ConfigError) as fault:
        read(text)
    assert str(fault.value) == message


def test_an_option_of_another_class_has_the_same_names_and_range():
    assert read("B=[oldSize=5]", Others) == Others(size=5)
    with pytest.raises(ConfigError, match="size is 0; expected at least 1 frame"):
        Others(size=0)


def test_a_unit_is_singular_after_one():
    assert Option(name="x", help="", unit="frames", range=Range(least=1)).describe() == "at least 1 frame"
    assert Option(name="x", help="", unit="frames", range=Range(least=2)).describe() == "at least 2 frames"
    assert Option(name="x", help="", unit="frames", range=Range(least=0, most=1)).describe() == "0 to 1 frames"


@dataclass(frozen=True, kw_only=True)
class Corpus(Options):
    name: str = option("", "name")
    files: tuple[Path, ...] = option((), "files", own=True)
    shifts: tuple[int, ...] = option((0,), "shifts")
    is_whole: bool = option(True, "whole")
    rates: Rates = group(Rates)
    others: Others | None = option(None, "others")


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        Corpus(),
        Corpus(name="a, b; c=[d] # e:f", files=("x:y.scp", "a b"), shifts=(-1, 2), is_whole=False),
        Corpus(name="default", rates=Rates(mode="before", size=(4, 8), limit=math.inf), others=Others()),
        Corpus(name="$HOME {x} 'y' *3", rates=Rates(limit=1e-30)),
    ],
)
def test_settings_say_what_the_options_are(options, complete):
    assert Corpus.from_block(Config.from_text("\n".join(options.to_settings(complete)))) == options


def test_settings_are_those_that_differ_from_the_defaults():
    assert Corpus(shifts=(1,)).to_settings() == ["shifts={1}", "rates=[]"]
    with pytest.raises(ConfigError, match="has a quotation mark or a line break; expected a text without"):
        Corpus(name='5"').to_settings()
