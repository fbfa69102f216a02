"""Estimate, interpolate and prune n-gram language models, compute perplexities, and rescore n-best lists.

worked example:
  argonaut lm estimate --text train.txt --dict an4.dict --order 3 --method kn -o lm.arpa
  argonaut lm perplexity --lm lm.arpa --text heldout.txt
The first command writes lm.arpa and ends with
  lm.arpa: 3-gram, 101 words, 103 1-grams, 1151 2-grams, 2668 3-grams
the second ends with
  perplexity 16.80 (194 sentences, 1038 words, 0 unknown)

If there is little text, interpolation with a class n-gram helps: --order 5 --classes 24 gives perplexity 14.74 here.

Write the words of numbers, dates and abbreviations, as they are read aloud, and remove punctuation:
  argonaut lm normalise --text raw.txt --case lower -o one.txt
makes "Mr. Hill paid $3.50 in May, 1921." into "mister hill paid three dollars fifty in may nineteen twenty one".

Count the n-grams of large texts once, add the counts up, and estimate a model of the words that make up 99 % of them:
  argonaut lm counts --text one.txt -o one.counts
  argonaut lm vocabulary --counts one.counts --counts two.counts --coverage 0.99 -o words
  argonaut lm estimate --counts one.counts --counts two.counts --vocabulary words --unk "<unk>" -o lm.arpa

Interpolate models of two texts, with the weights that suit a third one best, and leave out n-grams that matter little:
  argonaut lm mix --lm talks.arpa --lm books.arpa --heldout dev.txt -o mixture.arpa
  argonaut lm prune --lm mixture.arpa --threshold 1e-8 -o lm.arpa
  argonaut lm info --lm lm.arpa --text dev.txt

Train an LSTM network, and interpolate it with the n-gram, with equal weights:
  argonaut lm train --text train.txt --heldout dev.txt --dict an4.dict -o lstm.dnn
  argonaut lm perplexity --model lstm.dnn --lm lm.arpa --text heldout.txt

Extract the best hypotheses from lattices that argon wrote, and rescore them with the network:
  argonaut lm nbest --lattices exp/an4/decode/flat/lattices/test.index -o test.nbest
  argonaut lm rescore --nbest test.nbest --model lstm.dnn --lm-scale 1 --mlf test.mlf

A text has one sentence per line, with blanks between the words and without <s> and </s>.
"""

import math

from decoder import lm
from decoder.lattices import jobs
from readers.common.faults import counted, listed
from readers.errors import ConfigError
from recipes.cli.command import Command, Console
from recipes.cli.console import show_losses

SHOWN_WORDS = 10  # of those that are left out
BAD_SUM = 1e-3  # difference from 1 of the probabilities after a history


def run_estimate(options: lm.EstimationOptions, console: Console) -> int:
    machines = console.machines
    one_machine = options.classes is None or not machines.scheduler
    machines.require("scheduler", one_machine, "is given beside --classes, which are found on one machine")
    for path in options.texts.text if machines.scheduler or (machines.workers or 1) > 1 else ():
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path}: a pipe or a device; expected a file, which other processes can read")
    with console.runner() as runner, console.progress("parts", runner) as progress:
        model = lm.estimate_from_texts(options, runner=runner, progress=progress, note=console.note)
    print(f"{options.output}: {model}")
    return 0


def run_normalise(options: lm.NormalisationOptions, console: Console) -> int:
    """Write a text as words; show those that still have digits."""
    with console.runner() as runner, console.progress("parts", runner) as progress:
        result = lm.normalise_texts(options, runner=runner, progress=progress)
    if result.unread:
        words = [word for word, _ in result.unread.most_common()]
        print(f"words with digits: {listed(words, len(words) if console.verbose else SHOWN_WORDS)}")
    print(f"{options.output}: {counted(result.num_sentences, 'sentence')}, {counted(result.num_words, 'word')}")
    return 0


