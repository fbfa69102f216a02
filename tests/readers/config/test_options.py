"""Declared options: their ranges, their faults by every way in, blocks of a configuration, flags and docstrings."""

import argparse
import inspect
import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.config.check import CheckedConfig
from readers.config.config import Config
from readers.config.options import (
    OptionFault,
    Options,
    Range,
    given,
    group,
    idle_notes,
    located_faults,
    option,
)
from readers.errors import ConfigError
from recipes.cli.flags import add_flags, options_from


def parse_pair(text: str) -> tuple[str, str]:
    """Parse A+B."""
    left, plus, right = text.partition("+")
    if not plus:
        raise ConfigError("expected A+B")
    return left, right


@dataclass(frozen=True, kw_only=True)
class TreeOptions(Options):
    """Options of the trees."""

    min_frames: float = option(100.0, "minimum size of a leaf", unit="frames", least=0)
    most_leaves: int = option(9, "leaves of all trees", above=1, most=99, flag="--leaves -l")


@dataclass(frozen=True, kw_only=True)
class SampleOptions(Options):
    """Options of a sample.

    Raises
    ------
    OptionFault
        For a context without trees.
    """

    files: tuple[Path, ...] = option((), "what to read", flag="FILES")
    rate: float = option(math.inf, "rate of something", above=0)
    name: str = option("x", "its name, of {context}")
    path: Path | None = option(None, "where to write")
    context: Literal["both", "left"] = option("both", "neighbours that count")
    sizes: Sequence[int] = option((256,), "frames of a minibatch", unit="frames", least=1)
    words: tuple[str, ...] = option((), "some words", flag="--word")
    limits: tuple[float, ...] = option((0.0, 1.0), "range", least=-1)
    fast: bool = option(False, "do not wait")
    slow: bool = option(True, "wait")
    bare: bool = option(True, "leave out the names", cntk=None)
    even: int = option(2, "an even number", check=lambda number: number % 2 == 0, expected="an even number")
    pair: Any = option(None, "two names", parse=parse_pair, flag=None)
    pairs: tuple[Any, ...] = option((), "pairs of names", parse=parse_pair, flag=None)
    size: int = option(7, "a size with an older name", cntk="size oldSize", least=1)
    kind: str = option("plain", "its kind", own=True)
    mark: int | Literal["mix"] | None = option(None, "a number or a word", flag=None, cntk=None)
    trees: TreeOptions = group(TreeOptions)
    seed: int = given(5, "seed of the program")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("context", self.context != "left" or not self.fast, "is given beside {fast}; expected one of them")


def block(text: str) -> Config:
    return Config.from_text(f"size=1\nkind=outer\nsample=[\n{text}\n]\n", "s.config").block("sample")


def from_block(text: str) -> SampleOptions:
    return SampleOptions.from_block(block(text))


def parse(words: list[str]) -> SampleOptions:
    parser = argparse.ArgumentParser()
    add_flags(parser, SampleOptions)
    return options_from(parser.parse_args(words), SampleOptions)


# Declarations


def test_names_are_those_of_the_field():
    declared = SampleOptions.declaration("sizes")
    assert (declared.key, declared.flags, declared.metavar) == ("sizes", ("--sizes",), "N")
    declared = TreeOptions.declaration("min_frames")
    assert (declared.key, declared.flag, declared.metavar, declared.type) == ("minFrames", "--min-frames", "X", float)
    assert TreeOptions.declaration("most_leaves").flag == "--leaves"
    assert SampleOptions.declaration("slow").flag == "--no-slow"
    assert SampleOptions.declaration("context").choices == ("both", "left")
    assert "seed" not in SampleOptions.option_keys()
    assert SampleOptions.option_keys()[-5:] == ["pairs", "size", "oldSize", "kind", "trees"]


