"""Compute word confidences, consensus networks and oracle error rates from lattices; convert and rescore lattices.

worked example:
  argonaut lattice words --lattices exp/an4/decode/flat/lattices/test.index -o words.ctm
writes the words of the best paths with times and confidences;
  argonaut lattice words --lattices exp/an4/decode/flat/lattices/test.index --by consensus --mlf consensus.mlf
writes the words with the fewest expected errors instead (minimum Bayes risk decoding);
  argonaut lattice consensus --lattices exp/an4/decode/flat/lattices/test.index -o slots.txt
writes a line `utterance [ word probability ... ] [ ... ]` per utterance, like Kaldi's sausages; <eps> is no word;
  argonaut lattice oracle --lattices exp/an4/decode/flat/lattices/test.index --reference exp/an4/labels/test.words.mlf
prints the error rate of the path with the fewest errors in each lattice.

  argonaut lattice determinise --lattices exp/an4/decode/flat/lattices/test.index --prefix det
writes det1.lat, ... and det.index: lattices in which each word sequence occurs once;
  argonaut lattice kaldi --lattices det.index -o lattices.txt --words words.txt
writes lattices in Kaldi's text format;
  argonaut lattice openfst --lattices det.index --prefix fst/test --words words.txt
writes word acceptors for OpenFst: fst/test1.txt, ... (for fstcompile --acceptor --isymbols=words.txt), or with --binary
fst/test1.fst, ...

  argonaut lattice rescore --lattices exp/an4/decode/flat/lattices/test.index --lm large.arpa --prefix new
writes new1.lat, ... and new.index: the same paths with the exact scores of another n-gram model.

  argonaut lattice combine --lattices first/test.index --with second/test.index --prefix both
writes both1.lat, ... and both.index: the paths of two systems, each with half of the probability.

Formats of words with times: .ctm, .stm and .json are one file; .TextGrid, .srt and .vtt are written to a directory, one
file for each utterance.
"""

import argparse
import math
from collections.abc import Iterable
from pathlib import Path

from readers.common.faults import counted
from readers.errors import ConfigError, FormatError
from recipes.cli.lattice_files import NOTHING, check_outputs, each_lattice, other_index, write_labels
from recipes.cli.lattice_writing import run_combine, run_determinise, run_rescore
from recipes.cli.lm_network import LATTICES

NO_WORD = "<eps>"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("words", "write words with times and confidences"),
        ("consensus", "write consensus networks (sausages)"),
        ("oracle", "print the lowest error rate that the lattices allow"),
        ("determinise", "write lattices in which each word sequence occurs once"),
        ("kaldi", "write lattices in Kaldi's text format"),
        ("openfst", "write word acceptors for OpenFst"),
        ("rescore", "replace the language model scores by those of another n-gram"),
        ("combine", "join the lattices of several systems"),
    ):
        description = f"{text[0].upper()}{text[1:]}.  `argonaut lattice --help` shows worked examples."
        action = actions.add_parser(name, help=text, description=description)
        action.add_argument("-v", "--verbose", action="count", default=argparse.SUPPRESS, help="print more details")
        action.add_argument("--lattices", metavar="INDEX", required=True, help=LATTICES)
        action.add_argument("--report", metavar="FILE", help="file that lists the lattices that failed")
        if name == "oracle":
            action.add_argument("--reference", metavar="MLF", required=True, help="reference transcripts")
            action.add_argument("--level", type=int, default=0, help="MLF level that holds the words (0)")
            action.add_argument("--mlf", metavar="FILE", help="MLF for the words of the oracle paths")
            continue
        if name in ("determinise", "rescore", "combine"):
            action.add_argument("--prefix", required=True, help="write PREFIX1.lat, ... and PREFIX.index")
            if name == "combine":
                action.add_argument(
                    "--with",
                    dest="others",
                    metavar="INDEX",
                    action="append",
                    required=True,
                    help="lattices of another system, with the same utterances; may be repeated",
                )
                action.add_argument(
                    "--weights", metavar="W,W", help="shares of the systems in the probability (default: equal)"
                )
            if name == "rescore":
                action.add_argument("--lm", metavar="ARPA", required=True, help="the new language model")
                action.add_argument(
                    "--lm-scale", type=float, metavar="S", help="scale of the new model (default: that of the lattices)"
                )
                action.add_argument("--mlf", metavar="FILE", help="MLF for words and confidences of the new best paths")
            continue
        if name in ("kaldi", "openfst"):
            action.add_argument(
                "--words", metavar="FILE", required=True, help="symbol table words.txt: read if present, else written"
            )
        if name == "kaldi":
            action.add_argument("-o", "--output", metavar="FILE", required=True, help="output file")
            continue
        if name == "openfst":
            action.add_argument("--prefix", required=True, help="write PREFIX1.txt, ... and PREFIX.index")
            action.add_argument(
                "--binary", action="store_true", help="write PREFIX1.fst, ... in OpenFst's binary format"
            )
            continue
        action.add_argument(
            "--scale",
            type=float,
            default=1.0,
            metavar="X",
            help="scale of all scores; a scale below 1 lowers the confidences (1)",
        )
        action.add_argument("-o", "--output", metavar="FILE", help="output file")
        if name == "words":
            action.add_argument(
                "--by",
                choices=("best", "consensus"),
                default="best",
                help="words of the best path (default), or of the consensus network",
            )
            action.add_argument("--mlf", metavar="FILE", help="MLF for words and confidences")


