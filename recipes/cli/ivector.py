r"""Train an extractor of i-vectors, vectors that describe speakers; compute i-vectors; tell speakers apart with them.

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

  argonaut ivector compare test.ivector.scp --speakers speakers --halves --training train.ivector.scp -o test.scores
compares the first half of each speaker's utterances with the second half of each speaker's, and ends with
  equal error rate 1.6% (25 pairs of one speaker, 600 of two); test.scores
--picture draws the errors at every threshold, and --classes counts them for each class of speakers, such as children.
"""

from dataclasses import dataclass
from pathlib import Path

from features.ivectors.comparison.options import IvectorCompareOptions
from features.ivectors.options import IvectorExtractOptions, IvectorTrainOptions
from readers.common.files import require_writable
from readers.config.options import option
from recipes.cli.command import Command, Console
from recipes.cli.console import next_step, show_losses


def run_train(options: IvectorTrainOptions, console: Console) -> int:
    from features.ivectors.job import train_ivectors

    with console.runner() as runner, console.progress(runner=runner) as progress:
        result = train_ivectors(options, runner=runner, progress=progress, log=console.log, note=console.note)
    report = result.report
    show_losses(report, options.report_path, console.verbose, options.features)
    if report.num_done:
        extract = f"argonaut ivector extract {options.output} --features {options.features} --out DIR --scp FILE"
        print(
            f"{options.output}: {result.num_gaussians} Gaussians, {options.training.dim} values, {report.num_done} "
            f"utterances, {result.log_likelihood_per_frame:.2f} per frame{next_step(extract)}"
        )
    return report.exit_status


def run_extract(options: IvectorExtractOptions, console: Console) -> int:
    from features.ivectors.job import extract_ivectors

    with console.runner() as runner, console.progress(runner=runner) as progress:
        report = extract_ivectors(options, runner=runner, progress=progress)
    show_losses(report, options.report_path, console.verbose, options.features)
    if report.num_done and report.lost:
        console.note(
            f"{options.scp} lacks the utterances that were lost; leave them out of the other streams of a reader, too"
        )
    print(report.summary())
    return report.exit_status


@dataclass(frozen=True, kw_only=True)
class CompareCommandOptions(IvectorCompareOptions):
    """Options of the command: those of the job, and a picture."""

    picture: Path | None = option(None, "drawing of the misses over the false alarms", metavar="PNG")

    def __post_init__(self) -> None:
        super().__post_init__()
        is_other = self.picture not in (self.output, self.report_path)
        self.require("picture", is_other, f"is {self.picture}, which has the results; expected another file")


def run_compare(options: CompareCommandOptions, console: Console) -> int:
    from features.ivectors.comparison.job import ALL, compare_ivectors
    from recipes.pictures.detection import draw_detection

    if options.picture is not None:
        inputs = (options.features, options.speakers, options.training, options.trials, options.classes, options.output)
        require_writable(options.picture, inputs)
    result = compare_ivectors(options)
    show_losses(result.report, options.report_path, console.verbose, options.features)
    for name, curve in result.curves.items():
        if name != ALL:
            print(f"{name}: equal error rate {curve.equal_error[0]:.1%}")
    for errors in result.errors:
        classes = " and ".join(dict.fromkeys(errors.classes))
        misses = f"{errors.misses} of {errors.targets} missed, " if errors.targets else ""
        print(f"at the threshold of all, {classes}: {misses}{errors.false_alarms} of {errors.others} false alarms")
    if options.picture is not None:
        draw_detection(result.curves, options.picture)
    rate, _ = result.curves[ALL].equal_error
    pairs = f"{result.num_targets} pairs of one speaker, {result.num_others} of two"
    print(f"equal error rate {rate:.1%} ({pairs}); {options.output}")
    return result.report.exit_status


COMPARE = "score pairs of i-vectors, and count how often they tell speakers apart"
TRAIN, EXTRACT = "train an extractor of i-vectors", "compute i-vectors of utterances or speakers"
COMMAND = Command(
    "ivector",
    actions=(
        Command("train", IvectorTrainOptions, run_train, machines="threads", help=TRAIN),
        Command("extract", IvectorExtractOptions, run_extract, machines="threads", help=EXTRACT),
        Command("compare", CompareCommandOptions, run_compare, help=COMPARE),
    ),
)
