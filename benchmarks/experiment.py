"""Experiments of several stages, run like recipes: `python -m benchmarks.NAME`."""

import argparse

from recipes.cli.command import add_verbose
from recipes.cli.console import run_guarded
from recipes.cli.parser import Parser
from recipes.cli.recipe import recipe_command


def main(name: str, argv: list[str] | None = None) -> int:
    """Run an experiment, a package with a module `run` like that of a recipe; return the exit status."""
    command = recipe_command(name, "benchmarks")
    parser = Parser(
        prog=f"python -m benchmarks.{name}",
        description=command.description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    add_verbose(parser)
    return run_guarded(lambda: command(parser.parse_args(argv)))