@pytest.mark.parametrize(
    ("bounds", "text", "inside", "outside"),
    [
        ({"least": 0}, "at least 0", [0, 5], [-1]),
        ({"above": 0}, "above 0", [0.1], [0, -1]),
        ({"most": 9}, "at most 9", [9, -1], [10]),
        ({"below": 1}, "below 1", [0.99], [1]),
        ({"least": 1, "most": 9}, "1 to 9", [1, 9], [0, 10]),
        ({"above": 0, "most": 1}, "above 0, at most 1", [1], [0, 2]),
        ({"least": 0, "most": math.inf}, "at least 0", [math.inf], [-1]),
        ({}, "", [-math.inf, 3], []),
    ],
)
def test_ranges(bounds, text, inside, outside):
    assert str(Range(**bounds)) == text
    assert all(number in Range(**bounds) for number in inside)
    assert not any(number in Range(**bounds) for number in outside)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sizes": 0}, "sizes is 0; expected at least 1 frame"),
        ({"sizes": (4, 0)}, "sizes is 0; expected at least 1 frame"),
        ({"sizes": ()}, "sizes is empty; expected at least 1 frame"),
        ({"sizes": 2**31}, "sizes is 2147483648; expected at most 2147483647"),
        ({"rate": 0.0}, "rate is 0; expected above 0"),
        ({"rate": math.nan}, "rate is nan; expected a finite number, above 0"),
        ({"rate": 10**400}, "rate is too large; expected a finite number, above 0"),
        ({"limits": (0.5, -math.inf)}, "limits is -inf; expected a finite number, at least -1"),
        ({"context": "right"}, "context is 'right'; expected both or left"),
        ({"even": 3}, "even is 3; expected an even number"),
        ({"even": "4"}, "even is '4'; expected an integer"),
        ({"even": True}, "even is true; expected an integer"),
        ({"size": None}, "size is None; expected an integer"),
        ({"sizes": (4, 2.5)}, "sizes is 2.5; expected an integer"),
        ({"sizes": "256"}, "sizes is '256'; expected an integer"),
        ({"rate": "0.5"}, "rate is '0.5'; expected a number"),
        ({"fast": "no"}, "fast is 'no'; expected true or false"),
        ({"name": 3}, "name is 3; expected text"),
        ({"name": None}, "name is None; expected text"),
        ({"path": b"out"}, "path is b'out'; expected a path"),
        ({"path": "a\0b"}, r"path is 'a\x00b'; expected a path that the system can have"),
        ({"files": "a\ud800"}, r"files is 'a\ud800'; expected a path that the system can have"),
        ({"files": ("a", "")}, "files is ''; expected a path"),
        ({"files": None}, "files is None; expected a path"),
        ({"words": 3}, "words is 3; expected text"),
        ({"words": {"a", "b"}}, "words is set; expected text"),
        ({"limits": None}, "limits is None; expected a number"),
        ({"context": ["both"]}, "context is list; expected both or left"),
        ({"fast": np.arange(2)}, "fast is ndarray; expected true or false"),
        ({"mark": 0.5}, "mark is 0.5; expected an integer or text"),
        ({"trees": None}, "trees is None; expected TreeOptions"),
        ({"trees": "9"}, "trees is '9'; expected TreeOptions"),
        ({"trees": Options()}, "trees is Options; expected TreeOptions"),
        ({"context": "left", "fast": True}, "context is given beside fast; expected one of them"),
    ],
)
def test_values_out_of_range(values, message):
    with pytest.raises(OptionFault) as caught:
        SampleOptions(**values)
    assert str(caught.value) == message


def test_values_are_normalised():
    options = SampleOptions(sizes=4, path="out", words=["a", "b"])
    assert (options.sizes, options.sizes[9], options.path, options.words) == ((4,), 4, Path("out"), ("a", "b"))
    assert SampleOptions(sizes=(4, 8)).sizes[5] == 8
    assert (SampleOptions(limits=3).limits, SampleOptions(sizes=range(2, 4)).sizes) == ((3,), (2, 3))
    assert SampleOptions(limits=np.array([1.5, 2])).limits == (1.5, 2)
    options = SampleOptions(sizes=np.int32(4), rate=np.float64(0.5), fast=np.True_, name=np.str_("n"))
    values = (*options.sizes, options.rate, options.fast, options.name)
    assert list(map(type, values)) == [int, float, bool, str]
    assert (SampleOptions(mark=3).mark, SampleOptions(mark="mix").mark) == (3, "mix")
    assert SampleOptions().rate == math.inf  # not finite, but the default


# Blocks


