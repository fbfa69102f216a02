"""An invented HTK model set with tied states: 39 phones, decision trees of 2,964 leaves, states, transitions.

The trees ask about ten classes of left and right neighbours; the outer states of a phone distinguish ten classes on one
side and three on the other.  Every leaf is a phone, a state, a class of left and a class of right neighbours.
"""

import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np

from readers.common.files import write_lines
from readers.htk.hmm_list import write_hmm_list
from readers.htk.hmm_set import Hmm, HmmSet, left_to_right, single_gaussian_state
from readers.htk.mmf_writer import write_mmf
from readers.htk.trees import DecisionTree, DecisionTrees, Question, write_trees

VOWELS = "aa ae ah ao aw ay eh er ey ih iy ow oy uh uw".split()
CONSONANTS = "b ch d dh f g hh jh k l m n ng p r s sh t th v w y z zh".split()
PHONES = VOWELS + CONSONANTS
SILENCE, SHORT_PAUSE = "sil", "sp"
SILENT_STATES = ("sil_s2", "sil_s3", "sil_s4")
STATES = ((2, 10, 3), (3, 4, 4), (4, 3, 10))  # HTK's number, classes of left and of right neighbours
SELF_LOOPS = (0.6, 0.7, 0.6)  # self-loop probabilities: 8.3 frames per phone
SILENCE_SELF_LOOP = 0.9
NUM_CLASSES = 10
DIMENSION = 39  # of the Gaussians, whose values are not used


class Senone(NamedTuple):
    """A leaf.  state: HTK's number; the last class of neighbours contains all that are in no other class."""

    phone: str
    state: int
    left: int
    right: int

    @property
    def name(self) -> str:
        return f"{self.phone}_s{self.state}_{self.left}_{self.right}"


def senones() -> list[Senone]:
    return [
        Senone(phone, state, *classes)
        for phone in PHONES
        for state, *counts in STATES
        for classes in itertools.product(*map(range, counts))
    ]


def make_trees(rng: np.random.Generator) -> DecisionTrees:
    """Return trees with random classes of neighbours."""
    group = dict(zip([*PHONES, SILENCE], rng.permutation(np.arange(len(PHONES) + 1) % NUM_CLASSES).tolist()))
    questions = {}
    for number in range(NUM_CLASSES):
        members = [phone for phone, of in group.items() if of == number]
        for side, pattern in (("L", "{}-*"), ("R", "*+{}")):
            questions[f"{side}_{number}"] = Question(f"{side}_{number}", tuple(pattern.format(p) for p in members))
    return DecisionTrees(questions, {(phone, s): _tree(phone, s, *counts) for phone in PHONES for s, *counts in STATES})


def _tree(phone: str, state: int, num_left: int, num_right: int) -> DecisionTree:
    """Return a tree with a node for each class except the last of each side, in a chain."""
    nodes = []

    def grow(sides, known):
        """Index of the subtree's root, or its leaf."""
        if not sides:
            return Senone(phone, state, *known).name
        (side, count), rest = sides[0], sides[1:]
        child = grow(rest, (*known, count - 1))
        for number in reversed(range(count - 1)):
            yes = grow(rest, (*known, number))
            nodes.append((f"{side}_{number}", child, yes))
            child = len(nodes) - 1
        return child

    last = grow([("L", num_left), ("R", num_right)], ())
    assert last == len(nodes) - 1
    turned = [(q, *(last - c if isinstance(c, int) else c for c in children)) for q, *children in reversed(nodes)]
    return DecisionTree(tuple(turned))


def write_donor(directory: Path, rng: np.random.Generator, short_pause: bool = True) -> None:
    """Write directory/mmf, list, trees, and senones.list, the order of a network's outputs.

    The set has a tied state for each leaf, one triphone of each phone, silence, and sp if short_pause.
    """
    trees = make_trees(rng)
    donor = HmmSet()
    names = [*(senone.name for senone in senones()), *SILENT_STATES]
    for name in names:
        donor.macros["s"][name] = single_gaussian_state(np.zeros(DIMENSION), np.ones(DIMENSION), name)
    state = donor.macros["s"].__getitem__
    for phone in PHONES:
        donor.macros["t"][f"T_{phone}"] = left_to_right(SELF_LOOPS, f"T_{phone}")
        name = f"{SILENCE}-{phone}+{SILENCE}"
        donor.hmms[name] = Hmm(name, tuple(map(state, trees.synthesise(name))), donor.macros["t"][f"T_{phone}"])
    donor.hmms[SILENCE] = Hmm(SILENCE, tuple(map(state, SILENT_STATES)), left_to_right([SILENCE_SELF_LOOP] * 3))
    if short_pause:
        middle = (state(SILENT_STATES[1]),)
        donor.hmms[SHORT_PAUSE] = Hmm(SHORT_PAUSE, middle, left_to_right([0.8], skip=0.5))
    directory.mkdir(parents=True, exist_ok=True)
    write_mmf(directory / "mmf", donor)
    write_hmm_list(directory / "list", {name: name for name in donor.hmms})
    write_trees(directory / "trees", trees)
    write_lines(directory / "senones.list", names)
