"""What commands print about dictionaries."""

import sys

SHOWN_WORDS = 5  # of those without a guess


def show_guesses(guesses, verbose: int) -> None:
    """Print which words could not be guessed, the first few unless verbose."""
    for word, reason in guesses.without if verbose else guesses.without[:SHOWN_WORDS]:
        print(f"not guessed: {word}: {reason}")
    if len(guesses.without) > SHOWN_WORDS and not verbose:
        print(f"and {len(guesses.without) - SHOWN_WORDS} more words not guessed, shown with -v")


def show_note(text: str) -> None:
    """Print a note about a dictionary."""
    print(f"note: {text}", file=sys.stderr)
