"""The argument parser of `argonaut` and `argon`, whose errors are one line and suggest similar names."""

import argparse
import re
from typing import Any

from readers.common.environment import program_version
from readers.config.values import did_you_mean, nearest
from readers.errors import ConfigError

UNKNOWN = "unrecognized arguments: "  # as argparse begins the message
NO_NUMBER = re.compile(r"invalid (int|float) value: (.*)", re.DOTALL)
NUMBERS = {"int": "a whole number", "float": "a number"}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line like all others, without the usage text."""

    help_option = "--help"

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # Python 3.14's: `--snr -5:20` has a value

    def _match_arguments_partial(self, actions: list[argparse.Action], pattern: str) -> list[int]:
        """Leave optional positional arguments for after the options, as Python 3.13 does: `MODEL -n 2 WORD`."""
        counts = super()._match_arguments_partial(actions, pattern)
        while "O" in pattern and counts and not counts[-1]:
            counts.pop()
        return counts

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not among an argument's choices, and suggest a similar one."""
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            close = nearest(str(value), choices)
            expected = f"did you mean {close}" if close else f"expected {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"{value!r} is unknown; {expected}")

    def error(self, message: str) -> None:
        message = NO_NUMBER.sub(lambda found: f"{found[2]}; expected {NUMBERS[found[1]]}", message)
        hint = ""
        if message.startswith(UNKNOWN):
            unknown = message.removeprefix(UNKNOWN).split()[0].partition("=")[0]
            hint = did_you_mean(unknown, self.options()) if unknown.startswith("-") else ""
        raise ConfigError(f"{self.place()}: {message}{hint}; {self.prog} {self.help_option} shows the options")

    def place(self) -> str:
        """Return what error messages begin with."""
        return self.prog

    def options(self) -> list[str]:
        """Return the options of the parser and of its actions."""
        found = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                found += [option for parser in action.choices.values() for option in parser._option_string_actions]
        return found


def version_text(command: str) -> str:
    """Return the line that `COMMAND --version` prints."""
    return f"{command} {program_version()}"


def print_version(command: str) -> int:
    print(version_text(command))
    return 0
