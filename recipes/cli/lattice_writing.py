"""The actions of `argonaut lattice` that write lattices: determinise, combine, rescore."""

import argparse
import sys
from pathlib import Path

from readers.errors import ConfigError, FormatError, GraphError
from recipes.cli.lattice_files import NOTHING, check_outputs, each_lattice, other_index, write_labels
from recipes.cli.lm_network import read_index


def run_determinise(arguments: argparse.Namespace) -> int:
    from decoder.lattices.determinise import determinise
    from readers.common.files import atomic_write
    from readers.htk.slf import write_slf

    index = other_index(arguments)
    check_outputs(arguments, index)
    sizes, written = [0, 0], []

    def smaller(name: str, lattice) -> None:
        found = determinise(lattice)
        number = len(written) + 1
        write_slf(f"{arguments.prefix}{number}.lat", found)
        written.append(f"{number}\t{name}\n")
        sizes[0] += lattice.num_links
        sizes[1] += found.num_links

    _, report = each_lattice(arguments, smaller)
    if written:
        with atomic_write(index, "w") as file:
            file.writelines(written)
    outcome = f"{index}: {sizes[0]} links became {sizes[1]}" if written else NOTHING
    print(f"{outcome}; {report.summary()}")
    return report.exit_status


def run_rescore(arguments: argparse.Namespace) -> int:
    from decoder.lattices.links import weigh
    from decoder.lattices.posteriors import best_path, confident_words
    from decoder.lattices.rescoring import rescore_lattice
    from decoder.lm.mapped_model import open_language_model
    from decoder.scoring.error_counts import SENTENCE_MARKS
    from readers.common.files import atomic_write
    from readers.htk.slf import write_slf

    scale = arguments.lm_scale
    if scale is not None and not 0 <= scale < float("inf"):
        raise ConfigError(f"command line: --lm-scale {scale:g}; expected a number of at least 0")
    index = other_index(arguments)
    check_outputs(arguments, index, arguments.mlf)
    model = open_language_model(arguments.lm, lambda line: print(line, file=sys.stderr))
    sizes, others, written = [0, 0], 0, []

    def words_of(lattice) -> list[str] | None:
        try:
            path = best_path(weigh(lattice))
        except GraphError:  # with the old scores there may be no path
            return None
        return [lattice.word[link] for link in path if lattice.word[link] not in SENTENCE_MARKS]

    def rescored(name: str, lattice):
        nonlocal others
        found = rescore_lattice(lattice, model, scale, Path(arguments.lm).name)
        changed = words_of(found) != words_of(lattice)
        words = confident_words(found) if arguments.mlf else []
        number = len(written) + 1
        write_slf(f"{arguments.prefix}{number}.lat", found)
        written.append(f"{number}\t{name}\n")
        sizes[0] += lattice.num_links
        sizes[1] += found.num_links
        others += changed
        return words

    found, report = each_lattice(arguments, rescored)
    if written:
        with atomic_write(index, "w") as file:
            file.writelines(written)
        if arguments.mlf:
            write_labels(arguments.mlf, found)
    links = f"{index}: {sizes[0]} links became {sizes[1]}, {others} best paths have other words"
    print(f"{links if written else NOTHING}; {report.summary()}")
    return report.exit_status


def run_combine(arguments: argparse.Namespace) -> int:
    from decoder.lattices.combination import combine
    from readers.common.files import atomic_write
    from readers.htk.slf import read_slf, write_slf

    weights = read_weights(arguments)
    others = [dict(read_index(index)) for index in arguments.others]
    index = other_index(arguments)
    check_outputs(arguments, index)
    written, links = [], 0

    def combined(name: str, lattice) -> None:
        nonlocal links
        lattices = [lattice]
        for path, files in zip(arguments.others, others):
            if name not in files:
                raise FormatError(f"{path}: no lattice of {name}; expected the utterances of {arguments.lattices}")
            lattices.append(read_slf(files[name]))
        found = combine(lattices, weights)
        number = len(written) + 1
        write_slf(f"{arguments.prefix}{number}.lat", found)
        written.append(f"{number}\t{name}\n")
        links += found.num_links

    _, report = each_lattice(arguments, combined)
    if written:
        with atomic_write(index, "w") as file:
            file.writelines(written)
    outcome = f"{index}: {links} links of {1 + len(others)} systems" if written else NOTHING
    print(f"{outcome}; {report.summary()}")
    return report.exit_status


def read_weights(arguments: argparse.Namespace) -> list[float] | None:
    """Return the numbers of --weights, one for each index; None without the option."""
    text, count = arguments.weights, 1 + len(arguments.others)
    if text is None:
        return None
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = []
    if len(weights) != count or not all(0 < weight < float("inf") for weight in weights):
        expected = f"expected {count} numbers above 0, separated by commas: of --lattices, then of each --with"
        raise ConfigError(f"command line: --weights {text}; {expected}")
    return weights
