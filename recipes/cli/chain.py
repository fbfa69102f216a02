r"""Make what training with lattice-free MMI needs: denominator and numerator graphs, and models for decoding.

worked example, with AN4's alignments:
  argonaut chain --alignment states.mlf --state-list states.list --out exp/chain
writes to exp/chain
  senones.list  names of the network's outputs: two for each phone, its first frame and its further frames
  denominator   the denominator graph: a phone language model of the transcripts, with these outputs
  numerators    what each utterance's alignment allows; phones may begin or end 5 frames earlier or later
  states.mlf    the alignment in these outputs, for `tie` and for labels
  hmmdefs       HMMs of the outputs as an MMF, for `graph`; tiedlist has their names
  report        utterances without a numerator, with the reasons
and ends with
  chain: 948 numerators, 88 outputs, denominator of 951 states and 3798 arcs
Then train with the reader block
  chain=[denominator=exp/chain/denominator;numerators=exp/chain/numerators]
and decode with the graph of
  argonaut graph --mmf exp/chain/hmmdefs --hmm-list exp/chain/tiedlist --state-list exp/chain/senones.list ...

Outputs of phones in context: tie the states of exp/chain/states.mlf, then make everything again with these trees:
  argonaut tie --alignment exp/chain/states.mlf --state-list exp/chain/senones.list --features train.scp \
               --context left --out exp/tied
  argonaut chain --alignment states.mlf --state-list states.list --tied exp/tied --out exp/biphones
which also writes exp/biphones/trees, for `graph --trees`.

Without an alignment (flat start), from transcripts and a dictionary:
  argonaut chain --words words.mlf --dict words.dict --features train.scp --out exp/flat
Numerators then allow all pronunciations, silences and alignments, and the reader must keep utterances whole.
"""

from decoder.sequence_training.chain.options import ChainOptions
from recipes.cli.command import Command, Console


def run(options: ChainOptions, console: Console) -> int:
    from decoder.sequence_training.chain.job import make_chain

    with console.progress() as progress:
        result = make_chain(options, progress=progress, log=console.log, note=console.note)
    lines = []
    if result.system:
        graph = result.system.denominator
        numerators = result.system.numerators
        size = f"denominator of {graph.num_states} states and {len(graph.output)} arcs"
        lines = [f"chain: {len(numerators)} numerators, {graph.num_outputs} outputs, {size}"]
    return console.finish(result.report, options.out / "report", *lines, where=options.alignment or options.words)


COMMAND = Command("chain", ChainOptions, run)
