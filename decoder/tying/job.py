"""The job that ties the states of triphones: from an alignment and features to an HTK model set."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Literal

from decoder.tying.collection import (
    AlignedUtterance,
    AlignmentReading,
    Collected,
    Collection,
    Shard,
    collect_shard,
    shards_of,
)
from decoder.tying.questions import phone_questions
from decoder.tying.state_files import StateFiles
from decoder.tying.system import TiedSystem, tie_states
from decoder.tying.trees import TreeOptions
from readers.common.files import require_writable
from readers.common.jobs.runner import Runner, thread_runner
from readers.common.names import naming_for_any_path
from readers.common.report import Log, Progress, RunReport, silent
from readers.config.options import Options, group, option
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.htk.edit_script import read_edit_script
from readers.htk.mlf import MLF, Label, read_mlf, write_mlf
from readers.htk.scp import read_scp
from readers.htk.trees import Question

AUTOMATIC = "auto"
RESULTS = ("hmmdefs", "tiedlist", "trees", "tree.hed", "senones.list", "states.mlf", "report")


@dataclass(frozen=True, kw_only=True)
class TieOptions(Options):
    """Options of state tying."""

    alignment: Path = option(help="state alignment of the utterances", metavar="MLF", heading="files")
    features: Path = option(help="list of the HTK feature files of these utterances", metavar="SCP")
    files: StateFiles = group(StateFiles)
    questions: str = option(
        AUTOMATIC, "HHEd script with QS commands; 'auto' (the default): from a clustering of the phones", metavar="FILE"
    )
    out: Path = option(help="directory for the results", metavar="DIR")
    growing: TreeOptions = group(TreeOptions, heading="tying")
    silence: str = option("sil", "context at both ends of an utterance", metavar="PHONE")
    context_free: str = option("", "further context-independent phones, separated by commas", metavar="NAMES")
    context: Literal["both", "left"] = option("both", "neighbours that the questions ask for; left makes biphones")
    short_pause: str | None = option(None, "add a short pause that shares the middle state of silence", metavar="NAME")
    transition_power: float = option(1.0, "exponent of the counted transition probabilities", least=0)


@dataclass(frozen=True)
class TieResult:
    """What state tying made.

    Attributes
    ----------
    report : RunReport
        The utterances that gave statistics, and those that did not, with the reasons.
    system : TiedSystem or None
        None if no utterance gave statistics.
    num_triphones, num_phones, num_senones : int
    """

    report: RunReport
    system: TiedSystem | None = field(default=None, repr=False)
    num_triphones: int = 0
    num_phones: int = 0
    num_senones: int = 0


def tie(
    options: TieOptions, *, runner: Runner | None = None, progress: Progress = silent, log: Log = silent
) -> TieResult:
    """Tie the states of triphones with decision trees; write an HTK model set to `options.out`.

    Parameters
    ----------
    options : TieOptions
    runner : Runner, optional
        Reads the features, in this thread by default.
    progress : callable
        Called as ``progress(utterances done, utterances)``.
    log : callable
        Receives a line for each phone.

    Returns
    -------
    TieResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share; the report lists faults of single utterances.

    Examples
    --------
    ``files = StateFiles(state_list="states.list")``

    ``tie(TieOptions(alignment="states.mlf", features="train.scp", files=files, out="hmms")).num_senones``
    """
    files = options.files
    inputs: list[str | Path | None] = [
        options.alignment,
        options.features,
        options.questions,
        files.states,
        files.state_list,
        files.trees,
    ]
    for name in RESULTS:
        require_writable(options.out / name, inputs)
    questions = None if options.questions == AUTOMATIC else _read_questions(options.questions)
    states = _States(options)
    alignment = read_mlf(options.alignment)
    collected, lost, report = _collect(options, states, alignment, runner or thread_runner(1), progress)
    if collected is None or not report.num_done:
        report.write(options.out / "report")
        return TieResult(report)
    statistics = collected.statistics
    transitions = collected.transitions
    if questions is None:
        questions = phone_questions(statistics, states.context_free, options.short_pause)
    if options.context == "left":
        questions = _left_questions(questions, options)
    system = tie_states(
        statistics, transitions, states.state_map, states.context_free, questions, options.growing,
        options.silence, options.short_pause, options.transition_power, log,
    )  # fmt: skip
    system.save(options.out)
    _write_labels(options.out / "states.mlf", alignment, states, system, lost, report)
    report.write(options.out / "report")
    num_triphones = sum(name not in states.context_free for name in system.names)
    return TieResult(report, system, num_triphones, len(system.trees.num_states), len(system.senones))


def _read_questions(path: str) -> dict[str, Question]:
    questions = read_edit_script(path).questions
    if not questions:
        raise FormatError(f"{path}: no questions; expected QS lines")
    return questions


def _left_questions(questions: dict[str, Question], options: TieOptions) -> dict[str, Question]:
    """Return the questions that ask for the left neighbour only."""
    left_questions = {
        name: question
        for name, question in questions.items()
        if all(pattern.endswith("*") for pattern in question.patterns)
    }
    options.require("context", bool(left_questions), 'is left without questions such as "b-*"; expected some')
    return left_questions


class _States:
    """The states of monophones, and how they appear in the alignment.

    Attributes
    ----------
    state_map : dict
        Phone -> names of its states.
    context_free : set of str
        Phones without context.
    reading : AlignmentReading
    """

    def __init__(self, options: TieOptions):
        places, self.state_map = options.files.read()
        self.context_free = {options.silence, *filter(None, options.context_free.split(","))}
        unknown = sorted(self.context_free - self.state_map.keys())
        if unknown:
            raise ConfigError(f"{options.files.file}: no model '{unknown[0]}'; expected its states")
        self.context_free |= {options.short_pause} if options.short_pause else set()
        num_states = {phone: len(states) for phone, states in self.state_map.items()}
        self.reading = AlignmentReading(
            places,
            num_states,
            frozenset(self.context_free),
            options.silence,
            options.short_pause,
        )


def _collect(
    options: TieOptions, states: _States, alignment: MLF, runner: Runner, progress: Progress
) -> tuple[Collected | None, set[str], RunReport]:
    """Accumulate the statistics of every utterance of the list; report utterances that fail, and continue.

    Returns (statistics or None, "file:line" of the alignments of lost utterances, report).
    """
    entries = read_scp(options.features)
    if not entries:
        raise FormatError(f"{options.features}: no entries; expected a feature file on each line")
    is_aligned = bytearray(alignment.lookup(entry.key) is not None for entry in entries)
    sent: deque[Shard] = deque()

    def shards() -> Iterator[Shard]:
        for shard in shards_of(
            AlignedUtterance(entry.path, entry.start, entry.end, *labels_and_place)
            for entry in compress(entries, is_aligned)
            if (labels_and_place := alignment.entry(entry.key)) is not None
        ):
            sent.append(shard)
            yield shard

    collection = Collection()
    lost = set[str]()
    report = RunReport("utterances")
    outcomes = runner.outcomes(collect_shard, shards(), states.reading)
    reasons = (reason for outcome in outcomes for reason in collection.add(sent.popleft(), outcome))
    for number, (entry, has_alignment) in enumerate(zip(entries, is_aligned), start=1):
        if not has_alignment:
            report.fail(entry.key, f"no alignment; {alignment.expected_entry(entry.key)}")
        elif reason := next(reasons):
            report.fail(entry.key, reason)
            if (labelled := alignment.entry(entry.key)) is not None:
                lost.add(labelled[1])
        else:
            report.done()
        progress(number, len(entries))
    return collection.collected, lost, report


def _write_labels(
    path: Path, alignment: MLF, states: _States, system: TiedSystem, lost: set[str], report: RunReport
) -> None:
    """Write the alignment in tied states.

    Utterances outside the feature list may contain phones without a tree; these are skipped and reported.
    """
    short = naming_for_any_path(alignment)

    def entries() -> Iterator[tuple[str, list[Label]]]:
        for name in alignment:
            try:
                labels = system.labels(states.reading.runs(alignment[name], alignment.where(name)))
            except ArgonautError as fault:
                if alignment.where(name) not in lost:
                    report.skip(name, f"not in {path.name}: {' '.join(str(fault).split())}")
            else:
                yield f"*/{short(name)}.lab", labels

    write_mlf(path, entries())
