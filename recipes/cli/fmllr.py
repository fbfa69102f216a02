r"""Adapt features to speakers: estimate LDA, MLLT and fMLLR transforms, and apply them to feature files.

worked example, with the results of `argonaut flatstart` (or of `argonaut tie`) and a file of lines `utterance speaker`:
  argonaut fmllr train --features train.mfcc.scp --alignment exp/flat/states.mlf --state-list exp/flat/states.list \
                       --speakers speakers --out exp/fmllr
writes to exp/fmllr
  fmllr.safetensors  transforms of all speakers (LDA, MLLT) and of each (fMLLR), Gaussian mixtures of the states;
                     after a run that was stopped, its state
  passes.jsonl       kind, number of Gaussians and log-likelihood of each pass
  report             utterances that could not be used, with reasons
and ends with
  fmllr: 40 values per frame, 2000 Gaussians, -50.11 per frame, 74 speakers, 74 with a transform
Then
  argonaut fmllr apply exp/fmllr --features train.mfcc.scp --speakers speakers --out feats --scp train.fmllr.scp
writes the transformed features of these utterances to feats, to train a network with.

Speakers that were not in the training need an alignment of their utterances, such as that of the words of a first
recognition (argon -alignmlf), in the same states:
  argonaut fmllr apply exp/fmllr --features test.mfcc.scp --speakers speakers --alignment test.states.mlf \
                       --out feats --scp test.fmllr.scp
Without --speakers, the features are transformed by LDA and MLLT only.
"""

import argparse
import json
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import ConfigError, FormatError, ShapeError
from recipes.cli.argon.sharding import seconds_of
from recipes.cli.console import one_line, progress_display, show_losses
from recipes.cli.machines import add_machine_options, check_machines, open_runner

MODEL, PASSES, REPORT = "fmllr.safetensors", "passes.jsonl", "report"
EXTENSION = "fmllr"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, add, text in (
        ("train", _add_train, "estimate transforms and Gaussians from aligned utterances"),
        ("apply", _add_apply, "write transformed features"),
    ):
        description = f"{text[0].upper()}{text[1:]}.  `argonaut fmllr --help` shows worked examples."
        parser = actions.add_parser(name, help=text, description=description)
        # The same option exists before the action; a default here would overwrite its value.
        parser.add_argument("-v", "--verbose", action="count", default=argparse.SUPPRESS, help="print more details")
        add(parser)
        speakers = parser.add_argument_group("speakers")
        speakers.add_argument(
            "--min-frames", type=float, default=300, metavar="N",
            help="speakers with fewer frames than these, without silence, get no transform (300)",
        )  # fmt: skip
        speakers.add_argument(
            "--prior-frames", type=float, default=100, metavar="N",
            help="weight of a prior for the transform that changes nothing, in frames (100)",
        )  # fmt: skip
        speakers.add_argument(
            "--silence", metavar="PHONE", default="sil", help="frames of this phone do not count for speakers (sil)"
        )
        machines = parser.add_argument_group("machines")
        add_machine_options(machines)


def _add_train(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("--features", metavar="SCP", required=True, help="list of the utterances' HTK feature files")
    files.add_argument("--alignment", metavar="MLF", required=True, help="state alignment of the utterances")
    files.add_argument("--state-list", metavar="FILE", required=True, help="names of the states, one per line")
    files.add_argument("--speakers", metavar="FILE", help="lines `utterance speaker`; without it LDA and MLLT only")
    files.add_argument("--out", metavar="DIR", required=True, help="directory for the results")
    training = parser.add_argument_group("training")
    training.add_argument(
        "--splice", type=int, default=4, metavar="N", help="frames on each side that LDA sees, without deltas (4)"
    )
    training.add_argument("--dim", type=int, default=40, metavar="N", help="values of a frame after LDA (40)")
    training.add_argument(
        "--gaussians", type=int, default=2000, metavar="N", help="number of Gaussians at the end (2000)"
    )
    training.add_argument("--passes", type=int, default=4, metavar="N", help="passes after each doubling of them (4)")
    training.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="how often the transforms of speakers are estimated (3)"
    )


