"""AN4 (CMU Census): letters, numbers and dates, recorded with a close-talking microphone.

worked example, with the corpus as CMU publishes it in ~/corpora/an4 (directories wav and etc):
  argonaut recipe an4 --data ~/corpora/an4 --out exp/an4
makes alignments by a flat start, unless there is a directory align with those of HTK, and ends with the word error rate
on the test set, with the flat unigram of the corpus and with a language model trained on the transcripts:
  WER 8.3% (test, 130 utterances, 773 words, flat LM)
  WER 5.0% (test, 130 utterances, 773 words, LM trained on the transcripts)

  argonaut recipe an4 --data ~/corpora/an4 --out exp/an4 --network dnn-blstm
adds a bidirectional LSTM on top of the DNN (which is trained first if it does not exist) and decodes with the same
graphs; `--network blstm` trains one directly on the features.

  argonaut recipe an4 --data ~/corpora/an4 --out exp/an4 --system smbr
trains the tied triphones of recipe lvcsr further with sMBR, and for comparison with cross entropy, and ends with the
word error rates of all three; `--system mmi` with MMI.  `--system ivector` trains a network on tied triphones with an
i-vector of each utterance as a second input.  `--system lfmmi` trains a TDNN-F on biphones with lattice-free MMI,
`--system lfmmi-flat` from transcripts alone, without the alignments of the corpus.
"""

import argparse

from recipes.an4.recipe import NETWORKS, Recipe
from recipes.stages import run_recipe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--network", choices=NETWORKS, default="dnn", help="network to train (default dnn)")
    parser.add_argument(
        "--system",
        choices=("smbr", "mmi", "ivector", "lfmmi", "lfmmi-flat"),
        help="tied triphones, trained further with sMBR or MMI, or with i-vectors; lattice-free MMI from the corpus's "
        "alignments, or from transcripts alone",
    )
    parser.add_argument(
        "--set", dest="overrides", metavar="NAME=VALUE", action="append", default=[],
        help="setting of the training to replace, such as AN4_Train=[SGD=[maxEpochs=4]] (repeatable)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    if arguments.system is not None:
        from recipes.an4 import systems

        return systems.run(arguments)
    return run_recipe(Recipe(arguments), arguments)