def test_a_block_sets_options():
    options = from_block(
        "sizes=4:8; limits=1e-1:2; words=a:b; context=LEFT; rate=1.5; path=a\\b; fast=true; context=both\n"
        "pair=c+d; pairs=e+f:g+h\n"
        "trees=[minFrames=2]"
    )
    assert (options.sizes, options.limits, options.words, options.context) == ((4, 8), (0.1, 2.0), ("a", "b"), "both")
    assert (options.rate, options.path, options.fast, options.pair) == (1.5, Path("a/b"), True, ("c", "d"))
    assert options.pairs == (("e", "f"), ("g", "h"))
    assert options.trees == TreeOptions(min_frames=2)
    assert (options.slow, options.seed, options.even) == (True, 5, 2)


def test_a_name_of_a_block_around_counts_unless_only_the_own_one_does():
    assert (from_block("").size, from_block("").kind) == (1, "plain")
    assert (from_block("size=3").size, from_block("kind=inner").kind) == (3, "inner")


def test_a_word_default_and_an_empty_text_are_the_default():
    options = from_block("path=; rate=default; kind=default; words={}")
    assert options == from_block("")


def test_an_older_name_is_read_and_named_in_faults():
    outermost = Config.from_text("sample=[oldSize=4]", "s.config").block("sample")
    assert SampleOptions.from_block(outermost).size == 4
    outermost = Config.from_text("sample=[oldSize=0]", "s.config").block("sample")
    with pytest.raises(ConfigError, match=r"^s\.config:1: sample\.oldSize is 0; expected at least 1$"):
        SampleOptions.from_block(outermost)
    both = Config.from_text("sample=[oldSize=4;size=5]", "s.config").block("sample")
    assert SampleOptions.from_block(both).size == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sizes=4\nsizes=0", "s.config:5: sample.sizes is 0; expected at least 1 frame"),
        ("limits=0:x", "s.config:4: sample.limits is 'x'; expected a number"),
        ("even=1.5", "s.config:4: sample.even is '1.5'; expected an integer"),
        ("even=3", "s.config:4: sample.even is 3; expected an even number"),
        ("context=right", "s.config:4: sample.context is 'right'; expected both or left"),
        ("\npair=c", "s.config:5: sample.pair is 'c': expected A+B"),
        ("pairs=a+b:c", "s.config:4: sample.pairs is 'c': expected A+B"),
        ("fast=true; context=left", "s.config:4: sample.context is given beside fast; expected one of them"),
        ("trees=[\nminFrames=-1]", "s.config:5: sample.trees.minFrames is -1; expected at least 0 frames"),
        ("trees=3", "s.config:4: sample.trees is '3'; expected a block [...]"),
    ],
)
def test_faults_of_blocks_have_file_line_and_full_name(text, message):
    with pytest.raises(ConfigError) as caught:
        from_block(text)
    assert str(caught.value) == message


def test_values_without_their_class_have_located_faults_too():
    assert SampleOptions.values_in(block("even=4; pair=a+b"), without=["size"]) == {"even": 4, "pair": ("a", "b")}
    with pytest.raises(ConfigError, match=r"^s\.config:4: sample\.pair is 'c': expected A\+B$"):
        SampleOptions.values_in(block("pair=c"))


def test_a_required_option_is_missing():
    @dataclass(frozen=True, kw_only=True)
    class Required(Options):
        dim: int = option(help="rows", least=1)

    with pytest.raises(ConfigError, match=r"^s\.config:3: sample\.dim is not set, in this or an enclosing block"):
        Required.from_block(block("dom=3"))
    assert Required.from_block(block("dom=3"), dim=4) == Required(dim=4)


def test_a_check_finds_every_fault_of_a_block():
    config = CheckedConfig.from_text("sample=[\nsizes=0\nrate=x\neven=3\ntrees=[minFrames=-1]\n]", "s.config")
    assert config.check(lambda: SampleOptions.from_block(config.block("sample"))) is not None
    places = sorted(fault.split(";")[0] for fault in config.findings.faults[""])
    assert places == [
        "s.config:2: sample.sizes is 0",
        "s.config:3: sample.rate is 'x'",
        "s.config:4: sample.even is 3",
        "s.config:5: sample.trees.minFrames is -1",
    ]


def test_unknown_and_idle_names():
    block("sizes=3").refuse_unknown(SampleOptions.option_keys())
    with pytest.raises(ConfigError, match=r"^s\.config:4: sample\.sises is not known here; did you mean sizes$"):
        block("sises=3").refuse_unknown(SampleOptions.option_keys())
    notes = idle_notes(block("unroll=3"), {"unroll": "why", "size": "of a block around"})
    assert notes == ["s.config:4: sample.unroll has no effect: why"]


