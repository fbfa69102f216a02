r"""Make what training with lattice-free MMI needs: denominator and numerator graphs, and models for decoding.

worked example, with AN4's alignments:
  argonaut chain --alignment states.mlf --state-list states.list --out exp/chain
writes to exp/chain
  senones.list  names of the network's outputs: two for each phone, its first frame and its further frames
  denominator   the denominator graph: a phone language model of the transcripts, with these outputs
  numerators    what each utterance's alignment allows; phones may begin or end 5 frames earlier or later
  states.mlf    the alignment in these outputs, for `tie` and for labels
  hmmdefs       HMMs of the outputs as an MMF, for `graph`; tiedlist has their names
  report        utterances without a numerator, with the reasons
and ends with
  chain: 948 numerators, 88 outputs, denominator of 951 states and 3798 arcs
Then train with the reader block
  chain=[denominator=exp/chain/denominator;numerators=exp/chain/numerators]
and decode with the graph of
  argonaut graph --mmf exp/chain/hmmdefs --hmm-list exp/chain/tiedlist --state-list exp/chain/senones.list ...

Outputs of phones in context: tie the states of exp/chain/states.mlf, then make everything again with these trees:
  argonaut tie --alignment exp/chain/states.mlf --state-list exp/chain/senones.list --features train.scp \
               --context left --out exp/tied
  argonaut chain --alignment states.mlf --state-list states.list --tied exp/tied --out exp/biphones
which also writes exp/biphones/trees, for `graph --trees`.

Without an alignment (flat start), from transcripts and a dictionary:
  argonaut chain --words words.mlf --dict words.dict --features train.scp --out exp/flat
Numerators then allow all pronunciations, silences and alignments, and the reader must keep utterances whole.
"""

import argparse
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from readers.common.names import names_for_any_path
from readers.common.report import RunReport
from readers.errors import ArgonautError, ConfigError, FormatError
from recipes.cli.console import one_line, progress_display, show_losses
from recipes.cli.dictionaries import add_dictionary_options, open_dictionary

INPUT_FILES = ("alignment", "states", "state_list", "trees", "words", "dict", "features")
RESULTS = ("senones.list", "denominator", "numerators", "states.mlf", "hmmdefs", "tiedlist", "trees", "report")
SAMPLES = 10  # random pronunciations and silences of each transcript, for the phone language model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    aligned = parser.add_argument_group("from an alignment")
    aligned.add_argument("--alignment", metavar="MLF", help="state alignment of the utterances")
    aligned.add_argument("--states", metavar="FILE", help="its states: lines `phone s1 s2 s3`")
    aligned.add_argument(
        "--state-list", metavar="FILE", help="instead of --states: state names such as aa_s2, one per line"
    )
    aligned.add_argument("--trees", metavar="FILE", help="for an alignment in tied states: the trees that define them")
    aligned.add_argument(
        "--tolerance", type=int, default=5, metavar="N",
        help="frames by which phones may begin earlier and end later than in the alignment (5)",
    )  # fmt: skip
    flat = parser.add_argument_group("from transcripts (flat start)")
    flat.add_argument("--words", metavar="MLF", help="instead of --alignment: the words of the utterances")
    flat.add_argument("--dict", metavar="FILE", help="pronunciations of these words")
    add_dictionary_options(flat)
    flat.add_argument("--features", metavar="SCP", help="list of the HTK feature files, for their numbers of frames")
    flat.add_argument(
        "--sil-prob", type=float, default=0.1, metavar="P",
        help="probability of silence between words in the phone language model (0.1)",
    )  # fmt: skip
    flat.add_argument(
        "--edge-sil-prob", type=float, default=0.8, metavar="P", help="the same at both ends of an utterance (0.8)"
    )
    outputs = parser.add_argument_group("outputs and graphs")
    outputs.add_argument(
        "--tied", metavar="DIR", help="results of `tie` for exp/chain/states.mlf: outputs of phones in context"
    )
    outputs.add_argument("--silence", default="sil", metavar="PHONE", help="context at both ends of an utterance (sil)")
    outputs.add_argument("--subsampling", type=int, default=3, metavar="N", help="input frames of one output (3)")
    outputs.add_argument("--order", type=int, default=4, metavar="N", help="order of the phone language model (4)")
    outputs.add_argument(
        "--extra-states", type=int, default=2000, metavar="N",
        help="states of the phone language model beside histories of two phones (2000)",
    )  # fmt: skip
    outputs.add_argument("--out", metavar="DIR", required=True, help="directory for the results")


