"""Adapt a bundle to the words of its user: a text gives it new words and what usually follows what.

worked example: notes.txt has sentences as they will be spoken, one per line
  argonaut adapt general.argo --text notes.txt -o mine.argo
takes seconds and ends with
  26 words guessed, see mine.argo.guessed.dict
  weight of the text: 0.95
  perplexity: 3014.1 before, 17.3 after; unknown words: 7.7% before, 0.2% after (88 sentences, held out)
  mine.argo: 25.1 MB, 26 new words
after which
  argonaut transcribe mine.argo speech.wav
knows these words.  Everything else of the bundle is kept: acoustic model, search options, calibration of confidences.

The text is split into words without punctuation, in upper or lower case as the bundle's dictionary has them.  Words
that no dictionary has are pronounced by the bundle's model or by that of --g2p, and listed in mine.argo.guessed.dict.
Correct what is wrong there, the most doubtful first, save it as words.dict and adapt again:
  argonaut adapt general.argo --text notes.txt --dict words.dict -o mine.argo

The language model becomes a mixture of the old one and one of the text.  The weight of the text is the best one for
every tenth sentence; the figures are of these sentences, too, and of a mixture that has not seen them.  The mixture in
the result has seen all.
"""

from decoder.recognizer.jobs.adaptation.options import AdaptOptions
from recipes.cli.command import Command, Console
from recipes.cli.console import show_guesses


def run(options: AdaptOptions, console: Console) -> int:
    from decoder.recognizer.jobs.adaptation.job import adapt

    result = adapt(options, log=console.log, note=console.note)
    show_guesses(result.guesses, console.verbose)
    if result.guesses.entries:
        print(result.guesses.summary(result.guessed))
    before = result.before
    after = result.after
    if before is None or after is None:
        print(f"weight of the text: {result.weight:.2f}; too short to hold out sentences")
    else:
        print(f"weight of the text: {result.weight:.2f}")
        print(
            f"perplexity: {before.perplexity:.1f} before, {after.perplexity:.1f} after; unknown words: "
            f"{before.unknown:.1%} before, {after.unknown:.1%} after ({len(result.text.held_out)} sentences, held out)"
        )
        if after.perplexity > before.perplexity:
            console.note("the sentences that were held out are predicted worse than before")
    num_added = len(result.added)
    new_words = f"{num_added} new word{'' if num_added == 1 else 's'}"
    print(f"{result.bundle.path}: {result.bundle.size / 1e6:.1f} MB, {new_words}")
    return 0


COMMAND = Command("adapt", AdaptOptions, run)
