"""What a converter of models of others is, and what it returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from readers.common.report import Log

if TYPE_CHECKING:
    from decoder.graph.monophone import DecodingAcceptor
    from recipes.packing import PackOptions

# Of the search, for mixtures of Gaussians, chosen on training speakers of AN4.  Word errors with en-us of Sphinx:
# 21.4 %, with an acoustic weight of 0.125 20.8 %, but slower; with monophones of a flat start on another corpus:
# 27.2 %, with 0.1 31.5 %, with 0.2 27.7 %.
GAUSSIAN_SEARCH = {"acweight": 0.15, "word_penalty": 0.0, "beam": 20.0, "word_end_beam_frac": 0.8}


OF_NETWORK = ("window", "output_node")  # parts that tell how a network is used, which a converted model knows


@dataclass(frozen=True)
class Conversion:
    """A converted model: parts by the names of `PartOptions`, and its silence models unless the graph tells them."""

    parts: Mapping[str, Any]
    silence: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Converter:
    """Converts models of one kind.

    Attributes
    ----------
    source : str
        What is converted, for messages.
    recognises : callable
        recognises(options) is whether they name such a model.
    convert : callable
        convert(options, directory, log) writes the parts to a directory and returns a Conversion; log(line) is told
        what is left out.  Raises ArgonautError and OSError for files that are damaged or do not fit together.
    required, excluded : tuple of str
        Names of the `PartOptions` that must, and those that must not, be given.
    """

    source: str
    recognises: Callable[["PackOptions"], bool]
    convert: Callable[["PackOptions", Path, Log], Conversion]
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def check(self, options: "PackOptions") -> None:
        """Raise OptionFault for a part that is missing or must not be given."""
        parts = options.parts
        for name in self.required:
            parts.require(name, getattr(parts, name) is not None, f"is missing; expected one for {self.source}")
        for name in self.excluded:
            parts.require(name, getattr(parts, name) is None, f"is given; expected none for {self.source}")


def tell_dropped(graph: "DecodingAcceptor", log: Log) -> None:
    """Log how many words and pronunciations a graph leaves out, and why the first of them."""
    dropped = [*graph.dropped, *graph.dropped_pronunciations]
    if dropped:
        word, reason = dropped[0]
        log(f"words or pronunciations left out: {len(dropped)}, the first is {word}: {reason}")


def check_rate(options: "PackOptions", rate: int) -> None:
    """Raise OptionFault for another sampling rate than that of a model's features."""
    given = options.parts.rate
    options.parts.require("rate", given in (None, rate), f"is {given}; expected {rate}, that of {options.experiment}")


def has_file(options: "PackOptions", *names: str) -> bool:
    """Return whether the options name a directory with any of some files."""
    root = options.experiment
    return root is not None and any((root / name).is_file() for name in names)
