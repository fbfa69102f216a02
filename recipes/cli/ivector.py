r"""Train an extractor of i-vectors, vectors that describe speakers, and compute i-vectors from features.

worked example, with MFCCs of all utterances, without _Z, and the speakers that `argonaut import` listed:
  argonaut ivector train --features train.mfcc.scp --speakers speakers -o speakers.ivector
prints a line for each pass and ends with
  speakers.ivector: 256 Gaussians, 50 values, 948 utterances, -49.21 per frame; next: argonaut ivector extract
  speakers.ivector --features train.mfcc.scp --out DIR --scp FILE
on one line.
  argonaut ivector extract speakers.ivector --features train.mfcc.scp --speakers speakers --out ivectors \
        --scp train.ivector.scp
writes an HTK file of one vector for each speaker to the directory ivectors, and a list in which each utterance has a
line with its speaker's file.  It ends with
  utterances: 948 done, 0 skipped, 0 failed
The list is the second stream of a network's reader, with expandToUtterance=true.

With --online, each utterance has a file with a vector for every 10 frames, which is estimated from the frames before
it, as in recognition of a stream; the reader takes it with framesPerVector=10.  With --speakers, too, an utterance
begins with what is known from the earlier utterances of its speaker in the list.

Both commands go on where they were stopped.
"""

import argparse
import sys
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import ConfigError, FormatError
from recipes.cli.console import next_step, one_line, progress_display, show_losses
from recipes.cli.machines import add_machine_options, check_machines, open_runner

RECORD = "made-with"  # of a directory of i-vectors
GUESSED_SECONDS = 10.0  # of an utterance whose header was not read yet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, add, text in (
        ("train", _add_train, "train an extractor of i-vectors"),
        ("extract", _add_extract, "compute i-vectors of utterances or speakers"),
    ):
        description = f"{text[0].upper()}{text[1:]}.  `argonaut ivector --help` shows worked examples."
        action = actions.add_parser(name, help=text, description=description)
        # The same option exists before the action; a default here would overwrite its value.
        action.add_argument("-v", "--verbose", action="count", default=argparse.SUPPRESS, help="print more details")
        add(action)
        add_machine_options(action)


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--features", metavar="SCP", required=True, help="list of the utterances' HTK feature files")
    speakers = parser.add_mutually_exclusive_group()
    speakers.add_argument("--speakers", metavar="FILE", help="lines `NAME SPEAKER`: one i-vector for each speaker")
    speakers.add_argument(
        "--speaker-pattern",
        metavar="REGEX",
        help="instead: a regular expression, whose first group in the name of an utterance is the speaker",
    )


def _add_train(parser: argparse.ArgumentParser) -> None:
    _add_input(parser)
    parser.add_argument("-o", "--output", metavar="MODEL", required=True, help="model to write")
    size = parser.add_argument_group("model")
    size.add_argument("--gaussians", type=int, metavar="N", help="Gaussians of the background model (256)")
    size.add_argument("--dim", type=int, metavar="N", help="values of an i-vector (50)")
    size.add_argument(
        "--covariance", choices=("diagonal", "full"), help="covariances of the background model (diagonal)"
    )
    size.add_argument(
        "--mean-window", dest="window", type=int, metavar="N",
        help="frames whose mean is subtracted for the background model (600)",
    )  # fmt: skip
    training = parser.add_argument_group("training")
    for name, field, text in (
        ("--split-passes", "split_passes", "passes after each doubling of the Gaussians (3)"),
        ("--passes", "passes", "passes with all Gaussians (6)"),
        ("--full-passes", "full_passes", "passes with full covariances (4)"),
        ("--extractor-passes", "extractor_passes", "passes that train the extractor (10)"),
        (
            "--background-frames",
            "background_frames",
            "frames on which the background model is trained, about (2000000)",
        ),
        ("--seed", "seed", "seed of the random numbers (0)"),
    ):
        training.add_argument(name, dest=field, type=int, metavar="N", help=text)
    training.add_argument(
        "--variance-floor", type=float, metavar="X", help="least variance, as a fraction of that of all frames (0.01)"
    )
    _add_estimation(parser)


def _add_estimation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("estimation")
    for name, field, kind, text in (
        ("--select", "select", int, "Gaussians of a frame, at most (5)"),
        ("--min-posterior", "min_posterior", float, "probability below which a Gaussian is left out (0.025)"),
        ("--posterior-scale", "posterior_scale", float, "factor on the probabilities of Gaussians (0.1)"),
        ("--max-count", "max_count", float, "scaled frames from which on the prior grows with them; 0: never (100)"),
        ("--period", "period", int, "frames between two i-vectors online (10)"),
    ):
        group.add_argument(name, dest=field, type=kind, metavar="N" if kind is int else "X", help=text)


def _add_extract(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="model of ivector train")
    _add_input(parser)
    parser.add_argument("--out", metavar="DIR", required=True, help="directory for the files of i-vectors")
    parser.add_argument("--scp", metavar="FILE", required=True, help="list of the utterances' i-vectors to write")
    parser.add_argument(
        "--online", action="store_true", help="a vector for each period of frames, estimated from the frames before it"
    )
    _add_estimation(parser)


