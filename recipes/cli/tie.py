"""Tie the states of triphones by decision trees: from state alignments and features to an HTK donor.

worked example, with AN4's alignments of single phones and MFCCs of the same frames:
  argonaut tie --alignment states.mlf --state-list states.list --features train.mfcc.scp \\
               --questions recipes/lvcsr/data/questions.hed --out exp/hmms
writes to exp/hmms
  hmmdefs       the models as an MMF: single Gaussians, tied states, a transition matrix for each phone
  tiedlist      lines `logical physical` of all triphones seen
  trees         questions and trees, for the triphones that were not seen
  tree.hed      the questions and TB commands that HHEd would be given
  senones.list  the tied states: outputs of a network, its labelMappingFile
  states.mlf    the alignment in tied states: what that network is trained on
  report        utterances left out: of the statistics, or of states.mlf for phones that the features have nothing of
and ends with
  tied: 1204 triphones of 33 phones, 401 senones
What comes next: argonaut graph --mmf exp/hmms/hmmdefs --hmm-list exp/hmms/tiedlist --trees exp/hmms/trees ...
Alignments of a system of tied states are tied anew with its --trees.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import ArgonautError, ConfigError, FormatError
from recipes.cli.console import one_line, progress_display, show_losses

INPUT_FILES = ("alignment", "features", "states", "state_list", "trees", "questions")
RESULTS = ("hmmdefs", "tiedlist", "trees", "tree.hed", "senones.list", "states.mlf", "report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("--alignment", metavar="MLF", required=True, help="labels of states with times")
    files.add_argument("--features", metavar="SCP", required=True, help="HTK files of the utterances to learn from")
    files.add_argument("--states", metavar="FILE", help="model state map of single phones: name s1 s2 s3")
    files.add_argument("--state-list", metavar="FILE", help="instead: state names such as aa_s2, one a line")
    files.add_argument("--trees", metavar="FILE", help="trees by whose tied states the alignment is labelled")
    files.add_argument("--questions", metavar="FILE", required=True, help="QS lines of an HHEd script")
    files.add_argument("--out", metavar="DIR", required=True, help="directory for the results")
    tying = parser.add_argument_group("tying")
    tying.add_argument(
        "--threshold", type=float, default=200.0, metavar="X", help="least gain of a split, ln likelihood (200)"
    )
    tying.add_argument("--min-frames", type=float, default=100.0, metavar="N", help="least frames of a leaf (100)")
    tying.add_argument("--no-merge", dest="merge", action="store_false", help="do not merge leaves again")
    tying.add_argument("--silence", default="sil", metavar="PHONE", help="silence, which stands beyond both ends (sil)")
    tying.add_argument(
        "--context-free", default="", metavar="NAMES", help="more phones without context, comma between (noises)"
    )
    tying.add_argument("--short-pause", metavar="NAME", help="make this short pause of silence's middle state")
    tying.add_argument(
        "--transition-power", type=float, default=1.0, metavar="X", help="of the counted transition probabilities (1)"
    )


def run(arguments: argparse.Namespace) -> int:
    from decoder.tying import TreeOptions, tie_states
    from readers.common.files import require_writable
    from readers.htk.edit_script import read_edit_script
    from readers.htk.mlf import read_mlf

    if not 0 <= arguments.transition_power < float("inf"):
        raise ConfigError(f"command line: --transition-power {arguments.transition_power}; expected at least 0")
    out = Path(arguments.out)
    for name in RESULTS:
        require_writable(out / name, [getattr(arguments, one) for one in INPUT_FILES])
    options = TreeOptions(arguments.threshold, arguments.min_frames, merge=arguments.merge)
    questions = read_edit_script(arguments.questions).questions
    if not questions:
        raise FormatError(f"{arguments.questions}: no questions; expected QS lines")
    reading = Reading(arguments)
    alignment = read_mlf(arguments.alignment)
    report = RunReport("utterances")
    reading.collect(arguments.features, alignment, report)
    if not report.num_done:
        report.write(out / "report")
        show_losses(report, out / "report", arguments.verbose, arguments.features)
        return report.exit_status
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


class Reading:
    """How alignments are read, and what was collected from them.  statistics: None until the first features;
    lost: file:line of alignments of which the report tells.
    """

    def __init__(self, arguments: argparse.Namespace):
        from decoder.graph import state_map_of
        from decoder.tying import TransitionCounts, places_of
        from readers.htk.frame_labels import read_state_list
        from readers.htk.trees import read_trees
        from readers.tables.hmm_tables import read_state_map

        if bool(arguments.states) == bool(arguments.state_list):
            raise ConfigError("command line: expected either --states or --state-list")
        if arguments.states:
            self.state_map = read_state_map(arguments.states)
        else:
            self.state_map = state_map_of(read_state_list(arguments.state_list))
        self.silence, self.pause = arguments.silence, arguments.short_pause
        self.context_free = {self.silence, *filter(None, arguments.context_free.split(","))}
        unknown = sorted(self.context_free - self.state_map.keys())
        if unknown:
            file = arguments.states or arguments.state_list
            raise ConfigError(f"{file}: no model '{unknown[0]}'; expected its states")
        mixed_up = [phone for phone in self.state_map if set(phone) & set("-+")]
        if mixed_up:
            file = arguments.states or arguments.state_list
            raise ConfigError(
                f"{file}: phone '{mixed_up[0]}'; expected names without - and +, which part a triphone's phones (l-c+r)"
            )
        self.context_free |= {self.pause} if self.pause else set()
        trees = read_trees(arguments.trees) if arguments.trees else None
        for phone, count in (trees.num_states if trees else {}).items():
            self.state_map.setdefault(phone, [f"{phone}_s{state}" for state in range(2, 2 + count)])
        self.places = places_of(self.state_map, trees)
        self.num_states = {phone: len(states) for phone, states in self.state_map.items()}
        self.statistics, self.transitions = None, TransitionCounts()
        self.lost: set[str] = set()

    def runs(self, labels: list, where: str) -> list:
        from decoder.tying import state_runs

        return state_runs(labels, self.places, self.context_free, self.silence, self.pause, where)

    def collect(self, scp: str, alignment, report: RunReport) -> None:
        """Statistics of every utterance of the list; what is wrong with one is reported and the others go on."""
        from decoder.tying import Statistics
        from readers.htk.parameter_file import HAS_C, HAS_K, kind_name, read_htk
        from readers.htk.scp import read_scp

        entries = read_scp(scp)
        if not entries:
            raise FormatError(f"{scp}: no entries; expected a feature file on each line")
        with progress_display("tie") as show:
            for number, entry in enumerate(entries, start=1):
                try:
                    labels = alignment.lookup(entry.key)
                    if labels is None:
                        raise FormatError(f"no alignment; {alignment.expected_entry(entry.key)}")
                    runs = self.runs(labels, alignment.where(entry.key))
                    file = read_htk(entry.path, entry.start or 0, entry.end)
                    if self.statistics is None:
                        kind = kind_name(file.kind & ~(HAS_C | HAS_K))  # models know nothing of how files are kept
                        self.statistics = Statistics(len(file.frames), kind)
                    self.statistics.add(runs, file.frames, entry.path)
                    self.transitions.add(runs, self.num_states)
                    report.done()
                except (ArgonautError, OSError) as fault:
                    report.fail(entry.key, one_line(fault))
                    if alignment.lookup(entry.key) is not None:
                        self.lost.add(alignment.where(entry.key))
                show(number, len(entries))

    def write_labels(self, path: Path, alignment, system, report: RunReport) -> None:
        """Every utterance of the alignment in tied states, but for those that have none and are reported: utterances
        that are not among the features may have phones that no tree was grown for.
        """
        from readers.htk.mlf import write_mlf

        def entries() -> Iterator[tuple[str, list]]:
            for name in alignment:
                try:
                    labels = system.labels(self.runs(alignment[name], alignment.where(name)))
                except ArgonautError as fault:
                    if alignment.where(name) not in self.lost:
                        report.skip(name, f"not in {path.name}: {one_line(fault)}")
                else:
                    yield f"*/{Path(name).name}.lab", labels

        write_mlf(path, entries())
