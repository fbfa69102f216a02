"""The options --hotwords and --hotwords-score of argon and transcribe."""

import argparse
import sys

from readers.errors import ConfigError
from recipes.cli.console import one_line


def add_hotword_options(group, g2p: bool = False) -> None:
    """Add the options to a parser or a group of options; g2p: with --g2p for hotwords."""
    group.add_argument(
        "--hotwords",
        metavar="FILE",
        help="phrases to prefer, one per line: PHRASE or PHRASE :SCORE; the score is a bonus for each word",
    )
    group.add_argument(
        "--hotwords-score", type=float, metavar="X", help="score of phrases without one in --hotwords (default 5)"
    )
    group.add_argument(
        "--hotwords-strict",
        action="store_true",
        help="refuse --hotwords with words that the graph lacks, instead of leaving out their phrases",
    )
    if g2p:
        group.add_argument(
            "--g2p",
            metavar="MODEL",
            help="guess the pronunciations of words in --hotwords that the graph lacks, with a model of `argonaut g2p "
            "train`; the graph is built anew with these words",
        )


def with_hotwords(arguments: argparse.Namespace, target, guesses: bool = False):
    """Return a decoder or recogniser that prefers the phrases of --hotwords, if there are any.

    target: has a method `with_hotwords` that takes phrases and their default score.
    guesses: whether there is --g2p, and a target that takes it.
    """
    from decoder.search.hotwords import DEFAULT_SCORE
    from readers.language.hotwords import MAX_SCORE

    score, options = arguments.hotwords_score, {}
    if guesses and arguments.g2p is not None:
        if arguments.hotwords is None or arguments.grammar is not None:
            found = "without --hotwords" if arguments.hotwords is None else "with --grammar, whose words are given"
            raise ConfigError(f"command line: --g2p {found}; expected words of --hotwords, which it can guess")
        options["g2p"] = arguments.g2p
    if arguments.hotwords is None:
        if score is not None:
            raise ConfigError("command line: --hotwords-score without --hotwords; expected both")
        return target
    if score is not None and not abs(score) <= MAX_SCORE:  # NaN fails too
        raise ConfigError(f"command line: --hotwords-score {score}; expected {-MAX_SCORE:g} to {MAX_SCORE:g}")

    def left_out(fault: Exception) -> None:
        print(f"left out of the hotwords: {one_line(fault)}", file=sys.stderr)

    strict = arguments.hotwords_strict
    score = DEFAULT_SCORE if score is None else score
    preferring = target.with_hotwords(arguments.hotwords, score, None if strict else left_out, **options)
    for entry in preferring.guessed if options else ():
        print(f"guessed: {entry.word}: {' '.join(entry.phones)}", file=sys.stderr)
    return preferring