# Faults by way in


def test_a_fault_names_the_option_as_its_user_wrote_it():
    with pytest.raises(OptionFault) as caught:
        TreeOptions(most_leaves=1)
    text = "is 1; expected above 1, at most 99"
    assert caught.value.message("name") == f"most_leaves {text}"
    assert caught.value.message("key") == f"mostLeaves {text}"
    assert caught.value.message("flag") == f"--leaves {text}"
    with pytest.raises(OptionFault) as caught:
        SampleOptions(context="left", fast=True)
    assert caught.value.message("flag") == "--context is given beside --fast; expected one of them"
    with pytest.raises(ConfigError, match=r"^s\.config:3: sample\.mostLeaves is 1"), located_faults(block("")):
        TreeOptions(most_leaves=1)


# Flags

WORDS = st.text(st.characters(exclude_categories=("C",)), max_size=5).map(canonical).filter(lambda text: text != "--")
PATHS = st.text(st.characters(categories=("L",)), min_size=1, max_size=5).map(canonical).map(Path)
NUMBERS = st.floats(-1, 1e9, allow_nan=False)
DRAWN = {
    "files": st.lists(PATHS, max_size=3).map(tuple),
    "rate": st.floats(0, exclude_min=True, allow_nan=False),
    "name": WORDS,
    "path": st.none() | PATHS,
    "sizes": st.lists(st.integers(1, 2**31 - 1), min_size=1, max_size=3).map(tuple),
    "words": st.lists(WORDS, max_size=3).map(tuple),
    "limits": st.lists(NUMBERS, min_size=1, max_size=3).map(tuple),
    "slow": st.booleans(),
    "bare": st.booleans(),
    "even": st.integers(-(2**29), 2**29).map(lambda number: 2 * number),
    "size": st.integers(1, 99),
    "kind": WORDS,
    "trees": st.builds(TreeOptions, min_frames=st.floats(0, 1e300), most_leaves=st.integers(2, 99)),
}
CONTEXTS = st.sampled_from([("both", True), ("both", False), ("left", False)])


@drawn(st.fixed_dictionaries(DRAWN), CONTEXTS)
def test_flags_give_back_the_options(values, context):
    options = SampleOptions(**values, context=context[0], fast=context[1])
    assert parse(options.to_flags()) == options
    assert {field.name for field in fields(options)} == {*DRAWN, "context", "fast", "pair", "pairs", "mark", "seed"}


def test_flags_are_those_that_differ_from_the_defaults():
    assert SampleOptions().to_flags() == []
    options = SampleOptions(files=("a",), slow=False, sizes=3, words=("-v", "w"), trees=TreeOptions(most_leaves=3))
    assert options.to_flags() == ["a", "--sizes", "3", "--word=-v", "--word", "w", "--no-slow", "--leaves", "3"]
    assert [(declared.name, value) for declared, value in options.changed()] == [
        ("files", (Path("a"),)),
        ("sizes", (3,)),
        ("words", ("-v", "w")),
        ("slow", False),
        ("most_leaves", 3),
    ]


@dataclass(frozen=True, kw_only=True)
class WordOptions(Options):
    """Options with positional texts."""

    model: Path = option(flag="model")
    words: tuple[str, ...] = option((), flag="words")
    size: int = option(1)


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (("a", "-"), ["m", "a", "-", "--size", "2"]),
        (("a", "-b", "--size"), ["--size", "2", "--", "m", "a", "-b", "--size"]),
    ],
)
def test_a_positional_text_that_begins_with_a_dash_is_no_flag(words, flags):
    options = WordOptions(model="m", words=words, size=2)
    assert options.to_flags() == flags
    parser = argparse.ArgumentParser()
    add_flags(parser, WordOptions)
    assert options_from(parser.parse_args(flags), WordOptions) == options


def test_a_path_that_begins_with_a_dash_is_no_flag():
    options = SampleOptions(files=("-x", "--name", "-"), path="--")
    assert options.to_flags() == ["./-x", "./--name", "-", "--path", "./--"]
    assert parse(options.to_flags()) == options


