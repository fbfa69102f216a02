"""The actions of `argonaut lm` for networks as language models and for n-best lists: nbest, rescore, perplexity."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from readers.errors import ArgonautError, ConfigError, FormatError

DEFAULT_WEIGHT = 0.5
SUFFIXES = (".lat", ".lat.gz", ".slf", ".slf.gz")
LATTICES = (
    "PREFIX.index of argon, a lattice file (*.lat, *.slf, also with .gz), or a directory of them, named after "
    "their utterances"
)


def add_network_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("network as a language model")
    group.add_argument("--model", metavar="FILE", help="network that was trained with LMSequenceReader")
    group.add_argument("--words", metavar="FILE", help="vocabulary of the network (default: the one in its file)")
    group.add_argument("--unk", metavar="WORD", default="<unk>", help="unknown word of the network (default <unk>)")
    group.add_argument(
        "--weight", type=float, default=DEFAULT_WEIGHT, metavar="X", help="interpolation weight of the network (0.5)"
    )


def add_nbest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lattices", metavar="INDEX", required=True, help=LATTICES)
    parser.add_argument(
        "-n", "--number", type=int, default=100, metavar="N", help="hypotheses per lattice (default 100)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="file for the n-best lists")


def add_rescore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--nbest", metavar="FILE", required=True, help="n-best lists: `utterance acoustic lm number word ...`"
    )
    parser.add_argument(
        "--lm",
        metavar="FILE",
        help="n-gram to interpolate with the network, or to use alone without --model (default: scores of the lists)",
    )
    parser.add_argument("--lm-scale", type=float, default=1.0, metavar="X", help="weight of the language model (1)")
    parser.add_argument("--word-penalty", type=float, default=0.0, metavar="X", help="cost added per word (0)")
    parser.add_argument(
        "--silence", metavar="WORDS", default="", help="words, separated by commas, that the new models do not score"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="file for the lists, best hypothesis first")
    parser.add_argument("--mlf", metavar="FILE", help="MLF for the words of the best hypotheses")
    add_network_options(parser)


def run_nbest(arguments: argparse.Namespace) -> int:
    """Write n-best lists; exit status 1 if some lattices were lost, 2 if all were."""
    from decoder.lattices.nbest import nbest
    from readers.common.files import require_writable
    from readers.common.report import RunReport
    from readers.htk.slf import read_slf
    from readers.results.nbest import write_nbest
    from recipes.cli.console import one_line, progress_display, show_losses

    if arguments.number < 1:
        raise ConfigError(f"command line: -n {arguments.number}; expected at least 1")
    entries = read_index(arguments.lattices)
    require_writable(arguments.output, [arguments.lattices, *(path for _, path in entries)])
    report, lists, scales = RunReport("lattices"), {}, set()
    with progress_display("n-best", "lattices") as show:
        for done, (name, path) in enumerate(entries, 1):
            try:
                lattice = read_slf(path)
                lists[name] = nbest(lattice, arguments.number)
                scales.add(lattice.scale("lmscale", 1.0))
                report.done()
            except (ArgonautError, OSError) as fault:
                report.fail(name, one_line(fault))
            show(done, len(entries))
    show_losses(report, f"{arguments.output}.report", arguments.verbose)
    report.write(f"{arguments.output}.report")
    if lists:
        write_nbest(arguments.output, lists)
    count = sum(map(len, lists.values()))
    scale = f"; rescore with --lm-scale {scales.pop():g}" if len(scales) == 1 else ""
    print(f"{arguments.output}: {count} hypotheses; {report.summary()}{scale}")
    return report.exit_status


def name_of(lattice: Path) -> str:
    """Return the utterance after which a lattice file is named."""
    return Path(lattice.name.removesuffix(".gz")).stem


def read_index(path: str) -> list[tuple[str, Path]]:
    """Return (utterance, lattice file) for each line `number<TAB>utterance` of an index.

    For a lattice file or a directory of them, the file names give the utterances, as in HTK.  Raises FormatError.
    """
    from readers.common.text import read_lines

    if Path(path).is_dir():
        if found := sorted(Path(path).glob("*.index")):
            raise FormatError(f"{path}: a directory; expected {found[0]}, which lists the utterances of its lattices")
        lattices = sorted(one for one in Path(path).iterdir() if one.name.endswith(SUFFIXES))
        if not lattices:
            raise FormatError(f"{path}: no files *{', *'.join(SUFFIXES)}; expected lattices")
        named: dict[str, Path] = {}
        for lattice in lattices:
            other = named.setdefault(name_of(lattice), lattice)
            if other is not lattice:
                raise FormatError(f"{path}: {other.name} and {lattice.name} are of one utterance; expected one of them")
        return list(named.items())
    if Path(path).name.endswith(SUFFIXES):
        return [(name_of(Path(path)), Path(path))]
    prefix = path.removesuffix(".index")
    entries = []
    for number, line in enumerate(read_lines(path), 1):
        which, tab, name = line.partition("\t")
        if not tab or not which.isdecimal() or not name.strip():
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected `number<TAB>utterance`, as argon writes it")
        files = [Path(f"{prefix}{which}{suffix}") for suffix in SUFFIXES]
        entries.append((Path(name.strip()).name, next((file for file in files if file.exists()), files[0])))
    if not entries:
        raise FormatError(f"{path}: no lattices; expected at least one")
    return entries


def run_rescore(arguments: argparse.Namespace) -> int:
    """Rescore with a network, an n-gram or both, or with other weights for the scores of the lists."""
    from dataclasses import replace

    import numpy as np

    from decoder.lattices.nbest_rescoring import RescoringOptions, best_words, rescore, sentence_logs, sentences_of
    from readers.common.files import require_writable
    from readers.htk.mlf import Label, write_mlf
    from readers.results.nbest import read_nbest, write_nbest

    if not arguments.output and not arguments.mlf:
        raise ConfigError("command line: no output file; expected -o or --mlf")
    for path in filter(None, (arguments.output, arguments.mlf)):
        require_writable(path, [arguments.nbest])
    options = RescoringOptions(arguments.weight, arguments.lm_scale, arguments.word_penalty)
    scorer = open_scorer(arguments) if arguments.model or arguments.words else None
    lists = read_nbest(arguments.nbest)
    sentences = sentences_of(lists)
    silence = set(arguments.silence.split(","))
    spoken = [tuple(word for word in words if word not in silence) for words in sentences]
    ngram = dict(zip(sentences, sentence_logs(open_ngram(arguments.lm), spoken))) if arguments.lm else None
    if scorer is not None:
        found = rescore(lists, dict(zip(sentences, score_sentences(scorer, spoken))), options, ngram)
    elif ngram is not None:
        found = rescore(lists, ngram, replace(options, weight=1.0))
    else:  # only change the weights of the scores
        found = rescore(lists, dict.fromkeys(sentences, np.zeros(1)), replace(options, weight=0.0))
    if arguments.output:
        write_nbest(arguments.output, found)
    best, before = best_words(found), best_words(lists)
    if arguments.mlf:
        write_mlf(arguments.mlf, ((f"*/{name}.rec", [Label(None, None, w) for w in best[name]]) for name in best))
    changed = sum(best[name] != before[name] for name in best)
    print(f"{arguments.output or arguments.mlf}: {len(lists)} lists, {len(sentences)} sentences, {changed} changed")
    return 0


def network_perplexity(arguments: argparse.Namespace, sentences: list[list[str]]):
    """Compute the perplexity of the network, interpolated with the n-gram if --lm names one."""
    import numpy as np

    from decoder.lattices.nbest_rescoring import RescoringOptions, mix_logs, sentence_logs
    from decoder.lm.evaluation import Perplexity

    RescoringOptions(arguments.weight)
    scorer = open_scorer(arguments)
    logs = score_sentences(scorer, sentences)
    if arguments.lm:
        old = sentence_logs(open_ngram(arguments.lm), sentences)
        logs = [mix_logs(*pair, arguments.weight) for pair in zip(logs, old)]
    return Perplexity(
        num_sentences=len(sentences),
        num_words=sum(map(len, sentences)),
        num_as_unknown=sum(not scorer.is_known(word) for sentence in sentences for word in sentence),
        unknown=(),
        impossible=(),
        cost=-float(np.sum([one.sum() for one in logs])),
        num_predicted=sum(map(len, logs)),
    )


def open_scorer(arguments: argparse.Namespace):
    from acoustic.scoring.word_scorer import WordScorer
    from readers.language.vocabulary import read_vocabulary

    if not arguments.model:
        raise ConfigError("command line: --words without --model; expected the network of this vocabulary")
    return WordScorer(arguments.model, read_vocabulary(arguments.words) if arguments.words else None, arguments.unk)


def open_ngram(path: str):
    from decoder.lm.language_model import LanguageModel
    from readers.language.arpa import read_arpa

    return LanguageModel.from_arpa(read_arpa(path))


def score_sentences(scorer, sentences: Sequence[Sequence[str]]):
    from recipes.cli.console import progress_display

    with progress_display("language model", "sentences") as show:
        return scorer.score(sentences, show)
