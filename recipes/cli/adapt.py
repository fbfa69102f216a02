"""Adapt a bundle to its user: speech adapts the acoustic model, texts give new words and what usually follows what.

worked example: `corpus` has a folder for each speaker with recordings and, beside them, .txt files with the words
  argonaut adapt general.argo corpus -o mine.argo
trains the network of general.argo further, minutes of speech suffice, gives it the words of the transcripts, and ends
with the errors of every tenth utterance, which takes no part in this, and their 95 % intervals:
  word error rate of 11 utterances, held out:
    before     78.2% (62.5 to 91.0)
    words      48.1% (33.3 to 60.9)
    network    24.4% (14.9 to 36.2), chosen
CORPUS is anything that `argonaut align` takes.  A network that makes more errors than the old one is not chosen.
--held-out anna,otto measures with these speakers instead, --keep-words adapts the network alone.

worked example: notes.txt has sentences as they will be spoken, one per line
  argonaut adapt general.argo --text notes.txt -o mine.argo
takes seconds and ends with
  26 words guessed, see mine.argo.guessed.dict
  weight of the text: 0.95
  perplexity: 3014.1 before, 17.3 after; unknown words: 7.7% before, 0.2% after (88 sentences, held out)
  mine.argo: 25.1 MB, 26 new words
after which
  argonaut transcribe mine.argo speech.wav
knows these words.  Both may be given together.  Search options and the calibration of confidences stay as they are.

The text is split into words without punctuation, in upper or lower case as the bundle's dictionary has them.  Words
that no dictionary has are pronounced by the bundle's model or by that of --g2p, and listed in mine.argo.guessed.dict.
Correct what is wrong there, the most doubtful first, save it as words.dict and adapt again:
  argonaut adapt general.argo --text notes.txt --dict words.dict -o mine.argo

The language model becomes a mixture of the old one and one of the text.  The weight of the text is the best one for
every tenth sentence; the figures are of these sentences, too, and of a mixture that has not seen them.  The mixture in
the result has seen all, but for the utterances of a corpus that are held out.
"""

from typing import TYPE_CHECKING

from decoder.recognizer.jobs.adaptation.options import AdaptOptions
from readers.common.faults import counted
from recipes.cli.command import Command, Console
from recipes.cli.console import show_guesses, show_losses

if TYPE_CHECKING:
    from decoder.recognizer.jobs.adaptation.job import AdaptResult, SpeechFit


def run(options: AdaptOptions, console: Console) -> int:
    from decoder.recognizer.jobs.adaptation.job import adapt

    with console.progress("utterances") as progress:
        result = adapt(options, progress=progress, log=console.log, note=console.note)
    show_guesses(result.guesses, console.verbose)
    if result.guesses.entries:
        print(result.guesses.summary(result.guessed))
    _show_text(result, console)
    if result.speech is not None:
        show_losses(result.speech.report, None, console.verbose, options.corpus)
        _show_speech(result.speech, console)
    print(f"{result.bundle.path}: {result.bundle.size / 1e6:.1f} MB, {counted(len(result.added), 'new word')}")
    return 0 if result.speech is None else result.speech.report.exit_status


def _show_text(result: "AdaptResult", console: Console) -> None:
    if result.text is None:
        return
    before = result.before
    after = result.after
    if before is None or after is None:
        print(f"weight of the text: {result.weight:.2f}; too short to hold out sentences")
        return
    print(f"weight of the text: {result.weight:.2f}")
    print(
        f"perplexity: {before.perplexity:.1f} before, {after.perplexity:.1f} after; unknown words: "
        f"{before.unknown:.1%} before, {after.unknown:.1%} after ({len(result.text.held_out)} sentences, held out)"
    )
    if after.perplexity > before.perplexity:
        console.note("the sentences that were held out are predicted worse than before")


def _show_speech(fit: "SpeechFit", console: Console) -> None:
    network = fit.network
    print(f"cross-entropy: {network.before:.3f} before, {network.after:.3f} after epoch {network.epoch}")
    if network.model is None:
        console.note("no epoch was better; the network stays as it was")
    if not fit.errors:
        console.note("too few utterances to hold one out; the errors were not measured")
        return
    print(f"word error rate of {counted(len(fit.speaker_of), 'utterance')}, held out:")
    rates = {name: errors.total.word_error_rate for name, errors in fit.errors.items()}
    for name, rate in rates.items():
        low, high = fit.interval(name)
        print(f"  {name:<8} {rate:5.1f}% ({low:.1f} to {high:.1f}){', chosen' if name == fit.chosen else ''}")
    if "network" in rates and fit.chosen != "network":
        console.note("the adapted network makes more errors; the old one is kept")
    if rates[fit.chosen] > rates["before"]:
        console.note("the utterances that were held out are recognised worse than before")


COMMAND = Command("adapt", AdaptOptions, run, mixed=True)