def run_counts(options: lm.CountingOptions, console: Console) -> int:
    """Count n-grams; show how many there are, and Kneser-Ney's discounts."""
    with console.runner() as runner, console.progress("parts", runner) as progress:
        counts = lm.count_ngrams(options, runner=runner, progress=progress, note=console.note)
    print("order    n-grams occurrences   once  twice 3 times 4 times     D1     D2    D3+")
    for k, order in enumerate(counts.orders, 1):
        seldom = "".join(f" {number:{width}}" for number, width in zip(order.counts_of_counts, (6, 6, 7, 7)))
        discounts = "".join(f" {discount:6.3f}" for discount in order.discounts)
        print(f"{k:5} {order.num_ngrams:10} {order.num_occurrences:11}{seldom}{discounts}")
    if not counts.orders[0].discounts:
        console.note(f"more than --memory {options.memory:g} GB were sorted on the disk; no discounts are shown")
    print(f"{options.output}: {counts.num_sentences} sentences, {counts.num_words} words")
    return 0


def run_vocabulary(options: lm.VocabularyOptions, console: Console) -> int:
    with console.runner() as runner, console.progress("parts", runner) as progress:
        chosen = lm.choose_vocabulary(options, runner=runner, progress=progress, note=console.note)
    heldout = f", {100 * chosen.heldout_coverage:.2f} % of {options.heldout}" if options.heldout else ""
    print(
        f"{options.output}: {len(chosen.words)} of {chosen.num_different} words, "
        f"{100 * chosen.coverage:.2f} % of the text{heldout}"
    )
    return 0


def run_mix(options: lm.InterpolationOptions, console: Console) -> int:
    result = lm.interpolate_models(options)
    perplexities = [f", perplexity {value:.2f}" for value in result.perplexities] or [""] * len(options.lm)
    for path, weight, shown in zip(options.lm, result.weights, perplexities):
        print(f"{path}: weight {weight:.3f}{shown}")
    for path, count in zip(options.lm, result.num_impossible):
        if count:
            print(f"{path}: {counted(count, 'word')} of probability 0, left out of the perplexities")
    if result.perplexities:
        print(f"{options.heldout}: perplexity {result.perplexity:.2f} with these weights")
    if result.model:
        print(f"{options.output}: {result.model}")
    return 0


def run_prune(options: lm.PruningOptions, console: Console) -> int:
    before, after = lm.prune_model(options)
    print(f"{options.lm}: {before}")
    print(f"{options.output}: {after}")
    return 0


def run_info(options: lm.ExaminationOptions, console: Console) -> int:
    """Show what is in a model, and how it covers a text."""
    result = lm.examine_model(options)
    print(f"{options.lm}: {result.model}")
    if result.unknown_probability is None:
        print("closed vocabulary: no <UNK> or <unk>")
    else:
        print(f"open vocabulary: the unknown word has probability {result.unknown_probability:.3g}")
    for k, count in enumerate(result.num_gaps, 1):
        if count:
            print(f"{counted(count, f'{k}-gram')}, which longer n-grams begin or end with, not listed")
    for length, sums in enumerate(result.sums):
        histories = f"{counted(sums.num_histories, 'history').replace('historys', 'histories')}"
        worst = f", worst after '{' '.join(sums.worst)}'" if max(1 - sums.smallest, sums.largest - 1) > BAD_SUM else ""
        print(f"{histories} of {counted(length, 'word')}: sums {sums.smallest:.6f} to {sums.largest:.6f}{worst}")
    if text := result.coverage:
        share = 100 * len(text.unknown) / max(text.num_words, 1)
        print(f"{counted(text.num_sentences, 'sentence')}, {counted(text.num_words, 'word')}, {share:.2f} % unknown")
        if text.unknown:
            different = list(dict.fromkeys(text.unknown))
            print(f"unknown: {listed(different, len(different) if console.verbose else SHOWN_WORDS)}")
        total = max(sum(text.predicted_by), 1)
        parts = [f"{100 * count / total:.1f} % by {k}-grams" for k, count in enumerate(text.predicted_by, 1)]
        print(f"predicted: {', '.join(parts[::-1])}")
    return 0