def run(arguments: argparse.Namespace) -> int:
    actions = {"words": run_words, "consensus": run_consensus, "oracle": run_oracle}
    actions |= {"determinise": run_determinise, "kaldi": run_kaldi, "openfst": run_openfst}
    actions |= {"rescore": run_rescore, "combine": run_combine}
    return actions[arguments.action](arguments)


def check_somewhere(arguments: argparse.Namespace) -> None:
    """Raise ConfigError if there is neither -o nor --mlf."""
    if not arguments.output and not arguments.mlf:
        raise ConfigError("command line: no output file; expected -o or --mlf")


def run_words(arguments: argparse.Namespace) -> int:
    import numpy as np

    from decoder.lattices.consensus import consensus
    from decoder.lattices.posteriors import confident_words
    from readers.results.timed_words import check_form, write_words

    check_somewhere(arguments)
    check_outputs(arguments, arguments.output, arguments.mlf)
    check_scale(arguments)
    if arguments.output:
        check_form(arguments.output)

    def words_of(name: str, lattice):
        best = arguments.by == "best"
        found = confident_words(lattice, arguments.scale) if best else consensus(lattice, arguments.scale).words
        if not np.isnan(lattice.time).any():
            return found
        if arguments.output:
            raise FormatError(f"{lattice.where}: nodes without times (t=); expected times, or only --mlf")
        return [word._replace(start=math.nan, end=math.nan) for word in found]

    found, report = each_lattice(arguments, words_of)
    if not found:
        print(f"{NOTHING}; {report.summary()}")
        return report.exit_status
    written = []
    if arguments.output:
        written = write_words(arguments.output, found)
    if arguments.mlf:
        write_labels(arguments.mlf, found)
        written.append(Path(arguments.mlf))
    words = [word for one in found.values() for word in one]
    sure = sum(word.confidence for word in words) / len(words) if words else 0.0
    files = f"{written[0]}" + (f" and {len(written) - 1} more" if len(written) > 1 else "")
    print(f"{files}: {counted(len(words), 'word')}, mean confidence {sure:.3f}; {report.summary()}")
    return report.exit_status


def run_consensus(arguments: argparse.Namespace) -> int:
    from decoder.lattices.consensus import consensus
    from readers.common.files import atomic_write

    if not arguments.output:
        raise ConfigError("command line: -o is missing; expected an output file")
    check_outputs(arguments, arguments.output)
    check_scale(arguments)
    found, report = each_lattice(arguments, lambda name, lattice: consensus(lattice, arguments.scale))
    if not found:
        print(f"{NOTHING}; {report.summary()}")
        return report.exit_status
    with atomic_write(arguments.output, "w") as file:
        for name, network in found.items():
            slots = [" ".join(f"{word or NO_WORD} {p:.4f}" for word, p in s.alternatives) for s in network.slots]
            file.write(" ".join([name, *(f"[ {slot} ]" for slot in slots)]) + "\n")
    errors = sum(network.expected_errors for network in found.values())
    words = sum(len(network.words) for network in found.values())
    print(f"{arguments.output}: {counted(words, 'word')}, {errors:.1f} errors expected; {report.summary()}")
    return report.exit_status


