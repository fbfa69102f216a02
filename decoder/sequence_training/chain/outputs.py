"""The outputs of a network for the chain topology: two for each phone, or for each phone in context by decision trees.

A phone in the chain topology has two HMM states: the first frame, state 2 of the HMM, and all further frames, state 3,
which repeats.  The phone may be left after the first frame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from decoder.sequence_training.chain.phone_lm import BOUNDARY
from readers.errors import GraphError
from readers.htk.frame_labels import read_state_list
from readers.htk.hmm_list import read_hmm_list
from readers.htk.mmf import read_mmf
from readers.htk.trees import DecisionTrees, phone_of, read_trees

FIRST, FURTHER = 2, 3  # HTK's numbers of the two states


@dataclass(eq=False)
class ChainOutputs:
    """The outputs of each phone in its context.

    Parameters
    ----------
    names : list of str
        Names of the outputs, in order.
    states : mapping of str to (str, str)
        Phone without context -> the outputs of its first and of its further frames.
    trees : DecisionTrees, optional
        For all other phones.
    silence : str
        The context at both ends of an utterance.

    Attributes
    ----------
    phones : list of str
        All phones; in sequences of numbers, phone i is called i + 1.

    Raises
    ------
    GraphError
        For a state that is not an output.
    """

    names: list[str]
    states: Mapping[str, tuple[str, str]]
    trees: DecisionTrees | None = None
    silence: str = "sil"
    phones: list[str] = field(init=False)
    _known: dict[tuple[int, int, int], tuple[int, int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        tied = {} if self.trees is None else self.trees.num_states
        for phone, count in tied.items():
            if count != 2:
                raise GraphError(
                    f"decision trees: {count} states of '{phone}'; expected 2, the first frame and further frames: "
                    "tie the alignment that `argonaut chain` writes"
                )
        self.phones = [*self.states, *(phone for phone in tied if phone not in self.states)]
        self._row = {name: i for i, name in enumerate(self.names)}
        self._number = {phone: i for i, phone in enumerate(self.phones, start=1)}
        for phone, names in self.states.items():
            for name in names:
                self._find(name, phone)
        if self.trees is not None:
            for (phone, _), tree in self.trees.trees.items():
                for name in tree.leaves:
                    self._find(name, phone)

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self.names)

    @property
    def uses_left(self) -> bool:
        """Whether any output depends on the phone before."""
        return any(not pattern.startswith("*") for pattern in self._patterns())

    @property
    def uses_right(self) -> bool:
        """Whether any output depends on the phone after."""
        return any(not pattern.endswith("*") for pattern in self._patterns())

    def number(self, phone: str) -> int:
        """Return the number of a phone, from 1.  Raises GraphError for a phone without outputs."""
        if phone not in self._number:
            raise GraphError(f"phone '{phone}': no outputs; expected one of {len(self.phones)} phones")
        return self._number[phone]

    def outputs(self, left: int, phone: int, right: int) -> tuple[int, int]:
        """Return the outputs of the first and of the further frames of a phone.

        Parameters
        ----------
        left, phone, right : int
            Numbers of phones; 0 for the ends of the utterance.

        Returns
        -------
        (int, int)
        """
        key = (left, phone, right)
        if key not in self._known:
            name = self.phones[phone - 1]
            names: Sequence[str]
            if name in self.states:
                names = self.states[name]
            else:
                assert self.trees is not None  # every phone has states or trees
                before, after = (self.silence if p == BOUNDARY else self.phones[p - 1] for p in (left, right))
                names = self.trees.synthesise(f"{before}-{name}+{after}")
            self._known[key] = self._row[names[0]], self._row[names[1]]
        return self._known[key]

    def _patterns(self) -> list[str]:
        if self.trees is None:
            return []
        used = {question for tree in self.trees.trees.values() for question, _, _ in tree.nodes}
        return [pattern for name in used for pattern in self.trees.questions[name].patterns]

    def _find(self, name: str, phone: str) -> int:
        if name not in self._row:
            raise GraphError(f"phone '{phone}': state '{name}' is not an output; expected one of {len(self._row)}")
        return self._row[name]


def monophone_outputs(phones: Sequence[str], silence: str = "sil") -> ChainOutputs:
    """Return two outputs for each phone, `aa_s2` and `aa_s3`.

    Parameters
    ----------
    phones : sequence of str
    silence : str

    Returns
    -------
    ChainOutputs

    Examples
    --------
    >>> monophone_outputs(["sil", "aa"]).names
    ['sil_s2', 'sil_s3', 'aa_s2', 'aa_s3']
    """
    states = {phone: (f"{phone}_s{FIRST}", f"{phone}_s{FURTHER}") for phone in phones}
    return ChainOutputs([name for pair in states.values() for name in pair], states, None, silence)


def read_tied_outputs(directory: str | Path, silence: str = "sil") -> ChainOutputs:
    """Read the outputs of tied models, which `argonaut tie` wrote for an alignment in the chain topology.

    Parameters
    ----------
    directory : str or Path
        With senones.list, hmmdefs, tiedlist and trees.
    silence : str

    Returns
    -------
    ChainOutputs

    Raises
    ------
    FormatError
        For damaged files.
    GraphError
        For models that do not have two states.
    """
    directory = Path(directory)
    models = read_mmf([directory / "hmmdefs"])
    trees = read_trees(directory / "trees")
    states = {}
    for logical, physical in read_hmm_list(directory / "tiedlist").items():
        hmm = models.hmms.get(physical)
        if logical == physical and hmm is not None and trees.num_states.get(phone_of(logical)) is None:
            if len(hmm.states) != 2:
                raise GraphError(
                    f"{directory}: {len(hmm.states)} states of '{logical}'; expected 2, the first frame and further "
                    "frames: tie the alignment that `argonaut chain` writes"
                )
            states[logical] = (models.state_name(hmm, 0), models.state_name(hmm, 1))
    try:
        return ChainOutputs(read_state_list(directory / "senones.list"), states, trees, silence)
    except GraphError as fault:
        raise GraphError(f"{directory}: {fault}") from fault