def _add_apply(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("model", metavar="MODEL", help="directory of fmllr train")
    files.add_argument("--features", metavar="SCP", required=True, help="list of HTK feature files, as in the training")
    files.add_argument("--speakers", metavar="FILE", help="lines `utterance speaker`; without it LDA and MLLT only")
    files.add_argument(
        "--alignment", metavar="MLF", help="state alignment, from which the speakers' transforms are estimated"
    )
    files.add_argument("--out", metavar="DIR", required=True, help="directory for the transformed features")
    files.add_argument("--scp", metavar="SCP", required=True, help="list of these features to write")


def run(arguments: argparse.Namespace) -> int:
    check_machines(arguments)
    return {"train": run_train, "apply": run_apply}[arguments.action](arguments)


def run_train(arguments: argparse.Namespace) -> int:
    from decoder.gaussians.adaptation.training import AdaptationOptions, AdaptationTraining
    from readers.common.files import held, holder, require_writable, write_lines
    from readers.htk.frame_labels import read_state_list

    options = AdaptationOptions(
        splice=arguments.splice,
        dim=arguments.dim,
        gaussians=arguments.gaussians,
        passes=arguments.passes,
        rounds=arguments.rounds if arguments.speakers else 0,
        speakers=speaker_options(arguments),
    )
    out = Path(arguments.out)
    inputs = (arguments.features, arguments.alignment, arguments.state_list, arguments.speakers)
    for name in (MODEL, PASSES, REPORT):
        require_writable(out / name, inputs)
    report = RunReport("utterances")
    states = read_state_list(arguments.state_list)
    utterances = read_aligned(arguments, states, report)
    if utterances:
        with held(out / "fmllr.lock") as mine:
            if not mine:
                raise ConfigError(f"{out}: in use by {holder(out / 'fmllr.lock')}; expected a directory of its own")
            runner = open_runner(arguments)
            try:
                silent = silent_states(states, arguments)
                job = AdaptationTraining(utterances, states, silent, options, runner, report)
                with progress_display("fmllr", "parts", runner) as show:
                    result = job.train(out / MODEL, lambda line: print(line, flush=True), print_pass(job), show)
                write_lines(out / PASSES, map(json.dumps, result.history))
            except ShapeError as fault:
                raise ShapeError(f"{arguments.features}: {fault}") from fault
            finally:
                runner.close()
    report.write(out / REPORT)
    show_losses(report, out / REPORT, arguments.verbose, arguments.features)
    if report.num_done:
        print(report.summary())
        value = result.history[-1]["log_likelihood_per_frame"]
        print(
            f"fmllr: {result.models.dim} values per frame, {len(result.models.weights)} Gaussians, {value:.2f} per "
            f"frame, {len(result.counts)} speakers, {len(result.transforms)} with a transform"
        )
    return report.exit_status


def print_pass(job):
    """Return a function that prints a line about the last pass of a training."""

    def after(training) -> None:
        row = training.history[-1]
        value = row["log_likelihood_per_frame"]
        likelihood = "" if value is None else f", {value:.4f} per frame"
        print(
            f"pass {row['pass']} of {len(job.steps)}: {row['kind']}, {row['gaussians']} Gaussians{likelihood}",
            flush=True,
        )

    return after


def run_apply(arguments: argparse.Namespace) -> int:
    from decoder.gaussians.adaptation.adaptation import Adaptation
    from decoder.gaussians.adaptation.shards import aligned_shards
    from decoder.gaussians.adaptation.speakers import new_speakers, write_features
    from readers.common.files import require_writable
    from readers.htk.scp import ScpEntry, write_scp

    if arguments.alignment and not arguments.speakers:
        raise ConfigError("command line: --alignment without --speakers; expected both, or neither")
    model, out, report = Path(arguments.model) / MODEL, Path(arguments.out), RunReport("utterances")
    options = speaker_options(arguments)
    if not model.exists():
        raise ConfigError(f"{arguments.model}: no {MODEL}; expected a directory that `argonaut fmllr train` wrote")
    adaptation, _ = Adaptation.load(model)
    if not adaptation.complete:
        raise FormatError(f"{model}: the training is not complete; expected that `argonaut fmllr train` is run again")
    if arguments.speakers and not adaptation.prior.size:
        raise ConfigError(f"{model}: trained without speakers; expected no --speakers, or a training with them")
    inputs = (arguments.features, arguments.alignment, arguments.speakers, model)
    for path in (out / REPORT, arguments.scp):
        require_writable(path, inputs)
    states = adaptation.models.states
    utterances = read_aligned(arguments, states, report)
    runner = open_runner(arguments)
    try:
        transforms = adaptation.transforms if arguments.speakers else {}
        if arguments.alignment:
            silent = silent_states(states, arguments)
            with progress_display("fmllr", "parts", runner):
                found = new_speakers(list(aligned_shards(utterances)), adaptation, silent, runner, options)
            transforms = found.transforms
            few = {name: count for name, count in found.counts.items() if name not in transforms}
        elif arguments.speakers:
            few = {name: count for name, count in adaptation.counts.items() if name not in transforms}
            known = [one for one in utterances if one.speaker in adaptation.counts]
            for one in utterances:
                if one.speaker not in adaptation.counts:
                    report.fail(
                        one.name, f"{model}: speaker '{one.speaker}' is not in the training; expected --alignment"
                    )
            utterances = known
        else:
            few = {}
        few = {name: count for name, count in few.items() if any(one.speaker == name for one in utterances)}
        if few:
            report.remarks["speakers without a transform, because of few frames"] = ", ".join(
                f"{name} ({count:.0f})" for name, count in few.items()
            )
        targets = target_files(utterances, out)
        failed = {}
        with progress_display("fmllr apply", runner=runner) as show:
            arguments_of_all = adaptation.projection, transforms, targets
            found = runner.each(write_features, utterances, *arguments_of_all, seconds=seconds_of)
            for number, (one, reason) in enumerate(found, start=1):
                if reason:
                    failed[one.name] = one_line(reason) if isinstance(reason, Exception) else reason
                show(number, len(utterances))
    finally:
        runner.close()
    done = [one for one in utterances if one.name not in failed]
    for name, reason in failed.items():
        report.fail(name, reason)
    report.done(len(done))
    if done:
        write_scp(arguments.scp, [ScpEntry(f"{one.name}.{EXTENSION}", targets[one.name]) for one in done])
    report.write(out / REPORT)
    show_losses(report, out / REPORT, arguments.verbose, arguments.features)
    if done:
        print(report.summary())
        print(
            f"{arguments.scp}: {adaptation.models.dim} values per frame, "
            f"{len({one.speaker for one in done} & transforms.keys())} speakers with a transform"
        )
    return report.exit_status


def speaker_options(arguments: argparse.Namespace):
    """Return the options of the transforms of speakers."""
    from decoder.gaussians.adaptation.speakers import SpeakerOptions

    return SpeakerOptions(arguments.min_frames, arguments.prior_frames)


def silent_states(states, arguments: argparse.Namespace) -> list[int]:
    """Return the states of silence.  Raises ConfigError if there are speakers and no such states."""
    names = (f"{arguments.silence}_s", f"{arguments.silence}[")
    found = [number for number, name in enumerate(states) if name.startswith(names) or name == arguments.silence]
    if not found and arguments.speakers:
        raise ConfigError(
            f"--silence {arguments.silence}: no state {names[0]}2; expected the phone of silence, whose frames tell "
            "nothing of the speakers"
        )
    return found


def read_aligned(arguments: argparse.Namespace, states, report: RunReport) -> list:
    """Return the utterances of the feature list, with speakers and alignments where they are given.

    Utterances without one of them go to the report.  Raises FormatError for a list without entries and repeated names.
    """
    import numpy as np

    from decoder.gaussians.adaptation.shards import AlignedUtterance
    from readers.corpora.directory import read_speakers
    from readers.htk.frame_labels import frame_labels
    from readers.htk.mlf import read_mlf
    from readers.htk.parameter_file import read_htk_header
    from readers.htk.scp import read_scp

    entries = read_scp(arguments.features)
    if not entries:
        raise FormatError(f"{arguments.features}: no entries; expected a feature file on each line")
    speakers = read_speakers(Path(arguments.speakers)) if arguments.speakers else None
    alignment = read_mlf(arguments.alignment) if arguments.alignment else None
    numbers = {name: number for number, name in enumerate(states)}
    nothing = np.zeros(0, np.int32)
    seen: dict[str, str] = {}
    found = []
    for entry in entries:
        if seen.setdefault(entry.key, entry.where) != entry.where:
            raise FormatError(f"{entry.where}: '{entry.key}' is already at {seen[entry.key]}; expected each name once")
        runs, name = (nothing, nothing), f"{entry.key}.lab"  # an extension to be cut, since keys may contain dots
        try:
            speaker = "" if speakers is None else speakers.get(entry.key, speakers.get(entry.key.rsplit("/", 1)[-1]))
            if speaker is None:
                raise FormatError(f"{arguments.speakers}: no speaker of '{entry.key}'; expected a line `name speaker`")
            if alignment is not None:
                labels = alignment.lookup(name)
                if labels is None:
                    raise FormatError(f"{arguments.alignment}: no alignment; {alignment.expected_entry(name)}")
                period = read_htk_header(entry.path).period
                frames = frame_labels(labels, numbers, alignment.where(name), period)
                begins = np.flatnonzero(np.append(True, frames[1:] != frames[:-1]))
                runs = frames[begins], np.diff(np.append(begins, len(frames))).astype(np.int32)
        except (FormatError, OSError) as fault:
            report.fail(entry.key, f"{entry.path}: {fault.strerror}" if isinstance(fault, OSError) else str(fault))
            continue
        path = str(Path(entry.path).absolute())
        found.append(AlignedUtterance(entry.key, path, entry.start, entry.end, speaker, *runs))
    return found


def target_files(utterances: list, out: Path) -> dict[str, str]:
    """Return the feature file to write for each utterance.  Raises ConfigError for names that lead out of `out`."""
    targets = {}
    for one in utterances:
        parts = Path(one.name).parts
        name = Path(*parts[1:]) if Path(one.name).is_absolute() else Path(one.name)
        if ".." in parts:
            raise ConfigError(f"'{one.name}': a name of a feature file in another directory; expected no '..' in names")
        target = str((out / f"{name}.{EXTENSION}").absolute())
        if Path(target) == Path(one.path):
            raise ConfigError(f"{target}: features to read; expected another --out")
        targets[one.name] = target
    return targets
