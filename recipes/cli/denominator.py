r"""Make lattices for sequence training: what the recogniser could have recognised, and the alignment of the transcript.

worked example, with a trained network, and a graph made with a weak language model, such as a unigram:
  argonaut denominator --features train.scp --model model.dnn --graph weak/graph.dg --lm weak.arpa \
        --words train.words.mlf --dict dict --out lattices
writes to the directory lattices
  lattices.arec  an archive with the lattice and the alignment of each utterance, as HMM states with their frames
  lattices.toc   its table of contents, for denLatTocFile of a reader
  report         utterances that have no lattice, with reasons
and ends with a line such as
  utterances: 948 done, 0 skipped, 0 failed; frames 289163; 61.3 arcs per frame; 21.9 words per second; oracle WER 0.4%;
  reference added to 312
on one line.  `weak` is an output directory of argonaut graph.  A run that was stopped goes on from there.
"""

from decoder.sequence_training.lattices.options import DenominatorOptions
from recipes.cli.command import Command, Console
from recipes.cli.console import show_losses


def run(options: DenominatorOptions, console: Console) -> int:
    from decoder.sequence_training.lattices.job import REPORT, make_lattices

    machines = console.machines
    with console.runner() as runner, console.progress(runner=runner) as progress:
        outcome = make_lattices(
            options, runner=runner if machines.scheduler else None, threads=machines.workers, progress=progress,
            log=console.log, note=console.note,
        )  # fmt: skip
    show_losses(outcome.report, options.out / REPORT, console.verbose, options.features)
    if outcome.report.num_done:
        print(f"{outcome.report.summary()}; {figures(outcome.totals)}")
    return outcome.report.exit_status


def figures(totals: dict[str, int]) -> str:
    frames = max(totals["frames"], 1)
    words = max(totals["words"], 1)
    seconds = max(totals["ticks"] / 1e7, 1e-9)
    return (
        f"frames {totals['frames']}; {totals['arc_frames'] / frames:.1f} arcs per frame; "
        f"{totals['links'] / seconds:.1f} words per second; oracle WER {100 * totals['errors'] / words:.1f}%; "
        f"reference added to {totals['added']}"
    )


COMMAND = Command("denominator", DenominatorOptions, run, machines="threads")
