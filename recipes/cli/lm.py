"""Estimate an n-gram language model in ARPA format, compute perplexities, and rescore n-best lists with a network.

worked example:
  argonaut lm estimate --text train.txt --dict an4.dict --order 3 --method kn -o lm.arpa
  argonaut lm perplexity --lm lm.arpa --text heldout.txt
The first command writes lm.arpa and ends with
  lm.arpa: 3-gram, 101 words, 103 1-grams, 1151 2-grams, 2668 3-grams
the second ends with
  perplexity 16.80 (194 sentences, 1038 words, 0 unknown)

If there is little text, interpolation with a class n-gram helps: --order 5 --classes 24 gives perplexity 14.74 here.

Interpolate a network that was trained as a language model with the n-gram, with equal weights:
  argonaut lm perplexity --model lstm.dnn --lm lm.arpa --text heldout.txt

Extract the best hypotheses from lattices that argon wrote, and rescore them with the network:
  argonaut lm nbest --lattices exp/an4/decode/flat/lattices/test.index -o test.nbest
  argonaut lm rescore --nbest test.nbest --model lstm.dnn --lm-scale 1 --mlf test.mlf

A text has one sentence per line, with blanks between the words and without <s> and </s>.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from readers.errors import ConfigError, FormatError
from recipes.cli import lm_network
from recipes.cli.console import progress_display
from recipes.cli.dictionaries import add_dictionary_options, open_dictionary
from recipes.cli.machines import add_process_options, check_machines, open_process_runner

MARKS = ("<s>", "</s>")
PART_SENTENCES = 20_000  # of a file that is not a plain text

FEWEST_NAMED = 10  # lines needed to decide whether their first words are utterance names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, add, text in (
        ("estimate", _add_estimate, "estimate an n-gram model"),
        ("perplexity", _add_perplexity, "compute the perplexity of a text"),
        ("nbest", lm_network.add_nbest, "extract n-best lists from lattices"),
        ("rescore", lm_network.add_rescore, "rescore n-best lists with a network or an n-gram"),
    ):
        description = f"{text[0].upper()}{text[1:]}.  `argonaut lm --help` shows worked examples."
        parser = actions.add_parser(name, help=text, description=description)
        # The same option exists before the action; a default here would overwrite its value.
        parser.add_argument("-v", "--verbose", action="count", default=argparse.SUPPRESS, help="print more details")
        add(parser)


def _add_texts(parser: argparse.ArgumentParser) -> None:
    texts = parser.add_argument_group("text, from one or more files")
    texts.add_argument("--text", metavar="FILE", action="append", default=[], help="text with one sentence per line")
    texts.add_argument(
        "--transcription",
        metavar="FILE",
        action="append",
        default=[],
        help="lines `words (utterance)`, as in Sphinx and NIST trn files",
    )
    texts.add_argument("--mlf", metavar="FILE", action="append", default=[], help="master label file of words")


def _add_estimate(parser: argparse.ArgumentParser) -> None:
    _add_texts(parser)
    parser.add_argument("--order", type=int, default=3, metavar="N", help="order of the model (default 3)")
    parser.add_argument(
        "--method",
        choices=("kn", "wb"),
        default="kn",
        help="interpolated modified Kneser-Ney (default) or Witten-Bell",
    )
    parser.add_argument("--dict", metavar="FILE", help="dictionary; its words are the vocabulary")
    add_dictionary_options(parser, phones=False)
    parser.add_argument(
        "--vocabulary", metavar="FILE", help="vocabulary, one word per line (default: words of the text)"
    )
    parser.add_argument("--unk", metavar="WORD", help="word for all words outside the vocabulary, such as <UNK>")
    classes = parser.add_argument_group("interpolation with a class n-gram")
    classes.add_argument("--classes", metavar="N|FILE", help="number of classes to find, or file of lines `word class`")
    classes.add_argument("--class-order", type=int, metavar="N", help="order of the class n-gram (default: --order)")
    classes.add_argument(
        "--class-weight", type=float, default=0.5, metavar="X", help="weight of the class n-gram (default 0.5)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="ARPA file to write; .gz compresses")
    add_process_options(parser.add_argument_group("machines"))


def _add_perplexity(parser: argparse.ArgumentParser) -> None:
    _add_texts(parser)
    parser.add_argument("--lm", metavar="FILE", help="ARPA language model, plain or .gz")
    lm_network.add_network_options(parser)


def run(arguments: argparse.Namespace) -> int:
    actions = {
        "estimate": run_estimate,
        "perplexity": run_perplexity,
        "nbest": lm_network.run_nbest,
        "rescore": lm_network.run_rescore,
    }
    return actions[arguments.action](arguments)


def run_estimate(arguments: argparse.Namespace) -> int:
    from readers.common.files import require_writable
    from readers.language.arpa import write_arpa

    texts = [*arguments.text, *arguments.transcription, *arguments.mlf]
    require_writable(arguments.output, [*texts, arguments.vocabulary, arguments.dict])
    if arguments.order < 1:
        raise ConfigError(f"command line: --order {arguments.order}; expected at least 1")
    check_machines(arguments, "process")
    if arguments.classes:
        arpa = estimate_with_classes(arguments)
    else:
        arpa = estimate_from_parts(arguments)
    write_arpa(arguments.output, arpa)
    ngrams = ", ".join(f"{len(order)} {k}-grams" for k, order in enumerate(arpa.orders, start=1))
    print(f"{arguments.output}: {arpa.order}-gram, {len(arpa.vocabulary) - 2} words, {ngrams}")
    return 0


def estimate_with_classes(arguments: argparse.Namespace):
    """Return the ARPA model mixed with a class n-gram, of sentences that are all in memory."""
    from decoder.lm.mixture import estimate_with_classes

    if arguments.scheduler:
        raise ConfigError(
            "command line: --scheduler and --classes; expected only one of them, since classes are found on one machine"
        )
    sentences, vocabulary = read_sentences(arguments), read_vocabulary(arguments)
    if vocabulary is not None and not arguments.unk:
        known = {*vocabulary}
        refuse_unknown(arguments, [word for words in sentences for word in words if word not in known])
    return estimate_with_classes(
        sentences,
        arguments.order,
        vocabulary,
        read_classes(arguments.classes),
        arguments.class_order,
        arguments.class_weight,
        arguments.method,
        arguments.unk,
    )


def estimate_from_parts(arguments: argparse.Namespace):
    """Return the ARPA model of a text of which only the n-grams are in memory."""
    from decoder.lm.counting import NgramCounter
    from decoder.lm.estimation import estimate_from_counts

    vocabulary = read_vocabulary(arguments)
    parts = list(parts_of(arguments))
    counter = NgramCounter(arguments.order, vocabulary, arguments.unk)
    checks = {number: TextCheck(arguments.text[number]) for number, _ in parts if number is not None}
    runner = open_process_runner(arguments)
    try:
        results = runner.results(count_sentences, [part for _, part in parts], arguments.order)
        with progress_display("count", "parts", runner) as show:
            for done, ((number, _), (counts, lines)) in enumerate(zip(parts, results), 1):
                counter.add(counts)
                if number is not None:
                    checks[number].add(lines)
                    if done == len(parts) or parts[done][0] != number:
                        checks[number].close()
                show(done, len(parts))
    finally:
        runner.close()
    refuse_unknown(arguments, counter.missing)
    return estimate_from_counts(*counter.result(), arguments.method)


def parts_of(arguments: argparse.Namespace) -> Iterator[tuple]:
    """Yield (index of --text, part of it) and (None, sentences) for other files.

    Raises ConfigError for a text that other processes cannot read.
    """
    from readers.language.sentences import text_parts

    for number, path in enumerate(arguments.text):
        if (arguments.scheduler or (arguments.workers or 1) > 1) and Path(path).exists() and not Path(path).is_file():
            raise ConfigError(f"{path}: a pipe or a device; expected a file, which other processes can read")
        for part in text_parts(path):
            yield number, part
    sentences = read_transcripts(arguments)
    for begin in range(0, len(sentences), PART_SENTENCES):
        yield None, sentences[begin : begin + PART_SENTENCES]


def count_sentences(part, order: int) -> tuple:
    """Return the n-grams of a part of a text, or of sentences, and the LineFacts of a text."""
    from decoder.lm.counting import count_part
    from readers.language.sentences import TextPart, read_part

    if not isinstance(part, TextPart):
        return count_part(part, order), None
    lines = read_part(part)
    return count_part(without_marks(lines), order), LineFacts.of(lines)


def without_marks(lines: list[list[str]]) -> Iterator[list[str]]:
    """Yield the words of lines that are not <s> or </s>."""
    for line in lines:
        yield [word for word in line if word not in MARKS] if "<s>" in line or "</s>" in line else line


def refuse_unknown(arguments: argparse.Namespace, missing: list[str]) -> None:
    """Raise ConfigError if there are words of the text that are not in the vocabulary."""
    missing = list(dict.fromkeys(missing))
    if missing:
        files = " + ".join(filter(None, (arguments.vocabulary, arguments.dict)))
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        raise ConfigError(
            f"{files}: words of the text are missing: {', '.join(missing[:10])}{more}; expected every word of the "
            "text, or --unk WORD to replace them"
        )


def run_perplexity(arguments: argparse.Namespace) -> int:
    """Print the perplexity; exit status 1 if some words were left out, 2 if all were."""
    from decoder.lm.evaluation import perplexity
    from decoder.lm.language_model import LanguageModel
    from readers.language.arpa import read_arpa

    if not arguments.lm and not arguments.model:
        raise ConfigError("command line: neither --lm nor --model; expected an n-gram, a network, or both")
    if arguments.model:
        result = lm_network.network_perplexity(arguments, read_sentences(arguments))
    else:
        result = perplexity(LanguageModel.from_arpa(read_arpa(arguments.lm)), read_sentences(arguments))
    for what, words in (("unknown to the model", result.unknown), ("of probability 0", result.impossible)):
        if words:
            shown = words if arguments.verbose else words[:10]
            more = f" and {len(words) - len(shown)} more" if len(words) > len(shown) else ""
            print(f"left out, {what}: {', '.join(shown)}{more}")
    if arguments.verbose and result.num_as_unknown:
        print(f"scored as the unknown word: {result.num_as_unknown}")
    print(
        f"perplexity {result.perplexity:.2f} ({result.num_sentences} sentences, {result.num_words} words, "
        f"{len(result.unknown) + result.num_as_unknown} unknown)"
    )
    if math.isnan(result.perplexity):
        return 2
    return 1 if result.unknown or result.impossible else 0


def read_sentences(arguments: argparse.Namespace) -> list[list[str]]:
    """Read all sentences of the files on the command line.

    Raises ConfigError if there are no files, FormatError for an empty file.
    """
    from readers.language.sentences import TextPart, read_part

    sentences = []
    for path in arguments.text:
        lines = read_part(TextPart(path))
        check = TextCheck(path)
        check.add(LineFacts.of(lines))
        check.close()
        sentences += without_marks(lines)
    return sentences + read_transcripts(arguments)


def read_transcripts(arguments: argparse.Namespace) -> list[list[str]]:
    """Read the sentences of --transcription and --mlf.  Raises ConfigError if there are no files, nor texts."""
    from readers.htk.mlf import read_mlf
    from readers.results.trn import read_trn

    if not arguments.text and not arguments.transcription and not arguments.mlf:
        raise ConfigError("command line: no text; expected --text, --transcription or --mlf")
    sentences: list[list[str]] = []
    for path in arguments.transcription:
        sentences += read_trn(path, MARKS).values()
    for path in arguments.mlf:
        sentences += [[label.name for label in labels if label.name not in MARKS] for labels in read_mlf(path).values()]
    return sentences


class LineFacts(NamedTuple):
    """Facts about the lines of a text, which show whether it is one.

    first: the first line.  longer: number of lines of several words.  names: the first words of the lines, if they are
    all different, else None; others: the other words, unless names is None.
    """

    lines: int
    first: list[str]
    longer: int
    names: set[str] | None
    others: set[str] | None

    @classmethod
    def of(cls, lines: list[list[str]]) -> "LineFacts":
        names = {line[0] for line in lines}
        are_names = len(names) == len(lines)
        return cls(
            len(lines),
            lines[0] if lines else [],
            sum(len(line) > 1 for line in lines),
            names if are_names else None,
            {word for line in lines for word in line[1:]} if are_names else None,
        )


class TextCheck:
    """Checks whether a file is a plain text, given the facts about its parts in their order."""

    def __init__(self, path: str):
        self.path, self.lines, self.longer, self.first = path, 0, 0, ""
        self.names: set[str] | None = set()
        self.others: set[str] = set()

    def add(self, facts: LineFacts) -> None:
        """Raises FormatError if the first line is that of another kind of file."""
        from readers.htk.mlf import HEADER

        if not self.lines and facts.first == [HEADER]:
            raise FormatError(
                f"{self.path}:1: a master label file; expected sentences, one per line, or --mlf {self.path}"
            )
        if not self.lines and facts.first == ["\\data\\"]:
            raise FormatError(f"{self.path}: an ARPA language model; expected sentences, one per line")
        self.first = self.first or "".join(facts.first[:1])
        self.lines += facts.lines
        self.longer += facts.longer
        if self.names is not None and facts.names is not None and self.names.isdisjoint(facts.names):
            self.names |= facts.names
            self.others |= facts.others
        else:
            self.names, self.others = None, set()

    def close(self) -> None:
        """Warn if each line seems to begin with an utterance name, as in text files of Kaldi.

        Raises FormatError if there are no lines.
        """
        if not self.lines:
            raise FormatError(f"{self.path}: no sentences; expected one per line")
        named = self.names is not None and self.lines >= FEWEST_NAMED
        named = named and 2 * self.longer > self.lines  # not a list of words
        if named and self.names.isdisjoint(self.others):
            print(
                f"warning: {self.path}: every line begins with a word that occurs only once, such as {self.first}; "
                "if these are utterance names, remove them",
                file=sys.stderr,
            )


def read_vocabulary(arguments: argparse.Namespace) -> list[str] | None:
    from readers.common.text import read_lines

    if not arguments.dict and not arguments.vocabulary:
        return None
    words = []
    for number, line in enumerate(read_lines(arguments.vocabulary) if arguments.vocabulary else (), 1):
        if len(line.split()) > 1:
            raise FormatError(f"{arguments.vocabulary}:{number}: {line.strip()[:60]!r}; expected one word a line")
        words += line.split()
    if arguments.vocabulary and not words:
        raise FormatError(f"{arguments.vocabulary}: no words; expected one per line")
    words += [entry.word for entry in open_dictionary(arguments) or ()]
    return [word for word in dict.fromkeys(words) if word not in MARKS]


def read_classes(text: str) -> int | dict[str, str]:
    """Return the number of classes, or the table of word classes of a file."""
    from readers.language.word_classes import read_word_classes

    return int(text) if text.isdecimal() else read_word_classes(text)
