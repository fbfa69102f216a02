"""Declared options: values of several words, switches that are on, off or unset, and names of options in groups."""

import argparse
from dataclasses import dataclass
from pathlib import Path

import pytest

from readers.config.options import OptionFault, Options, group, option
from recipes.cli.flags import add_flags, options_from


@dataclass(frozen=True, kw_only=True)
class Inner(Options):
    """A group."""

    words: Path | None = option(None, "list of words")


@dataclass(frozen=True, kw_only=True)
class Outer(Options):
    """Options with all kinds of flags."""

    models: tuple[Path, ...] = option((), "models, instead of {words}", separator=" ")
    silence: bool | None = option(None, "allow silence")
    inner: Inner = group(Inner)
    loop: bool = option(False, "a loop")
    shown: bool = option(False, "show all", flag="-A -D")
    snr: tuple[float, ...] | None = option(None, "range of noise", separator=":", heading="noise")

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
        (("--no-silence", "--words", "c"), Outer(silence=False, inner=Inner(words="c"))),
        (("-D", "--snr", "5:20"), Outer(shown=True, snr=(5.0, 20.0))),
    ],
)
def test_flags_give_options_and_options_flags(words, expected):
    assert parsed(*words) == expected
    assert parsed(*expected.to_flags()) == expected


@dataclass(frozen=True, kw_only=True)
class Command(Options):
    """A group with headings of its own, and an option after it."""

    outer: Outer = group(Outer)
    seed: int = option(0, "seed")
    pair: tuple[int, ...] = option((1, 2), "two numbers", separator=",", heading="pairs")


def test_headings_in_groups_make_sections_of_the_help():
    parser = argparse.ArgumentParser()
    add_flags(parser, Command)
    noise, pairs = parser.format_help().split("\nnoise:\n")[1].split("\n\npairs:\n")
    assert [line.split()[0] for line in noise.splitlines()] == ["--snr", "--seed"]
    assert pairs.split() == ["--pair", "N", "two", "numbers", "(1,2)"]


def test_values_in_one_word_are_numbers(capsys):
    with pytest.raises(SystemExit):
        parsed("--snr", "5-20")
    assert "argument --snr: '5-20'; expected numbers separated by ':'" in capsys.readouterr().err


def test_an_option_of_a_group_is_named_in_helps_and_faults():
    parser = argparse.ArgumentParser()
    add_flags(parser, Outer)
    assert "models, instead of --words" in parser.format_help()
    with pytest.raises(OptionFault, match=r"^words is given beside loop$") as caught:
        Outer(loop=True, inner=Inner(words="c"))
    assert caught.value.message("flag") == "--words is given beside --loop"


def test_the_docstring_names_the_fault_of_a_value_out_of_range():
    assert Inner.__doc__.endswith("\n\nRaises\n------\nOptionFault\n    For a value out of range.\n")
    assert Inner.__doc__.startswith("A group.\n\nParameters\n----------\nwords : Path | None\n    List of words.")
