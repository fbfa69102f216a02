r"""Align recordings with their transcripts: the times of words and phones, for Praat and other programs.

worked example: `corpus` has a folder for each speaker with recordings and, beside them, .txt or .lab files with the
words or .TextGrid or .eaf (ELAN) files with utterances; the installed bundle en pronounces them
  argonaut align corpus aligned
writes to aligned
  SPEAKER/RECORDING.TextGrid  tiers `words` and `phones`; of several speakers `SPEAKER - words`, `SPEAKER - phones`
  doubtful.csv                stretches of words that match the audio badly
  variants.csv                how often each pronunciation of words with several was chosen
  damage.csv                  if utterances of more than two minutes differ from their transcripts: where
  report                      utterances that could not be aligned, and why
and ends with
  results: aligned (130 TextGrid files)
  utterances: 130 done, 0 skipped, 0 failed; 4 doubtful
CORPUS is a folder of recordings, a single recording with its transcript beside it, a Kaldi data directory, another form
that `argonaut import` reads, or a directory that `argonaut import` has written.  Results are also written as CTM, JSON,
CSV and MLF:
  argonaut align corpus aligned --format textgrid,eaf,ctm,json,csv,mlf
An .eaf has the tiers of that beside the recording, if there is one, with its words and phones as new tiers.  Utterances
are in all tiers of speakers, or those that are named:
  argonaut align interview.wav aligned --tiers orth@ANNA,orth@OTTO --format eaf
With a dictionary of your own, whose phones are those of the model, or further words for that of the model:
  argonaut align corpus words.dict english.argo aligned
  argonaut align corpus aligned --words loanwords.dict
Cut-off words (go-, <cutoff-going>), sounds ([laughter], [noise]) and unknown words (<unk>) are aligned, too.

Without a model, train one on the very corpus first, 20 minutes of speech or more, at least one:
  argonaut align --train corpus words.dict aligned
writes it to aligned/training/models, the MODEL for later recordings.

A second run aligns only recordings that are new, have failed or have changed, together with their transcripts, the
pronunciations of their words, the model and the options; other TextGrids stay as they are, even if they were edited.
"""

from decoder.recognizer.jobs.alignment.options import AlignOptions
from recipes.cli.command import Command, Console
from recipes.cli.console import show_guesses, show_losses


def run(options: AlignOptions, console: Console) -> int:
    from decoder.recognizer.jobs.alignment.job import DICTIONARY, REPORT, align, annotation_counts
    from decoder.recognizer.jobs.alignment.output import DOUBTFUL, SEPARATE, VARIANTS

    with console.progress("recordings") as progress:
        result = align(options, progress=progress, log=console.log, note=console.note)
    show_guesses(result.guesses, console.verbose)
    show_losses(result.report, options.out / REPORT, console.verbose, options.corpus)
    if result.num_unchanged:
        print(f"{result.num_unchanged} of {result.num_recordings} recordings are unchanged and were not aligned again")
    if result.annotations:
        print(f"annotations and unknown words: {annotation_counts(result.annotations)}")
    if result.doubtful:
        print(f"doubtful stretches: {options.out / DOUBTFUL}")
    if result.variants:
        print(f"chosen pronunciations: {options.out / VARIANTS}")
    if options.dictionary_probabilities:
        print(f"dictionary with probabilities: {options.out / DICTIONARY}")
    if options.train:
        print(f"model: {result.model}")
    if result.recordings:
        files = (
            f"{options.out} ({len(paths)} {SEPARATE[form]} files)"
            if form in SEPARATE and len(paths) > 1
            else ", ".join(map(str, paths))
            for form, paths in result.paths.items()
        )
        print(f"results: {', '.join(files)}")
    print(result.report.summary())
    return result.report.exit_status


COMMAND = Command("align", AlignOptions, run, mixed=True)
