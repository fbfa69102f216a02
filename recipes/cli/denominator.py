r"""Make lattices for sequence training: what the recogniser could have recognised, and the alignment of the transcript.

worked example, with a trained network, and a graph made with a weak language model, such as a unigram:
  argonaut denominator --features train.scp --model model.dnn --graph weak/graph.dg --lm weak.arpa \
        --words train.words.mlf --dict dict --out lattices
writes to the directory lattices
  lattices.arec  an archive with the lattice and the alignment of each utterance, as HMM states with their frames
  lattices.toc   its table of contents, for denLatTocFile of a reader
  report         utterances that have no lattice, with reasons
and ends with a line such as
  utterances: 948 done, 0 skipped, 0 failed; frames 289163; 61.3 arcs per frame; 21.9 words per second; oracle WER 0.4%;
  reference added to 312
on one line.  `weak` is an output directory of argonaut graph.  A run that was stopped goes on from there.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from readers.common.report import RunReport
from readers.errors import ArgonautError, FormatError
from recipes.cli.argon.sharding import seconds_of
from recipes.cli.console import one_line, progress_display, show_losses
from recipes.cli.dictionaries import add_dictionary_options, open_dictionary
from recipes.cli.machines import add_machine_options, check_machines, open_cluster

ARCHIVE, CONTENTS, REPORT = "lattices.arec", "lattices.toc", "report"
INPUTS = ("model", "ivectors", "graph", "lm", "cntkmap", "words", "dict", "alignment")
SEARCH = ("acweight", "lm_scale", "word_penalty", "beam", "max_tokens", "lattice_beam")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("--features", metavar="SCP", required=True, help="list of the utterances' feature files")
    files.add_argument("--model", metavar="FILE", required=True, help="acoustic model")
    files.add_argument("--ivectors", metavar="SCP", default="", help="i-vectors of the utterances, if it takes them")
    files.add_argument("--output-node", default="", metavar="NODE", help="its log-likelihoods (ScaledLogLikelihood)")
    files.add_argument("--window", type=int, metavar="N", help="frames in its input (default: as trained)")
    files.add_argument(
        "--graph", metavar="FILE", required=True, help="decoding graph in an output directory of argonaut graph"
    )
    files.add_argument("--lm", metavar="ARPA", required=True, help="the weak language model of the graph")
    files.add_argument("--cntkmap", metavar="FILE", help="network output of each HMM state (cntkmap beside --graph)")
    files.add_argument("--words", metavar="MLF", required=True, help="the words of the utterances")
    files.add_argument(
        "--dict", metavar="FILE", default="", help="pronunciations of these words; without it, they are phones"
    )
    add_dictionary_options(files)
    files.add_argument(
        "--alignment", metavar="MLF", default="", help="states of the utterances; without it, --words are aligned"
    )
    files.add_argument("--out", metavar="DIR", required=True, help="directory for the results")
    search = parser.add_argument_group(
        "search", "options that are not given have the values stored in --graph; costs are -ln probabilities"
    )
    search.add_argument(
        "--lattice-beam",
        type=float,
        default=8.0,
        metavar="X",
        help="keep paths whose cost exceeds the best by at most X (8)",
    )
    search.add_argument(
        "--density", type=float, default=200.0, metavar="N", help="prune lattices to N arcs per frame (200)"
    )
    search.add_argument("--acweight", type=float, metavar="X", help="acoustic scale of the search")
    search.add_argument("--lm-scale", type=float, metavar="X", help="language model scale of the search")
    search.add_argument("--word-penalty", type=float, metavar="X", help="cost per word in the search")
    search.add_argument("--beam", type=float, metavar="X", help="beam of the search, above --lattice-beam")
    search.add_argument("--max-tokens", type=int, metavar="N", help="maximum number of tokens per frame")
    search.add_argument(
        "--sil-prob", type=float, metavar="P", help="probability of silence between the words of an alignment"
    )
    machines = parser.add_argument_group("machines")
    add_machine_options(machines)


@dataclass(frozen=True)
class Settings:
    """What the lattices are made of, for this process or for workers of a cluster; paths are absolute.

    Attributes
    ----------
    features, model, ivectors, output_node, graph, lm, cntkmap, words, dict, alignment : str
    window : int or None
    dictionary : tuple of (str, object)
        Options of `add_dictionary_options`.
    search : tuple of (str, float or None)
        Options of the search.
    density : float
    sil_prob : float or None
    """

    features: str
    model: str
    ivectors: str
    output_node: str
    window: int | None
    graph: str
    lm: str
    cntkmap: str
    words: str
    dict: str
    alignment: str
    dictionary: tuple[tuple[str, Any], ...]
    search: tuple[tuple[str, Any], ...]
    density: float
    sil_prob: float | None

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> "Settings":
        """The settings of a command line."""
        graph = Path(arguments.graph).absolute()
        paths = {name: getattr(arguments, name) for name in ("features", *INPUTS)}
        paths["cntkmap"] = paths["cntkmap"] or str(graph.parent / "cntkmap")
        dictionary = ("dict_format", "strip_stress", "map_phones")
        return cls(
            **{name: str(Path(path).absolute()) if path else "" for name, path in paths.items()},
            output_node=arguments.output_node,
            window=arguments.window,
            dictionary=tuple((name, getattr(arguments, name)) for name in dictionary),
            search=tuple((name, getattr(arguments, name)) for name in SEARCH),
            density=arguments.density,
            sil_prob=arguments.sil_prob,
        )

    def fingerprint(self) -> dict[str, Any]:
        """JSON values that are equal if the lattices are."""
        search = {name: repr(value) for name, value in self.search}  # JSON has no infinity
        found = asdict(self) | {"dictionary": dict(self.dictionary), "search": search, "density": repr(self.density)}
        for name in ("features", *INPUTS):
            if found[name]:
                with Path(found[name]).open("rb") as file:
                    found[name] = hashlib.file_digest(file, "sha256").hexdigest()
        return found

    def for_argon(self) -> argparse.Namespace:
        """The same as arguments of argon."""
        from recipes.cli.argon.options import make_parser

        arguments = make_parser("").parse_args([])
        found = {"am": self.model, "infiles": self.features, "output_node": self.output_node, "graph": self.graph}
        found |= {
            "ivectors": self.ivectors,
            "dnn_window_size": self.window,
            "lm": self.lm,
            "cntkmap": self.cntkmap,
            "dict": self.dict,
            **dict(self.dictionary),
        }
        found |= {"sil_cost": 0.0, "sil_prob": self.sil_prob, "no_partial": True, "widenings": 2}
        found |= {"word_end_beam_frac": 1.0}  # a narrower beam at word ends would make thin lattices
        for name, value in (found | dict(self.search)).items():
            setattr(arguments, name, value)
        arguments.lattice_prefix = "lattices"  # or the search keeps none
        return arguments


class Worker:
    """Makes the lattice of one utterance.  All threads share one instance."""

    def __init__(self, settings: Settings):
        from decoder.alignment.aligner import Aligner, check_outputs
        from decoder.sequence_training.lattices.maker import LatticeMaker
        from readers.htk.mlf import read_mlf
        from recipes.cli.argon.alignment import open_graphs
        from recipes.cli.argon.scores import NetworkSource
        from recipes.cli.argon.setup import open_decoder

        arguments = settings.for_argon()
        self.words = read_mlf(settings.words)
        self.labels = read_mlf(settings.alignment) if settings.alignment else None
        decoder = open_decoder(arguments)
        self.source = NetworkSource(arguments)
        decoder.check_outputs(self.source.num_outputs, self.source.name)
        aligner = None
        if self.labels is None:
            graphs = open_graphs(arguments, open_dictionary(arguments))
            check_outputs(graphs, self.source.num_outputs, self.source.name)
            aligner = Aligner(graphs, decoder.options.acweight)
        self.maker = LatticeMaker(decoder, aligner, settings.density)
        self.names = settings.words, settings.alignment

    def __call__(self, entry):
        """Return the MadeLattice of an entry of the list."""
        from recipes.cli.argon.scores import naming

        words = [label.name for label in self._labels(self.words, entry, self.names[0])]
        labels, where = None, ""
        if self.labels is not None:
            labels = self._labels(self.labels, entry, self.names[1])
            where = self.labels.where(f"{entry.key}.lab")
        with naming(entry):
            scores, period, *_ = self.source.scores(entry)
        return self.maker.make(entry.key, words, scores, labels, where, period)

    def _labels(self, mlf, entry, where: str) -> list:
        name = f"{entry.key}.lab"  # an extension to be cut, since keys may contain dots
        labels = mlf.lookup(name)
        if not labels:
            raise FormatError(f"{where}: no labels; {mlf.expected_entry(name)}")
        return labels


def make_lattices(entries: Sequence, settings: Settings) -> list:
    """Make lattices in a worker of a cluster; return a MadeLattice of each entry, or the reason why it failed."""
    from readers.common.environment import one_blas_thread
    from readers.common.faults import is_shortage
    from readers.common.jobs.worker import kept

    worker, found = kept(Worker, settings), []
    with one_blas_thread:
        for entry in entries:
            try:
                found.append(worker(entry))
            except (ArgonautError, OSError) as fault:
                if isinstance(fault, OSError) and is_shortage(fault):
                    raise
                found.append(one_line(fault))
    return found


def run(arguments: argparse.Namespace) -> int:
    from readers.common.files import require_writable
    from readers.sources.lattices.lattice_archive import LatticeArchiveWriter

    check_machines(arguments)
    out, settings = Path(arguments.out), Settings.of(arguments)
    for name in (ARCHIVE, CONTENTS, REPORT):
        require_writable(out / name, [arguments.features, *(getattr(arguments, name) for name in INPUTS)])
    worker, report = Worker(settings), RunReport("utterances")
    note_narrow_beam(worker.maker.decoder.options)
    entries = list(unique(worker.source.entries(), arguments.features, report))
    table = worker.maker.table
    described = (table.phones, table.silence.tolist(), worker.source.num_outputs, settings.fingerprint())
    writer = LatticeArchiveWriter(out / ARCHIVE, *described, table.senones)
    total = len(entries) + len(report.lost)
    if not report.lost and is_made(out, settings, [entry.key for entry in entries]):
        print(f"{total} of {total} utterances are done\nutterances: {total} done, 0 skipped, 0 failed; {finish(out)}")
        return 0
    cluster = open_cluster(arguments.scheduler) if arguments.scheduler else None
    try:
        with writer, progress_display("denominator", runner=cluster) as show:
            done = set(writer.names)
            if done:
                print(f"{len(done)} of {total} utterances are done; going on", flush=True)
            report.done(sum(entry.key in done for entry in entries))
            waiting = [entry for entry in entries if entry.key not in done]
            for entry, result in results(worker, settings, waiting, arguments.workers, cluster):
                if isinstance(result, str):
                    report.fail(entry.key, result)
                else:
                    keep(writer, result, report)
                show(report.num_done + len(report.lost), total)
            if not writer.names:
                raise NothingDone
    except NothingDone:
        writer.abandon()
    except KeyboardInterrupt:
        told = f"{report.num_done} of {total} utterances are done, and kept in {writer.partial}; run it again to go on"
        raise KeyboardInterrupt(told) from None
    finally:
        if cluster:
            cluster.close()
    report.write(out / REPORT)
    show_losses(report, out / REPORT, arguments.verbose, arguments.features)
    if report.num_done:
        print(f"{report.summary()}; {finish(out)}")
    return report.exit_status


def is_made(out: Path, settings: Settings, keys: Sequence[str]) -> bool:
    """Whether the archive has all lattices of a list with these settings already."""
    from readers.sources.lattices.lattice_archive import LatticeArchive

    try:
        archive = LatticeArchive(out / ARCHIVE)
    except (FormatError, OSError):
        return False
    return archive.settings == settings.fingerprint() and archive.names == list(keys)


class NothingDone(Exception):
    """Raised if every utterance was lost, so that an existing archive is kept."""


def unique(entries: Sequence, where: str, report: RunReport) -> Iterator:
    """Yield the entries with a new name; others go to the report.  Raises FormatError if there are none."""
    from readers.common.names import apart_by_extension

    if not entries:
        raise FormatError(f"{where}: no entries; expected a feature file on each line")
    seen: dict[str, Any] = {}
    for entry in entries:
        other = seen.setdefault(entry.key, entry)
        if other is entry:
            yield entry
        else:
            fault = f"{entry.where}: same name as at {other.where}; expected unique names"
            report.fail(entry.key, fault + apart_by_extension(entry, other))


def results(
    worker: Worker, settings: Settings, entries: Sequence, threads: int | None, cluster: Any
) -> Iterable[tuple]:
    """Yield (entry, MadeLattice or reason) in the order of the entries."""
    from decoder.search.batch import in_order
    from readers.common.environment import one_blas_thread

    with one_blas_thread:
        if cluster:
            found = cluster.each(make_lattices, entries, settings, seconds=seconds_of)
        else:
            found = in_order(worker, entries, threads)
        for entry, result in found:
            yield entry, one_line(result) if isinstance(result, Exception) else result


def keep(writer, result, report: RunReport) -> None:
    """Add the lattice of an utterance to the archive, and count it as done."""
    name = result.supervision.name
    try:
        writer.add(result.supervision, result.figures)
    except FormatError as fault:  # such as infinite scores
        report.fail(name, one_line(fault))
        return
    if result.widenings:
        report.mark(name, "widened", f"decoded with a beam {2**result.widenings} times as wide")
    else:
        report.done()


def note_narrow_beam(options) -> None:
    """Print a note if the beam of the search limits the lattices."""
    if options.beam < options.lattice_beam:
        print(
            f"note: --beam {options.beam:g} is below --lattice-beam {options.lattice_beam:g} and limits the lattices",
            file=sys.stderr,
        )


def finish(out: Path) -> str:
    """Write the table of contents; return the figures of the closing line."""
    from readers.common.files import write_lines
    from readers.sources.lattices.lattice_archive import LatticeArchive
    from readers.sources.lattices.lattice_contents import contents_of

    archive = LatticeArchive(out / ARCHIVE)
    write_lines(out / CONTENTS, contents_of(archive, ARCHIVE))
    total: dict[str, int] = {}
    for name in archive.names:
        for key, value in archive.figures(name).items():
            total[key] = total.get(key, 0) + int(value)
    frames, words = max(total["frames"], 1), max(total["words"], 1)
    seconds = max(total["ticks"] / 1e7, 1e-9)
    return (
        f"frames {total['frames']}; {total['arc_frames'] / frames:.1f} arcs per frame; "
        f"{total['links'] / seconds:.1f} words per second; oracle WER {100 * total['errors'] / words:.1f}%; "
        f"reference added to {total['added']}"
    )
