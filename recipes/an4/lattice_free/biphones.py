"""Biphones for lattice-free MMI, from any alignment: trees of left contexts, numerators, denominator, graphs."""

from dataclasses import replace
from pathlib import Path

from decoder import grammars, tying
from decoder.graph import GraphOptions
from decoder.sequence_training import chain
from decoder.sequence_training.chain.options import ChainStates, PhoneLmOptions
from recipes.stages import call

CONFIG = Path(__file__).parent / "config"  # of a TDNN-F: lfmmi.cntk, with its network in lfmmi.ndl
WINDOW = 5  # frames in the input of the network


def make_biphones(
    alignment: Path, states: ChainStates, features: Path, home: Path, *, trees: tying.TreeOptions, order: int
) -> int:
    """Tie the outputs of biphones and make the graphs of their criterion in `home`/chain.

    alignment: of the training set, in these states, which may be tied.  features: the list of the frames that the trees
    divide.  order: of the phone language model of the denominator.
    """
    phones = home / "phones"
    tied = home / "tied"
    options = chain.ChainOptions(
        alignment=alignment, files=states, phone_lm=PhoneLmOptions(order=order), out=phones
    )  # fmt: skip
    lost = call("chain", options) | call("tie", tying.TieOptions(
        alignment=phones / "states.mlf", files=tying.StateFiles(state_list=phones / "senones.list"),
        features=features, context="left", out=tied, growing=trees,
    ))  # fmt: skip
    return lost | call("chain", replace(options, tied=tied, out=home / "chain"))


def make_graph(
    models: Path, dictionary: Path, lm: Path, out: Path, *, graph: GraphOptions | None = None,
    hmms: Path | None = None,
) -> int:  # fmt: skip
    """Make the decoding graph of a language model.  models: a directory of `argonaut chain`; hmms: for its tables."""
    trees = models / "trees"
    options = grammars.GraphFiles(
        mmf=(models / "hmmdefs",), hmm_list=models / "tiedlist", trees=trees if trees.exists() else None, hmms=hmms,
        dictionary=grammars.GraphDictionary(dict=dictionary), state_list=models / "senones.list",
        graph=graph or GraphOptions(), lm=lm, out=out,
    )  # fmt: skip
    return call("graph", options)