def test_a_fault_reaches_another_process():
    with pytest.raises(OptionFault) as caught:
        SampleOptions(even=3)
    fault = pickle.loads(pickle.dumps(caught.value))
    assert (str(fault), fault.message("flag"), fault.key) == (
        str(caught.value),
        "--even is 3; expected an even number",
        "even",
    )


def test_help_has_meaning_and_default():
    parser = argparse.ArgumentParser()
    add_flags(parser, SampleOptions)
    text = " ".join(parser.format_help().split())
    assert "--name TEXT its name, of --context (x)" in text
    assert "--min-frames X minimum size of a leaf (100)" in text
    assert "--context {both,left} neighbours that count (both)" in text
    assert "--seed" not in text


# Several values, switches that are on, off or unset, and options of groups


@dataclass(frozen=True, kw_only=True)
class Inner(Options):
    """A group."""

    words: Path | None = option(None, "list of words")


@dataclass(frozen=True, kw_only=True)
class Outer(Options):
    """Options with all kinds of flags."""

    models: tuple[Path, ...] = option((), "models, instead of {words}", separator=" ")
    silence: bool | None = option(None, "allow silence")
    weights: tuple[float, ...] | None = option(None, "weights of {models}", separator=",")
    inner: Inner = group(Inner)
    loop: bool = option(False, "a loop")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("words", not (self.loop and self.inner.words), "is given beside {loop}")


def parsed(*words: str) -> Outer:
    parser = argparse.ArgumentParser()
    add_flags(parser, Outer)
    return options_from(parser.parse_args(words), Outer)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), Outer()),
        (("--models", "a", "b", "--loop"), Outer(models=("a", "b"), loop=True)),
        (("--models", "a", "--models", "b"), Outer(models=("a", "b"))),
        (("--silence",), Outer(silence=True)),
        (("--weights=-1,0.5",), Outer(weights=(-1, 0.5))),
        (("--words", ""), Outer()),  # as an unset variable of a script gives it
        (("--no-silence", "--words", "c"), Outer(silence=False, inner=Inner(words="c"))),
    ],
)
def test_flags_give_options_and_options_flags(words, expected):
    assert parsed(*words) == expected
    assert parsed(*expected.to_flags()) == expected


def test_several_values_may_be_unset_or_one():
    assert (Outer().weights, Outer(models="a").models) == (None, (Path("a"),))
    config = Config.from_text("outer=[weights=default]\nweighted=[weights=1:2]", "o.config")
    assert Outer.from_block(config.block("outer")) == Outer()
    assert Outer.from_block(config.block("weighted")).weights == (1, 2)


def test_an_option_of_a_group_is_named_in_helps_and_faults():
    parser = argparse.ArgumentParser()
    add_flags(parser, Outer)
    assert "models, instead of --words" in parser.format_help()
    with pytest.raises(OptionFault, match=r"^words is given beside loop$") as caught:
        Outer(loop=True, inner=Inner(words="c"))
    assert caught.value.message("flag") == "--words is given beside --loop"


# Docstrings


def test_docstrings_are_made_of_the_declarations():
    text = inspect.getdoc(SampleOptions)
    begin, end = text.index("Parameters\n----------\n"), text.index("\n\nRaises\n------")
    assert 0 < begin < end
    assert "sizes : Sequence[int], default (256,)\n    Frames of a minibatch (at least 1 frame).\n" in text
    assert "context : Literal['both', 'left'], default 'both'\n    Neighbours that count.\n" in text
    assert "name : str, default 'x'\n    Its name, of context.\n" in text
    assert "words : tuple[str, ...]\n    Some words.\nlimits" in text
    assert "fast : bool\n    Do not wait.\nslow : bool, default True\n    Wait.\nbare : bool, default True\n" in text
    assert "bare : bool, default True\n    False: leave out the names.\n" in text
    assert "trees : TreeOptions\nseed : int, default 5\n    Seed of the program." in text


def test_docstrings_of_several_bases_have_the_options_of_all():
    @dataclass(frozen=True, kw_only=True)
    class Both(TreeOptions, SampleOptions):
        """Options of both."""

        more: int = option(1, "one more")

    entries = [line.split(" : ")[0] for line in inspect.getdoc(Both).splitlines() if " : " in line]
    assert entries == [*(field.name for field in fields(Both))]
