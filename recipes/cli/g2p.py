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
The number is the probability of the pronunciation.  With -o DICT the lines are written to a dictionary, and a closing
line is printed:
  words: 1 done, 0 skipped, 0 failed

  argonaut g2p test english.g2p other.dict
measures a model on the words of another dictionary; the closest pronunciation of a word counts.
"""

import argparse
import sys
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import ConfigError, FormatError
from recipes.cli.console import progress_display, show_losses
from recipes.cli.dictionaries import add_dictionary_options, open_dictionary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, add, text in (
        ("train", _add_train, "train a model on a dictionary"),
        ("apply", _add_apply, "guess the pronunciations of words"),
        ("test", _add_test, "compare a model's pronunciations with those of a dictionary"),
    ):
        description = f"{text[0].upper()}{text[1:]}.  `argonaut g2p --help` shows worked examples."
        parser = actions.add_parser(name, help=text, description=description)
        # The same option exists before the action; a default here would overwrite its value.
        parser.add_argument("-v", "--verbose", action="count", default=argparse.SUPPRESS, help="print more details")
        parser.add_argument("-j", "--threads", type=int, metavar="N", help="number of cores to use (default: all)")
        add(parser)


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dict", metavar="DICT", help="dictionary of HTK, CMUdict, Kaldi or MFA")
    add_dictionary_options(parser, name="DICT")
    parser.add_argument("-o", "--output", metavar="MODEL", required=True, help="model to write, such as english.g2p")
    parser.add_argument("--order", type=int, metavar="N", help="longest n-grams of letters with phones (default 7)")
    parser.add_argument(
        "--hold-out",
        type=int,
        metavar="N",
        help="do not train on every Nth word, by its place in sorted order, and print the error rates on these words",
    )


def _add_apply(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="model of g2p train")
    parser.add_argument("words", metavar="WORD", nargs="*", help="words to pronounce")
    parser.add_argument("--words", dest="word_file", metavar="FILE", help="file with one word per line")
    parser.add_argument(
        "-n", "--number", type=int, default=1, metavar="N", help="most pronunciations of a word (default 1)"
    )
    parser.add_argument("-o", "--output", metavar="DICT", help="dictionary to write, instead of printing it")


def _add_test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="model of g2p train")
    parser.add_argument("dict", metavar="DICT", help="dictionary with words that the model was not trained on")
    add_dictionary_options(parser, name="DICT")


def run(arguments: argparse.Namespace) -> int:
    if arguments.threads is not None and arguments.threads < 1:
        raise ConfigError(f"command line: --threads {arguments.threads}; expected at least 1")
    return {"train": run_train, "apply": run_apply, "test": run_test}[arguments.action](arguments)


def run_train(arguments: argparse.Namespace) -> int:
    from decoder.g2p.evaluation import count_errors, hold_out
    from decoder.g2p.model import G2P, MOST_ORDER, ORDER
    from readers.common.files import require_writable

    order = ORDER if arguments.order is None else arguments.order
    if not 1 <= order <= MOST_ORDER:
        raise ConfigError(f"command line: --order {order}; expected 1 to {MOST_ORDER}")
    report_path = Path(f"{arguments.output}.report")
    for path in (arguments.output, report_path):
        require_writable(path, [arguments.dict, arguments.map_phones or None])
    entries, held_out = open_dictionary(arguments), None
    about = {"dictionary": Path(arguments.dict).name}
    report = RunReport("pronunciations")
    try:
        if arguments.hold_out is not None:
            entries, held_out = hold_out(entries, arguments.hold_out)
        with progress_display("g2p train", "passes") as show:
            model = G2P.train(
                entries, order, threads=arguments.threads, about=about, on_left_out=report.skip, progress=show
            )
        score = count_errors(model, held_out, arguments.threads) if held_out is not None else None
    except FormatError as fault:
        raise FormatError(f"{arguments.dict}: {fault}") from fault
    report.done(model.about["pronunciations"])
    if score is not None:
        model.about |= {"held out": f"one word in {arguments.hold_out}", "error rates": error_rates(score)}
        print(error_rates(score))
    model.save(arguments.output)
    report.write(report_path)
    left_out = f", {report.num_skipped} left out, see {report_path}" if report.num_skipped else ""
    print(
        f"{arguments.output}: {model.order}-gram, {model.about['words']} words, {model.about['pronunciations']} "
        f"pronunciations, {len(model.phones)} phones{left_out}"
    )
    return 0


def error_rates(score) -> str:
    return (
        f"phone error rate {score.word_error_rate:.2f} %, word error rate {score.sentence_error_rate:.2f} % "
        f"({score.num_sentences} words, {score.num_words} phones)"
    )


def run_apply(arguments: argparse.Namespace) -> int:
    """Print or write pronunciations; exit status 1 if some words have none, 2 if all have none."""
    from decoder.g2p.completion import complete_dictionary
    from decoder.g2p.model import G2P, MOST_PRONUNCIATIONS
    from readers.common.files import require_writable
    from readers.htk.dictionary import format_entry, write_dictionary

    if not 1 <= arguments.number <= MOST_PRONUNCIATIONS:
        raise ConfigError(f"command line: -n {arguments.number}; expected 1 to {MOST_PRONUNCIATIONS}")
    if arguments.output:
        require_writable(arguments.output, [arguments.model, arguments.word_file])
    words = read_words(arguments)
    guesses = complete_dictionary([], words, G2P.load(arguments.model), arguments.number, arguments.threads)
    place = {word: number for number, word in enumerate(words)}
    entries = sorted(guesses.entries, key=lambda entry: place[entry.word])
    report = RunReport("words", num_done=len(guesses.words))
    for word, reason in guesses.without:
        report.fail(word, reason)
    if arguments.output and entries:
        write_dictionary(arguments.output, entries, readable=True)
    else:
        for entry in entries:
            print(format_entry(entry, readable=True))
    show_losses(report, None, arguments.verbose)
    print(report.summary(), file=None if arguments.output else sys.stderr)
    return report.exit_status


def read_words(arguments: argparse.Namespace) -> list[str]:
    """Return the words of the command line and of the file.  Raises ConfigError and FormatError for none."""
    from readers.common.text import canonical, read_lines

    words = list(map(canonical, arguments.words))
    if arguments.word_file:
        for number, line in enumerate(read_lines(arguments.word_file), 1):
            if len(line.split()) > 1:
                raise FormatError(f"{arguments.word_file}:{number}: {line.strip()[:60]!r}; expected one word a line")
            words += line.split()
        if not words:
            raise FormatError(f"{arguments.word_file}: no words; expected one per line")
    if not all(words) or not words:
        raise ConfigError("command line: no word, or an empty one; expected words to pronounce, or --words FILE")
    return list(dict.fromkeys(words))


def run_test(arguments: argparse.Namespace) -> int:
    from decoder.g2p.evaluation import count_errors
    from decoder.g2p.model import G2P

    model, entries = G2P.load(arguments.model), open_dictionary(arguments)
    try:
        score = count_errors(model, entries, arguments.threads)
    except FormatError as fault:
        raise FormatError(f"{arguments.dict}: {fault}") from fault
    print(error_rates(score))
    return 0
