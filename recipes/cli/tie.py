r"""Tie the states of triphones with decision trees; write an HTK model set.

worked example, with AN4's monophone alignments and MFCCs of the same frames:
  argonaut tie --alignment states.mlf --state-list states.list --features train.mfcc.scp --out exp/hmms
writes to exp/hmms
  hmmdefs       the models as an MMF: single Gaussians, tied states, one transition matrix for each phone
  tiedlist      lines `logical physical` for all triphones of the data
  trees         questions and trees, for triphones that are not in the data
  tree.hed      the equivalent questions and TB commands of HHEd
  senones.list  names of the tied states: labelMappingFile of a network, whose outputs are in this order
  states.mlf    the alignment in tied states, to train that network with
  report        utterances that gave no statistics, and those left out of states.mlf (phones without a tree)
and ends with
  tied: 1204 triphones of 33 phones, 401 senones
Next step: argonaut graph --mmf exp/hmms/hmmdefs --hmm-list exp/hmms/tiedlist --trees exp/hmms/trees ...
If the alignment is already in tied states, pass the trees that define them with --trees.  The questions of the trees
are made from the data unless --questions gives a file.
"""

import argparse
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import ArgonautError, ConfigError, FormatError
from recipes.cli.console import one_line, progress_display, show_losses
from recipes.cli.machines import add_process_options, check_machines, open_process_runner

