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

from readers.errors import ConfigError, FormatError
from recipes.cli import lm_network
from recipes.cli.dictionaries import add_dictionary_options, open_dictionary

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
    from decoder.lm.estimation import estimate
    from readers.common.files import require_writable
    from readers.language.arpa import write_arpa

    texts = [*arguments.text, *arguments.transcription, *arguments.mlf]
    require_writable(arguments.output, [*texts, arguments.vocabulary, arguments.dict])
    if arguments.order < 1:
        raise ConfigError(f"command line: --order {arguments.order}; expected at least 1")
    sentences, vocabulary = read_sentences(arguments), read_vocabulary(arguments)
    if vocabulary is not None and not arguments.unk:
        refuse_unknown(arguments, sentences, vocabulary)
    if arguments.classes:
        from decoder.lm.mixture import estimate_with_classes

        arpa = estimate_with_classes(
            sentences,
            arguments.order,
            vocabulary,
            read_classes(arguments.classes),
            arguments.class_order,
            arguments.class_weight,
            arguments.method,
            arguments.unk,
        )
    else:
        arpa = estimate(sentences, arguments.order, arguments.method, vocabulary, arguments.unk)
    write_arpa(arguments.output, arpa)
    ngrams = ", ".join(f"{len(order)} {k}-grams" for k, order in enumerate(arpa.orders, start=1))
    print(f"{arguments.output}: {arpa.order}-gram, {len(arpa.vocabulary) - 2} words, {ngrams}")
    return 0


def refuse_unknown(arguments: argparse.Namespace, sentences: list[list[str]], vocabulary: list[str]) -> None:
    """Raise ConfigError for words of the text that are not in the vocabulary."""
    known = set(vocabulary)
    missing = list(dict.fromkeys(word for sentence in sentences for word in sentence if word not in known))
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
    from readers.common.text import read_lines
    from readers.htk.mlf import read_mlf
    from readers.results.trn import read_trn

    marks = ("<s>", "</s>")
    if not arguments.text and not arguments.transcription and not arguments.mlf:
        raise ConfigError("command line: no text; expected --text, --transcription or --mlf")
    sentences = []
    for path in arguments.text:
        lines = [line.split() for line in read_lines(path) if line.strip()]
        check_text(path, lines)
        sentences += [[word for word in line if word not in marks] for line in lines]
    for path in arguments.transcription:
        sentences += read_trn(path, marks).values()
    for path in arguments.mlf:
        sentences += [[label.name for label in labels if label.name not in marks] for labels in read_mlf(path).values()]
    return sentences


def check_text(path: str, lines: list[list[str]]) -> None:
    """Raise FormatError for a file that is not a plain text; warn if each line seems to begin with an utterance name.

    Such names stand in the text files of Kaldi.
    """
    from readers.htk.mlf import HEADER

    if not lines:
        raise FormatError(f"{path}: no sentences; expected one per line")
    if lines[0] == [HEADER]:
        raise FormatError(f"{path}:1: a master label file; expected sentences, one per line, or --mlf {path}")
    if lines[0] == ["\\data\\"]:
        raise FormatError(f"{path}: an ARPA language model; expected sentences, one per line")
    names = [line[0] for line in lines]
    named = len(lines) >= FEWEST_NAMED and len(set(names)) == len(lines)
    named = named and 2 * sum(len(line) > 1 for line in lines) > len(lines)  # not a list of words
    if named and set(names).isdisjoint(word for line in lines for word in line[1:]):
        print(
            f"warning: {path}: every line begins with a word that occurs only once, such as {names[0]}; "
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
    return [word for word in dict.fromkeys(words) if word not in ("<s>", "</s>")]


def read_classes(text: str) -> int | dict[str, str]:
    """Return the number of classes, or the table of word classes of a file."""
    from readers.language.word_classes import read_word_classes

    return int(text) if text.isdecimal() else read_word_classes(text)
