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

from decoder.gaussians.adaptation.options import FmllrApplyOptions, FmllrTrainOptions
from recipes.cli.command import Command, Console

REPORT = "report"


def run_train(options: FmllrTrainOptions, console: Console) -> int:
    from decoder.gaussians.adaptation.job import train_fmllr

    with console.runner() as runner, console.progress("parts", runner) as progress:
        result = train_fmllr(options, runner=runner, progress=progress, log=console.log)
    line = (
        f"fmllr: {result.dim} values per frame, {result.num_gaussians} Gaussians, "
        f"{result.log_likelihood_per_frame:.2f} per frame, {result.num_speakers} speakers, "
        f"{result.num_transforms} with a transform"
    )
    return console.finish(result.report, options.out / REPORT, line, where=options.features)


def run_apply(options: FmllrApplyOptions, console: Console) -> int:
    from decoder.gaussians.adaptation.job import apply_fmllr

    with console.runner() as runner, console.progress(runner=runner) as progress:
        result = apply_fmllr(options, runner=runner, progress=progress)
    line = f"{options.scp}: {result.dim} values per frame, {result.num_transforms} speakers with a transform"
    return console.finish(result.report, options.out / REPORT, line, where=options.features)


COMMAND = Command(
    "fmllr",
    actions=(
        Command(
            "train", FmllrTrainOptions, run_train, machines="threads",
            help="estimate transforms and Gaussians from aligned utterances",
        ),
        Command("apply", FmllrApplyOptions, run_apply, machines="threads", help="write transformed features"),
    ),
)  # fmt: skip