def run(arguments: argparse.Namespace) -> int:
    check_machines(arguments)
    runner = open_runner(arguments)
    try:
        return {"train": train, "extract": extract}[arguments.action](arguments, runner)
    finally:
        runner.close()


def given(arguments: argparse.Namespace, cls: type, **others) -> dict:
    """Return the options of a dataclass that the command line gives."""
    from dataclasses import fields

    names = {field.name for field in fields(cls)}
    found = {name: value for name, value in vars(arguments).items() if name in names and value is not None}
    return found | others


def train(arguments: argparse.Namespace, runner) -> int:
    from features.ivectors.background import IvectorOptions
    from features.ivectors.training import IvectorTraining, TrainingOptions
    from readers.common.files import held, holder, require_writable

    ivector = IvectorOptions(**given(arguments, IvectorOptions))
    options = TrainingOptions(**given(arguments, TrainingOptions, ivector=ivector))
    output = Path(arguments.output)
    state, report_path = Path(f"{output}.state"), Path(f"{output}.report")
    for path in (output, state, report_path):
        require_writable(path, [arguments.features, arguments.speakers])
    report = RunReport("utterances")
    units = read_units(arguments, report)
    lock = Path(f"{output}.lock")
    with held(lock) as mine:
        if not mine:
            raise ConfigError(f"{output}: in use by {holder(lock)}; expected a model of its own")
        job = IvectorTraining(units, options, runner, report)
        if job.num_units:
            if job.frames < options.gaussians:
                raise ConfigError(
                    f"{arguments.features}: {job.frames} frames; expected at least {options.gaussians}, one for each "
                    "of --gaussians, and better a hundred"
                )
            record = record_of(job, arguments.features)
            training = train_passes(job, state)
            job.model(training, record).save(output)
            state.unlink()
    report.write(report_path)
    show_losses(report, report_path, arguments.verbose, arguments.features)
    if report.num_done:
        last = training.history[-1]
        extract = f"argonaut ivector extract {output} --features {arguments.features} --out DIR --scp FILE"
        print(
            f"{output}: {last['gaussians']} Gaussians, {options.dim} values, {report.num_done} utterances, "
            f"{last['log_likelihood_per_frame']:.2f} per frame{next_step(extract)}"
        )
    return report.exit_status


def train_passes(job, state: Path):
    """Run all passes, and print a line for each."""

    def after(training) -> None:
        row = training.history[-1]
        print(
            f"pass {row['pass']} of {len(job.options.schedule)}: {row['stage']}, {row['gaussians']} Gaussians, "
            f"{row['log_likelihood_per_frame']:.4f} per frame",
            flush=True,
        )

    with progress_display("ivector train", runner=job.runner) as show:
        return job.train(state, lambda line: print(line, flush=True), after, show)


def record_of(job, features: str):
    """Return how the features of all utterances were computed; note it if that is not known completely.

    Raises FormatError if they were computed in different ways.
    """
    from readers.config.side_files import SideFiles, side_file

    kind, _, period = job.form
    paths = [one.utterance.path for one in job.used]
    record = SideFiles().common(paths, kind, period, features)
    if not record.is_detailed:
        print(
            f"note: {paths[0]}: no {side_file(paths[0]).name} beside it, as argonaut hcopy writes it; so i-vectors can "
            "be computed from features, but not from audio",
            file=sys.stderr,
        )
    return record


def extract(arguments: argparse.Namespace, runner) -> int:
    from dataclasses import replace

    from features.ivectors.background import IvectorOptions
    from features.ivectors.extraction import Extracted, check_directories, extract_units, target_path
    from features.ivectors.model import IvectorModel
    from readers.common.files import held, holder, require_writable

    out, scp = Path(arguments.out), Path(arguments.scp)
    report_path = Path(f"{scp}.report")
    for path in (scp, report_path):
        require_writable(path, [arguments.features, arguments.speakers, arguments.model])
    model = IvectorModel.load(arguments.model)
    model = replace(model, options=replace(model.options, **given(arguments, IvectorOptions)))
    report = RunReport("utterances")
    units = read_units(arguments, report)
    targets: dict[Path, str] = {}
    for unit in units:
        for name in [one.name for one in unit.utterances] if arguments.online else [unit.name]:
            other = targets.setdefault(target_path(f"{out}", name), name)
            if other != name:
                raise ConfigError(f"names {other!r} and {name!r}: the same file; expected different names")
    with held(out / "ivector.lock") as mine:
        if not mine:
            raise ConfigError(f"{out}: in use by {holder(out / 'ivector.lock')}; expected a directory of its own")
        check_directories(targets, model)
        since = begin_directory(out, fingerprint_of(model, units, arguments))
        found, total = {}, sum(len(unit.utterances) for unit in units)
        settings = (model, f"{out}", arguments.online, since)
        with progress_display("ivector extract", runner=runner) as show:
            for unit, results in runner.each(extract_units, units, *settings, seconds=guessed_seconds):
                if isinstance(results, Exception):
                    results = [Extracted(one.name, reason=one_line(results)) for one in unit.utterances]
                found |= {one.name: one for one in results}
                show(len(found), total)
    return write_results(arguments, found, report, report_path)


