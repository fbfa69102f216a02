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

from decoder.gaussians.options import FlatStartOptions
from recipes.cli.command import Command, Console
from recipes.cli.console import next_step


def run(options: FlatStartOptions, console: Console) -> int:
    from decoder.gaussians.job import REPORT, flat_start

    out = options.out
    with console.runner() as runner, console.progress(runner=runner) as progress:
        result = flat_start(options, runner=runner, progress=progress, log=console.log, note=console.note)
    line = ""
    if result.history:
        tie = (
            f"argonaut tie --alignment {out / 'states.mlf'} --state-list {out / 'states.list'} "
            f"--features {options.features} --out DIR"
        )
        line = (
            f"flat start: {result.num_phones} phones, {result.num_gaussians} Gaussians, "
            f"{result.history[-1]['log_likelihood_per_frame']:.2f} per frame{next_step(tie)}"
        )
    return console.finish(result.report, out / REPORT, line, where=options.features)


COMMAND = Command("flatstart", FlatStartOptions, run, machines="threads")
