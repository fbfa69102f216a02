"""Experiments of several stages, run like recipes: `python -m benchmarks.NAME`."""

import argparse
import importlib

from recipes.cli.console import run_guarded
from recipes.cli.parser import Parser
from recipes.cli.recipe import add_shared_arguments, run_alone


def main(name: str, argv: list[str] | None = None) -> int:
    """Run an experiment, a package with a module `run` like that of a recipe; return the exit status."""
    experiment = importlib.import_module(f"benchmarks.{name}.run")
    parser = Parser(
        prog=f"python -m benchmarks.{name}",
        description=experiment.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_shared_arguments(parser)
    experiment.add_arguments(parser)
    return run_guarded(lambda: run_alone(experiment.run, parser.parse_args(argv)))
