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

from decoder.tying.job import TieOptions, tie
from recipes.cli.command import Command, Console


def run(options: TieOptions, console: Console) -> int:
    with console.runner() as runner, console.progress(runner=runner) as progress:
        result = tie(options, runner=runner, progress=progress, log=console.log)
    tied = f"tied: {result.num_triphones} triphones of {result.num_phones} phones, {result.num_senones} senones"
    return console.finish(result.report, options.out / "report", tied, where=options.features)


COMMAND = Command("tie", TieOptions, run, machines="processes")