def guessed_seconds(unit) -> float:
    """Return about how long the utterances of a unit are."""
    return GUESSED_SECONDS * len(unit.utterances)


def write_results(arguments: argparse.Namespace, found: dict, report: RunReport, report_path: Path) -> int:
    """Write the list in the order of the features' list, and the report."""
    from readers.htk.scp import ScpEntry, read_scp, write_scp

    entries = []
    for entry in read_scp(arguments.features):
        one = found.get(entry.key)
        if one is None:
            continue
        if one.reason:
            report.fail(one.name, one.reason)
        else:
            entries.append(ScpEntry(f"{one.name}.ivec", one.path, 0, one.count - 1))
            report.done()
    if entries:
        write_scp(arguments.scp, entries)
    report.write(report_path)
    show_losses(report, report_path, arguments.verbose, arguments.features)
    if report.num_done and report.lost:
        print(
            f"note: {arguments.scp} lacks the utterances that were lost; leave them out of the other streams of a "
            "reader, too",
            file=sys.stderr,
        )
    print(report.summary())
    return report.exit_status


def begin_directory(out: Path, fingerprint: str) -> int:
    """Return the time from which on files in the directory are those of this model and these options.

    The record of the directory contains the fingerprint of what the files depend on besides the features.  It is
    written again when this changes.
    """
    from readers.common.files import atomic_write

    path = out / RECORD
    try:
        known = path.read_text(encoding="utf-8").strip() == fingerprint
    except (OSError, ValueError):
        known = False
    if not known:
        with atomic_write(path, "w") as file:
            file.write(f"{fingerprint}\n")
    return path.stat().st_mtime_ns


def fingerprint_of(model, units: list, arguments: argparse.Namespace) -> str:
    """Return a checksum of what the files of i-vectors depend on, besides the features."""
    import hashlib

    found = hashlib.sha256(model.as_bytes() + (b"online" if arguments.online else b"offline"))
    if arguments.speakers or arguments.speaker_pattern:
        found.update(repr(units).encode())
    return found.hexdigest()


def read_units(arguments: argparse.Namespace, report: RunReport) -> list:
    """Return the utterances of the list, those of a speaker together if speakers are given.

    Utterances without a speaker go to the report.  Raises FormatError for lists without entries and repeated names.
    """
    from features.ivectors.shards import Unit, Utterance
    from readers.htk.scp import read_scp

    entries = read_scp(arguments.features)
    if not entries:
        raise FormatError(f"{arguments.features}: no entries; expected a feature file on each line")
    find = speaker_finder(arguments)
    seen: dict[str, str] = {}
    found: dict[str, list] = {}
    for entry in entries:
        if seen.setdefault(entry.key, entry.where) != entry.where:
            raise FormatError(f"{entry.where}: '{entry.key}' is already at {seen[entry.key]}; expected each name once")
        speaker, reason = find(entry.key)
        if reason:
            report.fail(entry.key, reason)
        else:
            path = str(Path(entry.path).absolute())
            found.setdefault(speaker, []).append(Utterance(entry.key, path, entry.start, entry.end))
    if not found:
        raise FormatError(f"{arguments.features}: {report.lost[0][0]}: {report.lost[0][2]}; no utterance has a speaker")
    return [Unit(name, tuple(utterances)) for name, utterances in found.items()]


def speaker_finder(arguments: argparse.Namespace):
    """Return a function from the name of an utterance to (speaker, ""), or to ("", reason)."""
    from readers.common.names import compile_expression
    from readers.corpora.directory import read_speakers

    if arguments.speaker_pattern:
        option = f"--speaker-pattern {arguments.speaker_pattern}"
        pattern = compile_expression(arguments.speaker_pattern, "command line: --speaker-pattern")
        if pattern.groups < 1:
            raise ConfigError(f"command line: {option}: no group; expected the speaker in parentheses")

        def match(name: str) -> tuple[str, str]:
            found = pattern.search(name)
            return (found[1], "") if found and found[1] else ("", f"no match of {option}; expected one with a speaker")

        return match
    if not arguments.speakers:
        return lambda name: (name, "")
    speakers = read_speakers(Path(arguments.speakers))

    def look_up(name: str) -> tuple[str, str]:
        directory, slash, last = name.rpartition("/")
        if name in speakers:
            return speakers[name], ""
        if last in speakers:  # a copy such as warp92/NAME, in which the speaker sounds like another one
            return f"{directory}{slash}{speakers[last]}", ""
        return "", f"{arguments.speakers}: no line `{name} SPEAKER`; expected one"

    return look_up
