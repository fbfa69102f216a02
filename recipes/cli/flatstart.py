r"""Train monophone HMMs with Gaussian mixtures from features, transcripts and a dictionary; align the utterances.

worked example, with MFCCs of all utterances and an MLF of their words:
  argonaut flatstart --features train.mfcc.scp --words train.words.mlf --dict dict --out exp/flat
writes to exp/flat
  hmmdefs       the models as an MMF: three states per phone, mixtures of Gaussians
  states.mlf    the alignment: states, with phones and words beside them
  states.list   names of the states
  transitions   transition probabilities of the states
  phones.list   names of the models
  features.json how the features are computed from audio, if hcopy made them; so exp/flat is a MODEL for argonaut align
  passes.jsonl  method, number of Gaussians and log-likelihood of each pass
  passes.png    a picture of them
  report        utterances that could not be used, with reasons
  passes.safetensors  the state of the training: a run that was stopped goes on from here
and ends with
  flat start: 34 phones, 1000 Gaussians, -67.57 per frame; next: argonaut tie --alignment exp/flat/states.mlf
  --state-list exp/flat/states.list --features train.mfcc.scp --out DIR
on one line.  All states begin with the mean and variance of all frames, silence with those of the frames at both ends
of the utterances; no alignment is needed.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import ConfigError, FormatError
from recipes.cli.console import next_step, progress_display, show_losses
from recipes.cli.dictionaries import add_dictionary_options, open_dictionary
from recipes.cli.machines import add_machine_options, check_machines, open_runner

STATE, PASSES, PICTURE = "passes.safetensors", "passes.jsonl", "passes.png"
FEATURES = "features.json"
RESULTS = (
    *("hmmdefs", "states.mlf", "states.list", "transitions", "phones.list", FEATURES, PASSES, PICTURE, "report"),
    STATE,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("--features", metavar="SCP", required=True, help="list of the utterances' HTK feature files")
    files.add_argument("--words", metavar="MLF", required=True, help="the words of the utterances")
    files.add_argument("--dict", metavar="FILE", required=True, help="pronunciations of these words")
    add_dictionary_options(files)
    files.add_argument("--out", metavar="DIR", required=True, help="directory for the results")
    training = parser.add_argument_group("training")
    training.add_argument(
        "--method",
        choices=("baum-welch", "viterbi"),
        default="baum-welch",
        help="count all paths by their probabilities, or only the best one (baum-welch)",
    )
    training.add_argument(
        "--gaussians", type=int, default=1000, metavar="N", help="number of Gaussians in all, at the end (1000)"
    )
    training.add_argument(
        "--first-passes", type=int, default=12, metavar="N", help="passes with one Gaussian per state (12)"
    )
    training.add_argument(
        "--passes", type=int, default=4, metavar="N", help="passes after each doubling of the Gaussians (4)"
    )
    training.add_argument(
        "--variance-floor",
        type=float,
        default=0.01,
        metavar="X",
        help="least variance, as a fraction of the variance of all frames (0.01)",
    )
    training.add_argument(
        "--beam", type=float, metavar="X", help="drop states that are worse than the best by more than X (exact)"
    )
    graph = parser.add_argument_group("transcripts")
    graph.add_argument("--silence", metavar="PHONE", help="model of silence (the phone of <s>, else sil)")
    graph.add_argument(
        "--sil-topology",
        choices=("left-to-right", "any-order"),
        default="any-order",
        help="how the states of silence may follow each other (any-order)",
    )
    graph.add_argument(
        "--sil-prob",
        type=float,
        default=0.5,
        metavar="P",
        help="probability of silence between words, and before and after them (0.5)",
    )
    graph.add_argument(
        "--sil-frames",
        type=int,
        default=10,
        metavar="N",
        help="frames at both ends of each utterance from which silence begins (10); 0 if recordings are cut tightly",
    )
    graph.add_argument(
        "--pron-scale", type=float, default=1.0, metavar="X", help="factor on -ln of pronunciation probabilities (1)"
    )
    machines = parser.add_argument_group("machines")
    add_machine_options(machines)


def run(arguments: argparse.Namespace) -> int:
    from decoder.gaussians.flat_start import FlatStart, FlatStartOptions
    from readers.common.files import held, holder, require_writable

    options = FlatStartOptions(
        method=arguments.method,
        gaussians=arguments.gaussians,
        first_passes=arguments.first_passes,
        passes=arguments.passes,
        variance_floor=arguments.variance_floor,
        silence=arguments.silence,
        silence_topology=arguments.sil_topology,
        silence_probability=arguments.sil_prob,
        silence_frames=arguments.sil_frames,
        pronunciation_scale=arguments.pron_scale,
        beam=arguments.beam,
    )
    check_machines(arguments)
    out = Path(arguments.out)
    for name in RESULTS:
        require_writable(out / name, [arguments.features, arguments.words, arguments.dict])
    report = RunReport("utterances")
    dictionary = open_dictionary(arguments)
    utterances = read_utterances(arguments.features, arguments.words, report)
    with held(out / "flatstart.lock") as mine:
        if not mine:
            raise ConfigError(f"{out}: in use by {holder(out / 'flatstart.lock')}; expected a directory of its own")
        runner = open_runner(arguments)
        try:
            job = FlatStart(utterances, dictionary, options, runner, report)
            if job.num_used:
                note_short_pause(job.topology)
                training = train(job, out)
                write_results(job, training, out)
                write_feature_record(Path(job.survey.used[0][0].path), out / FEATURES)
        finally:
            runner.close()
    report.write(out / "report")
    show_losses(report, out / "report", arguments.verbose, arguments.features)
    if report.num_done:
        print(report.summary())
        tie = (
            f"argonaut tie --alignment {out / 'states.mlf'} --state-list {out / 'states.list'} "
            f"--features {arguments.features} --out DIR"
        )
        print(
            f"flat start: {len(job.topology.models)} phones, {len(training.models.weights)} Gaussians, "
            f"{training.history[-1]['log_likelihood_per_frame']:.2f} per frame{next_step(tie)}"
        )
    return report.exit_status


def note_short_pause(topology) -> None:
    """Print a note if pronunciations contain a short pause, which would be a phone like any other."""
    from decoder.graph.options import SHORT_PAUSE

    if SHORT_PAUSE in topology.models and topology.silence != SHORT_PAUSE:
        print(
            f"note: '{SHORT_PAUSE}' in the dictionary is trained as a phone of at least three frames; expected "
            "pronunciations without it, since silence between words is optional",
            file=sys.stderr,
        )


def read_utterances(scp: str, words: str, report: RunReport) -> list:
    """Return the utterances of a feature list that have words; the others go to the report.

    Raises FormatError for lists without entries and repeated names.
    """
    from decoder.gaussians.shards import TrainingUtterance
    from readers.htk.mlf import read_mlf
    from readers.htk.scp import read_scp

    entries, transcripts = read_scp(scp), read_mlf(words)
    if not entries:
        raise FormatError(f"{scp}: no entries; expected a feature file on each line")
    seen: dict[str, str] = {}
    found = []
    for entry in entries:
        if seen.setdefault(entry.key, entry.where) != entry.where:
            raise FormatError(f"{entry.where}: '{entry.key}' is already at {seen[entry.key]}; expected each name once")
        name = f"{entry.key}.lab"  # an extension to be cut, since keys may contain dots
        labels = transcripts.lookup(name)
        if labels is None:
            report.fail(entry.key, f"{words}: no transcript; {transcripts.expected_entry(name)}")
        elif not labels:
            report.fail(entry.key, f"{transcripts.where(name)}: no words; expected at least one")
        else:
            path = str(Path(entry.path).absolute())
            spoken = tuple(label.name for label in labels)
            found.append(TrainingUtterance(entry.key, path, entry.start, entry.end, spoken))
    return found


def train(job, out: Path):
    """Run all passes; print a line for each, and keep the log and the picture up to date."""
    from readers.common.files import write_lines
    from recipes.pictures.passes import draw_passes

    def after(training) -> None:
        row = training.history[-1]
        print(
            f"pass {row['pass']} of {len(job.schedule)}: {row['method']}, {row['gaussians']} Gaussians, "
            f"{row['log_likelihood_per_frame']:.4f} per frame",
            flush=True,
        )

    with progress_display("flat start", runner=job.runner) as show:
        training = job.train(out / STATE, lambda line: print(line, flush=True), after, show)
    write_lines(out / PASSES, map(json.dumps, training.history))
    draw_passes(training.history, out / PICTURE)
    return training


def write_feature_record(features: Path, path: Path) -> None:
    """Write how a feature file was computed, if more is known than its header says."""
    from readers.config.side_files import SideFiles, write_side_file
    from readers.htk.parameter_file import kind_name, read_htk_header

    header = read_htk_header(features)
    record = SideFiles().record(features, kind_name(header.kind), header.period)
    if record.is_detailed:
        write_side_file(path, record)
    else:
        path.unlink(missing_ok=True)


def write_results(job, training, out: Path) -> None:
    """Write models, lists and the alignment."""
    from decoder.graph.phone_models import distil
    from readers.common.files import write_lines
    from readers.common.names import names_for_any_path
    from readers.htk.mlf import write_mlf
    from readers.htk.mmf_writer import write_mmf
    from readers.tables.hmm_tables import write_transitions

    models = job.hmm_set(training)
    write_mmf(out / "hmmdefs", models)
    write_lines(out / "states.list", training.models.states)
    write_lines(out / "phones.list", job.topology.models)
    write_transitions(out / "transitions", distil(models).transitions)
    seen: set[str] = set()
    short = names_for_any_path([utterance.name for utterance, _ in job.survey.used])

    def entries(show) -> Iterator[tuple[str, list]]:
        for name, labels in job.align(training, show):
            seen.update(label.name for label in labels)
            yield f"*/{short[name]}.lab", labels

    with progress_display("align", runner=job.runner) as show:
        write_mlf(out / "states.mlf", entries(show))
    unseen = [phone for phone, states in job.topology.models.items() if seen.isdisjoint(states)]
    if unseen:
        job.report.remarks["phones without frames in the alignment"] = " ".join(unseen)
        print(f"note: no frames of {', '.join(unseen)} in the alignment", file=sys.stderr)