def run_train(options: lm.LMTrainOptions, console: Console) -> int:
    with console.progress("words") as progress:
        trained = lm.train_language_model(options, progress=progress, note=console.note)
    text = f"{counted(trained.num_sentences, 'sentence')}, {counted(trained.num_words, 'word')}"
    best = f"epoch {trained.best_epoch}, perplexity {min(trained.perplexities):.2f}"
    unknown = f"{trained.num_unknown} of {counted(trained.num_held_out, 'held-out word')} unknown"
    print(f"{options.output}: {trained.cells} LSTM cells, vocabulary of {trained.vocabulary}; {text}")
    print(f"best: {best}, {unknown}")
    return 0


def run_perplexity(options: lm.PerplexityOptions, console: Console) -> int:
    """Print the perplexity; exit status 1 if some words were left out, 2 if all were."""
    with console.progress("sentences") as progress:
        result = lm.perplexity_of_texts(options, progress=progress, note=console.note)
    for what, words in (("unknown to the model", result.unknown), ("of probability 0", result.impossible)):
        if words:
            print(f"left out, {what}: {listed(words, len(words) if console.verbose else SHOWN_WORDS)}")
    if console.verbose and result.num_as_unknown:
        print(f"scored as the unknown word: {result.num_as_unknown}")
    print(
        f"perplexity {result.perplexity:.2f} ({result.num_sentences} sentences, {result.num_words} words, "
        f"{len(result.unknown) + result.num_as_unknown} unknown)"
    )
    if math.isnan(result.perplexity):
        return 2
    return 1 if result.unknown or result.impossible else 0


def run_nbest(options: jobs.NbestOptions, console: Console) -> int:
    """Write n-best lists; exit status 1 if some lattices were lost, 2 if all were."""
    with console.progress("lattices") as progress:
        result = jobs.extract_nbest(options, progress=progress)
    report = result.report
    show_losses(report, f"{options.output}.report", console.verbose)
    scale = f"; rescore with --lm-scale {result.lm_scale:g}" if result.lm_scale is not None else ""
    print(f"{options.output}: {sum(map(len, result.lists.values()))} hypotheses; {report.summary()}{scale}")
    return report.exit_status


def run_rescore(options: jobs.RescoreListsOptions, console: Console) -> int:
    """Rescore with a network, an n-gram or both, or with other weights for the scores of the lists."""
    with console.progress("sentences") as progress:
        result = jobs.rescore_nbest(options, progress=progress)
    numbers = f"{len(result.lists)} lists, {result.num_sentences} sentences, {result.num_changed} changed"
    print(f"{options.output or options.mlf}: {numbers}")
    return 0


COMMAND = Command(
    "lm",
    actions=(
        Command("estimate", lm.EstimationOptions, run_estimate, "processes", help="estimate an n-gram model"),
        Command("normalise", lm.NormalisationOptions, run_normalise, "processes", help="write a text as words"),
        Command("counts", lm.CountingOptions, run_counts, "processes", help="count n-grams, and add counts up"),
        Command("vocabulary", lm.VocabularyOptions, run_vocabulary, "processes", help="choose the frequent words"),
        Command("mix", lm.InterpolationOptions, run_mix, help="interpolate n-gram models"),
        Command("interpolate", lm.InterpolationOptions, run_mix, help="the former name of mix"),
        Command("prune", lm.PruningOptions, run_prune, help="leave out n-grams that matter little"),
        Command("info", lm.ExaminationOptions, run_info, help="show what is in a model, and how it covers a text"),
        Command("perplexity", lm.PerplexityOptions, run_perplexity, help="compute the perplexity of a text"),
        Command("train", lm.LMTrainOptions, run_train, help="train a recurrent network"),
        Command("nbest", jobs.NbestOptions, run_nbest, help="extract n-best lists from lattices"),
        Command(
            "rescore", jobs.RescoreListsOptions, run_rescore, help="rescore n-best lists with a network or an n-gram"
        ),
    ),
)
