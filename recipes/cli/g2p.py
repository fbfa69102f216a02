"""Train a model that pronounces words on a dictionary, guess the pronunciations of words, or measure a model.

worked example, with every tenth word of the dictionary held out to measure the model:
  argonaut g2p train cmudict.dict -o english.g2p --hold-out 10
ends with
  phone error rate 6.15 %, word error rate 25.20 % (12605 words, 79913 phones)
  english.g2p: 7-gram, 113427 words, 121306 pronunciations, 39 phones, 45 left out, see english.g2p.report
  argonaut g2p apply english.g2p abalone -n 2
prints
  abalone         0.547453 AE B AH L OW N IY
  abalone         0.443147 AE B AH L OW N
The number is the probability of the pronunciation.  Accents that the model does not know are left out, and digits are
read as numbers if the dictionary was English.  With -o DICT the lines are written to a dictionary, and a closing
line is printed:
  words: 1 done, 0 skipped, 0 failed

  argonaut g2p train cmudict.dict -o english.g2p --hold-out 10 --network
trains a recurrent network as well, for 10 minutes of one core, and makes fewer errors.  After an interruption the same
command goes on.

  argonaut g2p test english.g2p other.dict
measures a model on the words of another dictionary; the closest pronunciation of a word counts.

  argonaut g2p probabilities words.dict aligned -o trained
adds to a dictionary how often each pronunciation was chosen and silence stood beside it, in the TextGrids of `argonaut
align` or other alignments, and writes to trained
  mfa.dict              all of it, in MFA's form: --dict of other commands
  htk.dict              the pronunciations in HTK's form, with output symbols, without silence
  lexiconp.txt, lexiconp_silprob.txt, silprob.txt   the same for Kaldi
  report                pronunciations of the alignments that the dictionary lacks
"""

import sys

from decoder.alignment.dictionary.job import DictionaryProbabilitiesOptions
from decoder.g2p.options import G2PApplyOptions, G2PMeasureOptions, G2PTrainOptions
from recipes.cli.command import Command, Console
from recipes.cli.console import show_losses


def run_train(options: G2PTrainOptions, console: Console) -> int:
    from decoder.g2p.evaluation import error_rates
    from decoder.g2p.job import train_g2p

    with console.progress("passes") as progress:
        trained = train_g2p(options, progress=progress, note=console.note)
    if trained.score is not None:
        print(error_rates(trained.score))
    model = trained.model
    num_skipped = trained.report.num_skipped
    left_out = f", {num_skipped} left out, see {options.output}.report" if num_skipped else ""
    network = "" if model.tagger is None else f" and a network of {model.tagger.cells} cells"
    print(
        f"{options.output}: {model.order}-gram{network}, {model.about['words']} words, {model.about['pronunciations']} "
        f"pronunciations, {len(model.phones)} phones{left_out}"
    )
    return 0


def run_apply(options: G2PApplyOptions, console: Console) -> int:
    """Print or write pronunciations; exit status 1 if some words have none, 2 if all have none."""
    from decoder.g2p.job import apply_g2p
    from readers.htk.dictionary import format_entry

    applied = apply_g2p(options)
    if not options.output:
        for entry in applied.entries:
            print(format_entry(entry, readable=True))
    show_losses(applied.report, None, console.verbose)
    print(applied.report.summary(), file=None if options.output else sys.stderr)
    return applied.report.exit_status


def run_test(options: G2PMeasureOptions, console: Console) -> int:
    from decoder.g2p.evaluation import error_rates
    from decoder.g2p.job import measure_g2p

    print(error_rates(measure_g2p(options, note=console.note)))
    return 0


def run_probabilities(options: DictionaryProbabilitiesOptions, console: Console) -> int:
    from decoder.alignment.dictionary.job import REPORT, estimate_dictionary

    result = estimate_dictionary(options, note=console.note)
    show_losses(result.report, options.output / REPORT, console.verbose)
    if console.verbose:
        for word, phones, count in result.variants:
            print(f"{word:<15} {count:>7} {' '.join(phones)}")
    print(result.report.summary())
    return result.report.exit_status


COMMAND = Command(
    "g2p",
    actions=(
        Command("train", G2PTrainOptions, run_train, help="train a model on a dictionary"),
        Command("apply", G2PApplyOptions, run_apply, help="guess the pronunciations of words"),
        Command(
            "test", G2PMeasureOptions, run_test, help="compare a model's pronunciations with those of a dictionary"
        ),
        Command(
            "probabilities",
            DictionaryProbabilitiesOptions,
            run_probabilities,
            help="add probabilities of pronunciations and silence to a dictionary, from alignments",
        ),
    ),
)
