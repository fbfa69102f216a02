"""The options of hotwords for commands that parse their own arguments."""

import argparse
import sys
from functools import partial

from decoder.search.hotword_options import HotwordOptions
from recipes.cli.flags import add_flags, options_from


def add_hotword_options(group) -> None:
    """Add the options to a parser or a group of its arguments."""
    add_flags(group, HotwordOptions)
    group.set_defaults(**{declared.name: declared.default for declared in HotwordOptions.declared()})


def with_hotwords(arguments: argparse.Namespace, target):
    """Return a decoder that prefers the phrases of --hotwords, if there are any.  Raises OptionFault."""
    return options_from(arguments, HotwordOptions).applied_to(target, partial(print, file=sys.stderr))
