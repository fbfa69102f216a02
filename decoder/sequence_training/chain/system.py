"""Everything that training with lattice-free MMI needs, in one directory."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decoder.sequence_training.chain.denominator import build_denominator
from decoder.sequence_training.chain.outputs import ChainOutputs
from decoder.sequence_training.chain.phone_lm import PhoneLm
from readers.common.files import write_lines
from readers.htk.hmm_list import write_hmm_list
from readers.htk.hmm_set import Hmm, HmmOptions, HmmSet, TransitionMatrix, single_gaussian_state
from readers.htk.mmf_writer import write_mmf
from readers.htk.trees import write_trees
from readers.minibatches.supervision import DenominatorGraph
from readers.sources.chain import write_denominator, write_numerators
from readers.sources.chain.denominator_file import fingerprint
from readers.sources.chain.numerators import Numerator

HMMS, NAMES, TREES, OUTPUTS = "hmmdefs", "tiedlist", "trees", "senones.list"
DENOMINATOR, NUMERATORS = "denominator", "numerators"


def chain_transitions() -> TransitionMatrix:
    """Return the transition matrix of all phones in the chain topology.

    Returns
    -------
    TransitionMatrix
        State 2, the first frame, goes on to state 3 or leaves; state 3, all further frames, repeats or leaves.
    """
    matrix = np.zeros((4, 4))
    matrix[0, 1] = 1.0
    matrix[1, 2] = matrix[1, 3] = matrix[2, 2] = matrix[2, 3] = 0.5
    return TransitionMatrix(matrix, "T_chain")


def chain_models(outputs: ChainOutputs) -> tuple[HmmSet, dict[str, str]]:
    """Return HMMs of the chain topology, for building decoding graphs.

    Parameters
    ----------
    outputs : ChainOutputs

    Returns
    -------
    models : HmmSet
        Each output is a state with a Gaussian that stands for nothing.  Of phones with trees there is one model, whose
        states are leaves of the trees; all others are made with the trees.
    names : dict of str to str
        Logical -> physical model.
    """
    models = HmmSet(options=HmmOptions((1,), 1, "USER", "NULLD", "DIAGC"))
    transitions = chain_transitions()
    models.macros["t"][transitions.macro or ""] = transitions
    for name in outputs.names:
        models.macros["s"][name] = single_gaussian_state([0.0], [1.0], name)
    pairs: dict[str, tuple[str, ...]] = dict(outputs.states)
    if outputs.trees is not None:
        edge = outputs.silence
        for phone in outputs.trees.num_states:
            model = f"{edge}-{phone}+{edge}"
            pairs[model] = outputs.trees.synthesise(model)
    for model, pair in pairs.items():
        states = tuple(models.macros["s"][name] for name in pair)
        models.macros["h"][model] = Hmm(model, states, transitions)
    return models, {model: model for model in pairs}


@dataclass(frozen=True, eq=False)
class ChainSystem:
    """Outputs, denominator and numerators.

    Attributes
    ----------
    outputs : ChainOutputs
    denominator : DenominatorGraph
    numerators : dict of str to AlignedNumerator or TranscriptNumerator
        By the name of the utterance.
    subsampling : int
        Number of input frames of one output.
    """

    outputs: ChainOutputs
    denominator: DenominatorGraph
    numerators: Mapping[str, Numerator]
    subsampling: int

    @classmethod
    def build(
        cls, model: PhoneLm, outputs: ChainOutputs, numerators: Mapping[str, Numerator], subsampling: int
    ) -> "ChainSystem":
        """Build the denominator of a phone language model.

        Parameters
        ----------
        model : PhoneLm
        outputs : ChainOutputs
        numerators : mapping of str to AlignedNumerator or TranscriptNumerator
        subsampling : int

        Returns
        -------
        ChainSystem
        """
        return cls(outputs, build_denominator(model, outputs), numerators, subsampling)

    def save(self, directory: str | Path) -> None:
        """Write senones.list, hmmdefs, tiedlist, trees, denominator and numerators to a directory.

        Parameters
        ----------
        directory : str or Path
        """
        directory = Path(directory)
        models, names = chain_models(self.outputs)
        write_lines(directory / OUTPUTS, self.outputs.names)
        write_mmf(directory / HMMS, models)
        write_hmm_list(directory / NAMES, names)
        if self.outputs.trees is not None:
            write_trees(directory / TREES, self.outputs.trees)
        else:  # those of an earlier run
            (directory / TREES).unlink(missing_ok=True)
        write_denominator(directory / DENOMINATOR, self.denominator, self.outputs.names)
        metadata = {
            "fingerprint": fingerprint(self.denominator),
            "num_outputs": self.outputs.num_outputs,
            "subsampling": self.subsampling,
        }
        write_numerators(directory / NUMERATORS, self.numerators.items(), metadata)
