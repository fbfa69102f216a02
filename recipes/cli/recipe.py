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
import dataclasses
import importlib
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from recipes.cli.command import Command, Console, NoOptions
from recipes.cli.parser import Parser, moved_text
from recipes.job import Recipe, RecipeOptions, run_recipe

RECIPES = {
    "simple2d": "demo of CNTK book 1.2: two classes of points in the plane",
    "an4": "CMU Census (AN4): letters, numbers and dates, recorded with a close-talking microphone",
    "lvcsr": "cross-word triphones on AN4: states tied by decision trees, compared with monophones",
    "own": "your own corpus: from recordings, transcripts and a dictionary to a recogniser",
    "speechocean": "speechocean762: English of Mandarin speakers, adults and children; with the stages of recipe own",
    "english": "the bundle `en`: speechocean762 and AN4 together, with multi-condition copies",
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


class ShowConfig(argparse.Action):
    """Prints the configuration files of a recipe, and ends the command."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        directory = Path(__file__).parents[1] / values / "config"
        files = sorted(directory.iterdir()) if directory.is_dir() else []
        for file in files:
            print(file)
        if not files:
            print(f"recipe {values} has no configuration files", file=sys.stderr)
        parser.exit(0)


class Recipes(Command):
    """The command whose actions are the recipes."""

    def add_arguments(self, parser: Parser) -> None:
        parser.moved = MOVED
        parser.add_argument(
            "--show-config", action=ShowConfig, choices=tuple(RECIPES), metavar="RECIPE",
            help="print the paths of a recipe's configuration files",
        )  # fmt: skip
        super().add_arguments(parser)
        for recipe_parser in parser.with_actions():
            if (name := recipe_parser.prog.split()[-1]) in ("an4", "timit"):
                recipe_parser.add_argument("--variants", type=partial(_moved_variants, name), help=argparse.SUPPRESS)


def _moved_variants(corpus: str, names: str) -> None:
    raise argparse.ArgumentTypeError(moved_text(f"{MOVED['variants']} {corpus} --only {names}"))


def run(make: Callable[..., Recipe], options: RecipeOptions, console: Console) -> int:
    with contextlib.redirect_stdout(sys.stderr) if console.json else contextlib.nullcontext():
        result = run_recipe(make, options, console.verbose)
    if console.json:
        shown = dataclasses.asdict(result)
        del shown["lines"]
        print(json.dumps(shown, ensure_ascii=False, default=str))
    return result.exit_status


def run_list(options: NoOptions, console: Console) -> int:
    width = max(map(len, RECIPES))
    print(json.dumps(RECIPES, indent=1) if console.json else "\n".join(f"{k:{width}} {v}" for k, v in RECIPES.items()))
    return 0


def recipe_command(name: str, package: str = "recipes") -> Command:
    """Return the command of a recipe: its module `run` has the options, and what makes its stages, as RECIPE."""
    module = importlib.import_module(f"{package}.{name}.run")
    options, make = module.RECIPE
    return Command(
        name, options, partial(run, make), help=RECIPES.get(name, ""), description=module.__doc__ or "",
        json="print the results as a JSON object; what is else printed goes to standard error",
    )  # fmt: skip


LIST = Command(
    "list", run=run_list, help="print the names of the recipes", json="print a JSON object, from names to descriptions"
)
COMMAND = Recipes("recipe", actions=(LIST, *map(recipe_command, RECIPES)), metavar="RECIPE")