def run(arguments: argparse.Namespace) -> int:
    from decoder.sequence_training.chain import ChainTiming, PhoneLmOptions
    from readers.common.files import require_writable

    if bool(arguments.alignment) == bool(arguments.words):
        found = "--alignment and --words" if arguments.words else "neither --alignment nor --words"
        raise ConfigError(f"command line: {found}; expected one of them")
    out = Path(arguments.out)
    for name in RESULTS:
        require_writable(out / name, [getattr(arguments, one) for one in INPUT_FILES])
    if arguments.tied and Path(arguments.tied).resolve() == out.resolve():
        raise ConfigError(f"command line: --tied and --out are both {out}; expected two directories")
    timing = ChainTiming(arguments.subsampling, arguments.tolerance)
    options = PhoneLmOptions(arguments.order, min(3, arguments.order), arguments.extra_states)
    report = RunReport("utterances")
    source = _Alignments(arguments, timing) if arguments.alignment else _Transcripts(arguments, timing)
    numerators, phones = source.read(report)
    out.mkdir(parents=True, exist_ok=True)
    if not report.num_done:
        report.write(out / "report")
        show_losses(report, out / "report", arguments.verbose, arguments.alignment or arguments.words)
        return report.exit_status
    return _write(arguments, source, numerators, phones, options, report)


def _write(arguments, source, numerators, phones, options, report: RunReport) -> int:
    from decoder.sequence_training.chain import ChainSystem, estimate_phone_lm
    from readers.htk.mlf import write_mlf

    out, outputs = Path(arguments.out), source.outputs
    model = estimate_phone_lm(phones, options)
    print(
        f"phone language model: {model.num_states} states, {model.num_arcs} arcs, perplexity {model.perplexity:.2f}",
        flush=True,
    )
    system = ChainSystem.build(model, outputs, numerators, arguments.subsampling)
    system.save(out)
    if arguments.alignment:
        write_mlf(out / "states.mlf", source.labels())
    else:  # that of an earlier run
        (out / "states.mlf").unlink(missing_ok=True)
    report.write(out / "report")
    show_losses(report, out / "report", arguments.verbose, arguments.alignment or arguments.words)
    print(report.summary())
    graph = system.denominator
    print(
        f"chain: {len(numerators)} numerators, {graph.num_outputs} outputs, denominator of {graph.num_states} states "
        f"and {len(graph.output)} arcs"
    )
    return report.exit_status


def _outputs(arguments: argparse.Namespace, phones: Iterable[str], seen: Collection[str]):
    """The outputs of tied models, or of the phones that were seen."""
    from decoder.sequence_training.chain import monophone_outputs, read_tied_outputs

    if arguments.tied:
        return read_tied_outputs(arguments.tied, arguments.silence)
    unseen = [phone for phone in phones if phone not in seen]
    if unseen:
        print(f"no frames of {', '.join(unseen)}: no outputs made")
    return monophone_outputs([phone for phone in phones if phone in seen], arguments.silence)


