"""The options of audio files for commands that parse their own arguments."""

import argparse

from readers.audio.options import AudioFileOptions
from recipes.cli.flags import add_flags, options_from


def add_audio_options(group) -> None:
    """Add the options to a parser or a group of its arguments."""
    add_flags(group, AudioFileOptions)
    group.set_defaults(**{declared.name: declared.default for declared in AudioFileOptions.declared()})


def audio_options(arguments: argparse.Namespace) -> AudioFileOptions:
    """Return the options that the arguments give.  Raises OptionFault for a value out of range."""
    return options_from(arguments, AudioFileOptions)