INPUT_FILES = ("alignment", "features", "states", "state_list", "trees", "questions")
AUTOMATIC = "auto"
RESULTS = ("hmmdefs", "tiedlist", "trees", "tree.hed", "senones.list", "states.mlf", "report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("--alignment", metavar="MLF", required=True, help="state alignment of the utterances")
    files.add_argument(
        "--features", metavar="SCP", required=True, help="list of the HTK feature files of these utterances"
    )
    files.add_argument("--states", metavar="FILE", help="state map of monophones: lines `phone s1 s2 s3`")
    files.add_argument(
        "--state-list", metavar="FILE", help="instead of --states: state names such as aa_s2, one per line"
    )
    files.add_argument("--trees", metavar="FILE", help="for an alignment in tied states: the trees that define them")
    files.add_argument(
        "--questions", metavar="FILE", default=AUTOMATIC,
        help="HHEd script with QS commands; 'auto' (the default): from a clustering of the phones",
    )  # fmt: skip
    files.add_argument("--out", metavar="DIR", required=True, help="directory for the results")
    tying = parser.add_argument_group("tying")
    tying.add_argument(
        "--threshold", type=float, default=200.0, metavar="X", help="minimum gain of a split in ln likelihood (200)"
    )
    tying.add_argument("--min-frames", type=float, default=100.0, metavar="N", help="minimum frames of a leaf (100)")
    tying.add_argument("--no-merge", dest="merge", action="store_false", help="do not merge similar leaves")
    tying.add_argument("--silence", default="sil", metavar="PHONE", help="context at both ends of an utterance (sil)")
    tying.add_argument(
        "--context-free", default="", metavar="NAMES", help="further context-independent phones, separated by commas"
    )
    tying.add_argument(
        "--context",
        choices=("both", "left"),
        default="both",
        help="neighbours that the questions ask for; left makes biphones (both)",
    )
    tying.add_argument(
        "--short-pause", metavar="NAME", help="add a short pause that shares the middle state of silence"
    )
    tying.add_argument(
        "--transition-power",
        type=float,
        default=1.0,
        metavar="X",
        help="exponent of the counted transition probabilities (1)",
    )
    add_process_options(parser.add_argument_group("machines"))


def run(arguments: argparse.Namespace) -> int:
    from decoder.tying import TreeOptions, phone_questions, tie_states
    from readers.common.files import require_writable
    from readers.htk.mlf import read_mlf

    if not 0 <= arguments.transition_power < float("inf"):
        raise ConfigError(f"command line: --transition-power {arguments.transition_power}; expected at least 0")
    check_machines(arguments, "process")
    out = Path(arguments.out)
    for name in RESULTS:
        require_writable(out / name, [getattr(arguments, one) for one in INPUT_FILES])
    options = TreeOptions(arguments.threshold, arguments.min_frames, merge=arguments.merge)
    questions = None if arguments.questions == AUTOMATIC else read_questions(arguments.questions)
    reading = Reading(arguments)
    alignment = read_mlf(arguments.alignment)
    report = RunReport("utterances")
    reading.collect(arguments, alignment, report)
    if not report.num_done:
        report.write(out / "report")
        show_losses(report, out / "report", arguments.verbose, arguments.features)
        return report.exit_status
    if questions is None:
        questions = phone_questions(reading.statistics, reading.context_free, reading.pause)
    if arguments.context == "left":
        questions = left_questions(questions)
    system = tie_states(
        reading.statistics, reading.transitions, reading.state_map, reading.context_free, questions, options,
        reading.silence, reading.pause, arguments.transition_power,
        lambda line: print(line, flush=True),
    )  # fmt: skip
    system.save(out)
    reading.write_labels(out / "states.mlf", alignment, system, report)
    report.write(out / "report")
    show_losses(report, out / "report", arguments.verbose, arguments.features)
    print(report.summary())
    triphones = sum(name not in reading.context_free for name in system.names)
    print(f"tied: {triphones} triphones of {len(system.trees.num_states)} phones, {len(system.senones)} senones")
    return report.exit_status


def read_questions(path: str) -> dict:
    from readers.htk.edit_script import read_edit_script

    questions = read_edit_script(path).questions
    if not questions:
        raise FormatError(f"{path}: no questions; expected QS lines")
    return questions


def left_questions(questions: dict) -> dict:
    """The questions that ask for the left neighbour only."""
    found = {name: one for name, one in questions.items() if all(pattern.endswith("*") for pattern in one.patterns)}
    if not found:
        raise ConfigError('command line: --context left without questions such as "b-*"; expected some')
    return found


def read_places(arguments: argparse.Namespace) -> tuple[dict[str, tuple[str, int]], dict[str, list[str]]]:
    """Read --states or --state-list and --trees: the place of each state of an alignment, and the states of phones."""
    from decoder.graph import state_map_of
    from decoder.tying import places_of
    from readers.htk.frame_labels import read_state_list
    from readers.htk.trees import read_trees
    from readers.tables.hmm_tables import read_state_map

    if bool(arguments.states) == bool(arguments.state_list):
        found = "--states and --state-list" if arguments.states else "neither --states nor --state-list"
        raise ConfigError(f"command line: {found}; expected one of them")
    if arguments.states:
        state_map = read_state_map(arguments.states)
    else:
        state_map = state_map_of(read_state_list(arguments.state_list))
    mixed_up = [phone for phone in state_map if set(phone) & set("-+")]
    if mixed_up:
        file = arguments.states or arguments.state_list
        raise ConfigError(
            f"{file}: phone '{mixed_up[0]}'; expected names without - and +, which separate the phones of a triphone "
            "(l-c+r)"
        )
    trees = read_trees(arguments.trees) if arguments.trees else None
    for phone, count in (trees.num_states if trees else {}).items():
        state_map.setdefault(phone, [f"{phone}_s{state}" for state in range(2, 2 + count)])
    return places_of(state_map, trees), state_map


class Reading:
    """Reads alignments and collects their statistics.

    Attributes
    ----------
    statistics, transitions : Statistics or None, TransitionCounts or None
        None until the first utterance was read, which determines kind and dimension.
    lost : set of str
        "file:line" of the alignments that the report lists.
    """

    def __init__(self, arguments: argparse.Namespace):
        from decoder.tying.collection import AlignmentReading

        places, self.state_map = read_places(arguments)
        self.silence, self.pause = arguments.silence, arguments.short_pause
        self.context_free = {self.silence, *filter(None, arguments.context_free.split(","))}
        unknown = sorted(self.context_free - self.state_map.keys())
        if unknown:
            file = arguments.states or arguments.state_list
            raise ConfigError(f"{file}: no model '{unknown[0]}'; expected its states")
        self.context_free |= {self.pause} if self.pause else set()
        num_states = {phone: len(states) for phone, states in self.state_map.items()}
        self.alignments = AlignmentReading(places, num_states, frozenset(self.context_free), self.silence, self.pause)
        self.statistics, self.transitions = None, None
        self.lost: set[str] = set()

    def collect(self, arguments: argparse.Namespace, alignment, report: RunReport) -> None:
        """Accumulate the statistics of every utterance of the list; report utterances that fail, and continue."""
        from decoder.tying.collection import AlignedUtterance, Collection, Shard, collect_shard, shards_of
        from readers.htk.scp import read_scp

        entries = read_scp(arguments.features)
        if not entries:
            raise FormatError(f"{arguments.features}: no entries; expected a feature file on each line")
        aligned = bytearray(alignment.lookup(entry.key) is not None for entry in entries)
        sent: deque[Shard] = deque()

        def shards() -> Iterator[Shard]:
            found = ((entry, *alignment.entry(entry.key)) for entry, there in zip(entries, aligned) if there)
            for shard in shards_of(AlignedUtterance(one.path, one.start, one.end, *rest) for one, *rest in found):
                sent.append(shard)
                yield shard

        collection, runner = Collection(), open_process_runner(arguments)
        try:
            results = runner.outcomes(collect_shard, shards(), self.alignments)
            reasons = (one for result in results for one in collection.add(sent.popleft(), result))
            with progress_display("tie", runner=runner) as show:
                for number, (entry, there) in enumerate(zip(entries, aligned), start=1):
                    if not there:
                        report.fail(entry.key, f"no alignment; {alignment.expected_entry(entry.key)}")
                    elif reason := next(reasons):
                        report.fail(entry.key, reason)
                        self.lost.add(alignment.entry(entry.key)[1])
                    else:
                        report.done()
                    show(number, len(entries))
        finally:
            runner.close()
        if collection.collected is not None:
            self.statistics, self.transitions = collection.collected.statistics, collection.collected.transitions

    def write_labels(self, path: Path, alignment, system, report: RunReport) -> None:
        """Write the alignment in tied states.

        Utterances outside the feature list may contain phones without a tree; these are skipped and reported.
        """
        from readers.common.names import naming_for_any_path
        from readers.htk.mlf import write_mlf

        short = naming_for_any_path(alignment)

        def entries() -> Iterator[tuple[str, list]]:
            for name in alignment:
                try:
                    labels = system.labels(self.alignments.runs(alignment[name], alignment.where(name)))
                except ArgonautError as fault:
                    if alignment.where(name) not in self.lost:
                        report.skip(name, f"not in {path.name}: {one_line(fault)}")
                else:
                    yield f"*/{short(name)}.lab", labels

        write_mlf(path, entries())