class _Alignments:
    """Numerators from a state alignment."""

    def __init__(self, arguments: argparse.Namespace, timing):
        from decoder.tying import StateFiles
        from readers.htk.mlf import read_mlf

        self.arguments, self.timing = arguments, timing
        files = StateFiles(states=arguments.states, state_list=arguments.state_list, trees=arguments.trees)
        self.places, self.state_map = files.read()
        if arguments.silence not in self.state_map:
            file = arguments.states or arguments.state_list
            raise ConfigError(f"{file}: no model '{arguments.silence}'; expected the states of silence (--silence)")
        self.alignment = read_mlf(arguments.alignment)
        self.segments: dict = {}

    def read(self, report: RunReport):
        """Return the numerator of each utterance, and its phones."""
        from decoder.sequence_training.chain import aligned_numerator, phone_segments
        from decoder.tying import state_runs

        names, silence = names_for_any_path(list(self.alignment)), self.arguments.silence
        segments = {}
        for name in self.alignment:
            try:
                where = self.alignment.where(name)
                segments[name] = phone_segments(
                    state_runs(self.alignment[name], self.places, {silence}, silence, None, where)
                )
            except ArgonautError as fault:
                report.fail(name, one_line(fault))
        seen = {silence, *(phone for found in segments.values() for phone in found.phones)}
        self.outputs = _outputs(self.arguments, self.state_map, seen)
        numerators, phones = {}, []
        with progress_display("chain") as show:
            for number, (name, found) in enumerate(segments.items(), start=1):
                try:
                    numbers = [self.outputs.number(phone) for phone in found.phones]
                    numerators[names[name]] = aligned_numerator(numbers, found, self.outputs, self.timing)
                except ArgonautError as fault:
                    report.fail(name, one_line(fault))
                else:
                    self.segments[names[name]] = numbers, found
                    phones.append(numbers)
                    report.done()
                show(number, len(segments))
        return numerators, phones

    def labels(self) -> Iterator[tuple[str, list]]:
        """Yield the alignment of each utterance in the outputs."""
        from decoder.sequence_training.chain import chain_labels

        for name, (numbers, found) in self.segments.items():
            yield f"*/{name}.lab", chain_labels(numbers, found, self.outputs, self.timing)


class _Transcripts:
    """Numerators from words."""

    def __init__(self, arguments: argparse.Namespace, timing):
        from decoder.sequence_training.chain import SilenceOptions
        from readers.htk.mlf import read_mlf

        if not arguments.dict or not arguments.features:
            raise ConfigError("command line: --words without --dict and --features; expected both")
        self.arguments, self.timing, self.scp = arguments, timing, arguments.features
        self.silence = SilenceOptions(arguments.edge_sil_prob, arguments.sil_prob)
        self.dictionary = open_dictionary(arguments)
        self.words = read_mlf(arguments.words)

    def read(self, report: RunReport):
        """Return the numerator of each utterance, and samples of its phones."""
        import numpy as np

        from decoder.sequence_training.chain import Lexicon, transcript_numerator
        from readers.htk.parameter_file import read_htk_header
        from readers.htk.scp import read_scp

        entries = read_scp(self.scp)
        if not entries:
            raise FormatError(f"{self.scp}: no entries; expected a feature file on each line")
        labels = [self.words.lookup(entry.key) or () for entry in entries]
        spoken = {label.name for of_one in labels for label in of_one}
        dictionary = [entry for entry in self.dictionary if entry.word in spoken]
        seen = dict.fromkeys([self.arguments.silence, *(phone for entry in dictionary for phone in entry.phones)])
        self.outputs = _outputs(self.arguments, seen, seen)
        lexicon, rng = Lexicon(dictionary, self.outputs), np.random.default_rng(0)
        numerators, phones = {}, []
        with progress_display("chain") as show:
            for number, entry in enumerate(entries, start=1):
                try:
                    labels = self.words.lookup(entry.key)
                    if labels is None:
                        raise FormatError(f"no words; {self.words.expected_entry(entry.key)}")
                    if entry.key in numerators:
                        raise FormatError("a second time in the list; expected each utterance once")
                    words = [label.name for label in labels]
                    frames = entry.num_frames or read_htk_header(entry.path).num_frames
                    numerators[entry.key] = transcript_numerator(
                        words, lexicon, self.outputs, frames, self.timing.output_frames(frames)
                    )
                    phones += [lexicon.sample(words, self.silence, rng) for _ in range(SAMPLES)]
                    report.done()
                except (ArgonautError, OSError) as fault:
                    report.fail(entry.key, one_line(fault))
                show(number, len(entries))
        return numerators, phones
