"""Run a whole recipe, from a corpus to a scored decoding.

worked example:
  argonaut recipe an4 --data ~/corpora/an4 --out exp/an4
  argonaut recipe an4 --data ~/corpora/an4 --out exp/an4 --from decode
The first command prepares the data, trains, decodes and scores; the second repeats the stages from `decode` on.
An interrupted run continues where it stopped when the same command is given again.

  argonaut recipe list
prints the names of all recipes, and
  argonaut recipe --show-config an4
prints the paths of the configuration files of a recipe, to read, copy or use: `argonaut cntk configFile=PATH ...`.
"""

import argparse
import contextlib
import importlib
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from readers.common.environment import using_cores
from readers.common.files import held, holder, require_writable
from readers.errors import ConfigError
from recipes.cli.parser import Parser, moved_text

RECIPES = {
    "simple2d": "demo of CNTK book 1.2: two classes of points in the plane",
    "an4": "CMU Census (AN4): letters, numbers and dates, recorded with a close-talking microphone",
    "lvcsr": "cross-word triphones on AN4: states tied by decision trees, compared with monophones",
    "own": "your own corpus: from recordings, transcripts and a dictionary to a recogniser",
    "timit": "TIMIT phone recognition; without --data, phones and words of a synthesised corpus with its layout",
    "language_model": "RNN and LSTM language models (CNTK book 7.2, 7.3), on a generated text or your own",
    "reversal": "encoder and decoder that reverse strings of digits; with --data, other pairs of sequences",
    "understanding": "slot tagging of flight queries with an LSTM; without --data, on queries from a grammar",
}

# Experiments, which are not installed -> how a checkout runs them
MOVED = {
    "natural_gradient": "python -m benchmarks.natural_gradient",
    "stress": "python -m benchmarks.stress",
    "variants": "python -m benchmarks.variants",
}

LIST = "list"


class ShowConfig(argparse.Action):
    """Prints the configuration files of a recipe, and ends the command."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        directory = Path(__file__).parents[1] / values / "config"
        files = sorted(directory.iterdir()) if directory.is_dir() else []
        for file in files:
            print(file)
        if not files:
            print(f"recipe {values} has no configuration files", file=sys.stderr)
        parser.exit(0)


def add_arguments(parser: Parser) -> None:
    parser.moved = MOVED
    parser.add_argument(
        "--show-config", action=ShowConfig, choices=tuple(RECIPES), metavar="RECIPE",
        help="print the paths of a recipe's configuration files",
    )  # fmt: skip
    recipes = parser.add_subparsers(dest="recipe", metavar="RECIPE", required=True)
    listing = recipes.add_parser(LIST, help="print the names of the recipes")
    listing.add_argument("--json", action="store_true", help="print a JSON object, from names to descriptions")
    for name, text in RECIPES.items():
        recipe = importlib.import_module(f"recipes.{name}.run")
        recipe_parser = recipes.add_parser(
            name, help=text, description=recipe.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        add_shared_arguments(recipe_parser)
        if name in ("an4", "timit"):
            recipe_parser.add_argument("--variants", type=partial(_moved_variants, name), help=argparse.SUPPRESS)
        recipe.add_arguments(recipe_parser)


def add_shared_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that all recipes have."""
    parser.add_argument("--data", type=Path, metavar="DIR", help="directory of the corpus")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="directory for all results")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random choices (default 0)")
    parser.add_argument("--workers", type=int, metavar="N", help="number of cores to use (default: all)")
    parser.add_argument("--from", dest="first", metavar="STAGE", help="run this stage and those after it again")
    parser.add_argument("--to", dest="last", metavar="STAGE", help="stop after this stage")


def _moved_variants(corpus: str, names: str) -> None:
    raise argparse.ArgumentTypeError(moved_text(f"{MOVED['variants']} {corpus} --only {names}"))


def run(arguments: argparse.Namespace) -> int:
    if arguments.recipe == LIST:
        width = max(map(len, RECIPES))
        lines = [json.dumps(RECIPES, indent=1)] if arguments.json else [f"{k:{width}} {v}" for k, v in RECIPES.items()]
        print("\n".join(lines))
        return 0
    recipe = importlib.import_module(f"recipes.{arguments.recipe}.run")
    return run_alone(recipe.run, arguments)


def run_alone(recipe_run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Run a recipe with the shared options unless another runs in the same directory; return the exit status."""
    for option, least in (("seed", 0), ("workers", 1)):
        value = getattr(arguments, option)
        if value is not None and value < least:
            raise ConfigError(f"command line: --{option} {value}; expected at least {least}")
    try:
        require_writable(arguments.out / "stages" / "any.done")
    except OSError as fault:
        raise ConfigError(f"command line: --out {arguments.out}: {fault.strerror}") from fault
    lock = arguments.out / ".recipe.lock"
    with held(lock) as is_mine:
        if not is_mine:
            raise ConfigError(
                f"{arguments.out}: another recipe is running there ({holder(lock)}); expected one at a time"
            )
        with using_cores(arguments.workers) if arguments.workers else contextlib.nullcontext():
            return recipe_run(arguments)