def run_oracle(arguments: argparse.Namespace) -> int:
    from decoder.lattices.posteriors import oracle
    from decoder.scoring.error_counts import SENTENCE_MARKS
    from readers.htk.mlf import Label, write_mlf
    from recipes.cli.score import read_words

    check_outputs(arguments, arguments.mlf)
    references = read_words(arguments.reference, arguments.level)
    references = {Path(name).name: words for name, words in references.items()}
    totals = [0, 0]

    def nearest(name: str, lattice) -> list[str]:
        reference = references.get(Path(name).name)
        if reference is None:
            raise ConfigError(f"{arguments.reference}: no entry for {name}; expected its reference transcript")
        reference = [word for word in reference if word not in SENTENCE_MARKS]
        errors, words = oracle(lattice, reference)
        totals[0] += errors
        totals[1] += len(reference)
        return words

    found, report = each_lattice(arguments, nearest)
    if arguments.mlf and found:
        write_mlf(arguments.mlf, ((f"*/{name}.rec", [Label(None, None, w) for w in found[name]]) for name in found))
    rate = 100 * totals[0] / totals[1] if totals[1] else 0.0
    print(report.summary())
    if found:
        print(
            f"oracle WER {rate:.1f}% ({counted(len(found), 'utterance')}, {counted(totals[1], 'word')}, "
            f"{counted(totals[0], 'error')})"
        )
    return report.exit_status


def new_table(arguments: argparse.Namespace) -> str | None:
    """Return the path of the symbol table if it must be written; None if it exists and will be read."""
    return None if Path(arguments.words).exists() else arguments.words


def numbered_words(path: str, words: Iterable[str]) -> dict[str, int]:
    """Read the symbol table at `path`; if it does not exist, write one with these words."""
    from readers.kaldi.lattice import read_word_table, word_table, write_word_table

    if Path(path).exists():
        return read_word_table(path)
    table = word_table(words)
    write_word_table(path, table)
    return table


def run_kaldi(arguments: argparse.Namespace) -> int:
    from readers.kaldi.lattice import check_kaldi_lattice, write_kaldi_lattices

    def checked(name: str, lattice):
        check_kaldi_lattice(name, lattice)
        return lattice

    check_outputs(arguments, arguments.output, new_table(arguments))
    found, report = each_lattice(arguments, checked)
    if not found:
        print(f"{NOTHING}; {report.summary()}")
        return report.exit_status
    scales = sorted({lattice.scale("acscale", 1.0) for lattice in found.values()})
    words = numbered_words(arguments.words, (word for lattice in found.values() for word in lattice.word))
    write_kaldi_lattices(arguments.output, found.items(), words)
    scale = ", ".join(f"{scale:g}" for scale in scales)
    print(f"{arguments.output}: acoustic scale {scale}; {report.summary()}")
    return report.exit_status


def run_openfst(arguments: argparse.Namespace) -> int:
    from decoder.lattices.openfst import check_words, lattice_acceptor, write_binary
    from readers.common.files import atomic_write
    from readers.language.att import write_acceptor

    index = other_index(arguments)
    check_outputs(arguments, index, new_table(arguments))
    found, report = each_lattice(arguments, lambda name, lattice: lattice_acceptor(lattice))
    if not found:
        print(f"{NOTHING}; {report.summary()}")
        return report.exit_status
    words = numbered_words(arguments.words, (word for acceptor in found.values() for word in acceptor.symbols))
    for name, acceptor in found.items():
        check_words(acceptor, words, f"{arguments.words}: lattice {name}")
    for number, acceptor in enumerate(found.values(), 1):
        if arguments.binary:
            write_binary(f"{arguments.prefix}{number}.fst", acceptor, words)
        else:
            write_acceptor(f"{arguments.prefix}{number}.txt", acceptor)
    with atomic_write(index, "w") as file:
        file.writelines(f"{number}\t{name}\n" for number, name in enumerate(found, 1))
    arcs = sum(acceptor.num_arcs for acceptor in found.values())
    print(f"{index}: {counted(arcs, 'arc')} of {counted(len(words), 'word')}; {report.summary()}")
    return report.exit_status


def check_scale(arguments: argparse.Namespace) -> None:
    if not 0 < arguments.scale < float("inf"):
        raise ConfigError(f"command line: --scale {arguments.scale:g}; expected a number above 0")
