"""AN4 (CMU Census): letters, numbers and dates, recorded with a close-talking microphone.

worked example, with the corpus as CMU publishes it in ~/corpora/an4 (directories wav and etc):
  argonaut recipe an4 --data ~/corpora/an4 --out exp/an4
makes alignments by a flat start, unless there is a directory align with those of HTK, and ends with the word error rate
on the test set, with the flat unigram of the corpus and with a language model trained on the transcripts:
  WER 8.9% (test, 130 utterances, 773 words, flat LM)
  WER 4.8% (test, 130 utterances, 773 words, LM trained on the transcripts)

  argonaut recipe an4 --data ~/corpora/an4 --out exp/an4 --network dnn-blstm
adds a bidirectional LSTM on top of the DNN (which is trained first if it does not exist) and decodes with the same
graphs; `--network blstm` trains one directly on the features.

  argonaut recipe an4 --data ~/corpora/an4 --out exp/an4 --system smbr
trains the tied triphones of recipe lvcsr further with sMBR, and for comparison with cross entropy, and ends with the
word error rates of all three; `--system mmi` with MMI.  `--system ivector` trains a network on tied triphones with an
i-vector of each utterance as a second input.  `--system lfmmi` trains a TDNN-F on biphones with lattice-free MMI,
`--system lfmmi-flat` from transcripts alone, without the alignments of the corpus.
"""

from dataclasses import dataclass
from typing import Literal

from readers.config.options import option
from recipes import job
from recipes.an4.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class An4Options(job.RecipeOptions):
    """Options of recipe an4."""

    network: Literal["dnn", "blstm", "dnn-blstm"] = option("dnn", "network to train")
    system: Literal["smbr", "mmi", "ivector", "lfmmi", "lfmmi-flat"] | None = option(
        None,
        "tied triphones, trained further with sMBR or MMI, or with i-vectors; lattice-free MMI from the corpus's "
        "alignments, or from transcripts alone",
    )
    overrides: tuple[str, ...] = job.overrides("of the training to replace, such as AN4_Train=[SGD=[maxEpochs=4]]")

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = self.system is None or self.network == "dnn"
        self.require("system", fine, "is given beside {network}; expected only one of them")


def recipe_of(options: An4Options) -> job.Recipe:
    """Return the stages of the network or the system that the options name."""
    from recipes.an4 import ivectors, systems
    from recipes.an4.lattice_free import run as lattice_free

    if options.system is None:
        return Recipe(options, options.overrides, options.network)
    if options.system in lattice_free.NAMES:
        return lattice_free.Systems(options, options.overrides, options.system)
    if options.system == "ivector":
        return ivectors.compared(options, options.overrides)
    return systems.compared(options, options.overrides, options.system)


RECIPE = An4Options, recipe_of
