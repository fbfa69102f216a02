"""Phone models of Kaldi's trees: their paths have the pdfs and the costs of Kaldi's topologies."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from decoder.alignment.aligner import Aligner
from decoder.graph.foreign.kaldi_phones import kaldi_phone_models
from decoder.graph.options import GraphOptions
from decoder.graph.transcript import TranscriptGraphs
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.kaldi.hmm.tree import read_tree
from readers.kaldi.objects import KaldiObjects
from readers.kaldi.transition_model import NO_PDF, TopologyState, read_transition_model
from tests.readers.kaldi.models import Writer, answer, put_tree

PHONES = {1: "SIL", 2: "a", 3: "b", 4: "c"}
# Pdf-classes of the first frame and of the self-loop, and transitions: of silence with skips, of b as in chain models.
TOPOLOGIES = {
    1: [(0, 0, {0: 0.5, 1: 0.25, 2: 0.25}), (1, 1, {1: 0.5, 2: 0.5}), (2, 2, {0: 0.25, 2: 0.5, 3: 0.25})],
    2: [(0, 0, {0: 0.75, 1: 0.25}), (1, 1, {1: 0.5, 2: 0.5})],
    3: [(0, 1, {0: 0.5, 1: 0.5})],
    4: [(0, 1, {0: 0.25, 1: 0.5, 2: 0.25}), (2, 2, {2: 1.0})],
}
ROOT = (1, [None, (-1, [0, 1, 2]), (0, {1}, (-1, [3, 4]), (-1, [5, (2, {3, 4}, 6, 4)])), (-1, [7, (0, {2}, 8, 9)]),
            (2, {1, 2}, (-1, [10, 11, 12]), (-1, [10, 13, 12]))])  # fmt: skip
WORDS = [("ab", "ab"), ("a", "a"), ("cab", "cab"), ("bcb", "bcb")]
DICTIONARY = [Pronunciation(word, None, None, tuple(phones)) for word, phones in WORDS]


def pdf(left, phone, right, pdf_class):
    return answer(ROOT, {0: left, 1: phone, 2: right, -1: pdf_class})


def transition_model(root=ROOT):
    """A model with the transition-states of all contexts; its trained probabilities are those of the topologies."""
    writer = Writer(False).token("<TransitionModel>", "<Topology>")
    for phone, states in TOPOLOGIES.items():
        writer.line(f"\n<TopologyEntry> <ForPhones> {phone} </ForPhones>")
        for state, (forward, loop, ways) in enumerate(states):
            texts = " ".join(f"<Transition> {target} {probability}" for target, probability in ways.items())
            writer.line(f"<State> {state} <ForwardPdfClass> {forward} <SelfLoopPdfClass> {loop} {texts} </State>")
        writer.line(f"<State> {len(states)} </State>\n</TopologyEntry>")
    tuples = sorted(
        {
            (phone, state, pdf(left, phone, right, forward), pdf(left, phone, right, loop))
            for phone, states in TOPOLOGIES.items()
            for state, (forward, loop, _) in enumerate(states)
            for left, right in itertools.product(PHONES, PHONES)
        }
    )
    writer.token("</Topology>", "<Tuples>").integer(len(tuples)).integer(*itertools.chain(*tuples))
    logs = [math.log(p) for phone, state, _, _ in tuples for p in TOPOLOGIES[phone][state][2].values()]
    writer.token("</Tuples>", "<LogProbs>").vector([0, *logs]).token("</LogProbs>", "</TransitionModel>")
    return read_transition_model(KaldiObjects("final.mdl", writer.content))


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tree").write_bytes(put_tree(Writer(True), 3, 1, ROOT).content)
    return read_tree(tmp_path / "tree")


def pdfs_of(models):
    """The pdf of each state, by the name of its senone."""
    return models.rows_of({senone: int(senone.rpartition("_")[2]) for senone in models.senones.values()})


def kaldi_paths(left, phone, right, most):
    """Return the least cost of each sequence of pdfs through a phone of Kaldi, of up to so many frames.

    The first frame of a visit of a state is that of the transition that leaves it, as Kaldi's graphs reorder them.
    """
    states = TOPOLOGIES[phone]
    costs = {}
    paths = [(0, (), 0.0)]
    for state, pdfs, cost in paths:  # grows
        if state == len(states):
            costs[pdfs] = min(cost, costs.get(pdfs, math.inf))
            continue
        forward, loop, ways = states[state]
        for count in range(most - len(pdfs) if state in ways else min(1, most - len(pdfs))):
            frames = (pdf(left, phone, right, forward), *[pdf(left, phone, right, loop)] * count)
            staying = cost - count * math.log(ways.get(state, 1.0))
            for target, probability in ways.items():
                if target != state:
                    paths.append((target, (*pdfs, *frames), staying - math.log(probability)))
    return costs


def model_paths(models, rows, name, most):
    """Return the same for a model of ours."""
    names = models.states[name]
    ways = {}
    for source, target, ln in models.topology_of(name):
        ways.setdefault(source, []).append((target, -ln))
    costs = {}
    paths = [(target, (), cost) for target, cost in ways[0]]
    for place, pdfs, cost in paths:  # grows
        if place == len(names) + 1:
            costs[pdfs] = min(cost, costs.get(pdfs, math.inf))
            continue
        stay, forward = models.transitions[names[place - 1]]
        for count in range(1, most - len(pdfs) + 1):
            if count > 1 and stay == -math.inf:
                break
            staying = cost - forward - (count - 1) * (stay if count > 1 else 0.0)
            rest = (*pdfs, *[rows[names[place - 1]]] * count)
            paths += [(target, rest, staying + leaving) for target, leaving in ways[place]]
    return costs


def test_paths_of_models_cost_what_they_cost_in_kaldi(tree):
    models = kaldi_phone_models(tree, transition_model(), PHONES, DICTIONARY, "SIL", "tree")
    rows = pdfs_of(models)
    number = {name: phone for phone, name in PHONES.items()}
    assert {"SIL", "a-b+SIL", "SIL-a+b", "c-a+b", "a-b+c", "b-c+b"} <= models.states.keys()
    assert "SIL" not in {name.split("-")[1].split("+")[0] for name in models.states if "-" in name}
    for name in models.states:
        left, _, rest = name.rpartition("-")
        centre, _, right = rest.partition("+")
        context = number[left or "SIL"], number[centre], number[right or "SIL"]
        expected = kaldi_paths(*context, 6)
        costs = model_paths(models, rows, name, 6)
        assert costs.keys() == expected.keys()
        np.testing.assert_allclose([costs[pdfs] for pdfs in expected], list(expected.values()), atol=1e-5)


def test_trees_without_context_give_models_of_phones(tmp_path):
    root = (0, [None, (-1, [0, 1, 2]), (-1, [3, 4]), (-1, [7, 8]), (-1, [10, 11, 12])])
    (tmp_path / "tree").write_bytes(put_tree(Writer(True), 1, 0, root).content)
    models = kaldi_phone_models(read_tree(tmp_path / "tree"), transition_model(), PHONES, DICTIONARY[:2], "SIL", "tree")
    assert list(models.states) == list(PHONES.values())
    assert [pdfs_of(models)[state] for state in models.states["b"]] == [7, 8]


def test_a_phone_without_states_is_left_out(tree):
    model = transition_model()
    model = replace(model, topologies={**model.topologies, 9: (TopologyState(NO_PDF, NO_PDF, ()),)})
    models = kaldi_phone_models(tree, model, {**PHONES, 9: "z"}, DICTIONARY, "SIL", "tree")
    assert models == kaldi_phone_models(tree, transition_model(), PHONES, DICTIONARY, "SIL", "tree")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dictionary": [Pronunciation("x", None, None, ("x", "y"))]}, r"tree: phone x, y of the dictionary"),
        ({"silence": "sil"}, r"tree: phone sil of the dictionary; expected those of the model"),
        ({"silence": "a"}, r"tree: a depends on its neighbours; expected silence that does not"),
        (
            {"phones": {**PHONES, 3: "b-"}, "dictionary": DICTIONARY[1:2]},
            r"tree: phone b-; expected names without -",
        ),
        ({"centre": 3}, r"tree: contexts of 5 phones; expected at most one neighbour on each side"),
        (
            {"root": (1, [None, *[(-1, [0, 1, 2])] * 4])},
            r"tree: pdf \d of state \d of a; expected one of the",
        ),
        ({"root": (1, [None, (-1, [0, 1, 2])])}, r"tree: no pdf of SIL-a\+SIL; expected one of every phone in context"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, changes, message):
    centre = changes.pop("centre", 1)
    root = changes.pop("root", ROOT)
    (tmp_path / "tree").write_bytes(put_tree(Writer(True), centre + 2, centre, root).content)
    settings = {"phones": PHONES, "dictionary": DICTIONARY[:2], "silence": "SIL", "where": "tree"} | changes
    with pytest.raises(GraphError, match=message):
        kaldi_phone_models(read_tree(tmp_path / "tree"), transition_model(), **settings)


def test_alignments_cost_what_the_best_paths_of_kaldi_cost(tree):
    models = kaldi_phone_models(tree, transition_model(), PHONES, DICTIONARY, "SIL", "tree")
    rows = pdfs_of(models)
    graphs = TranscriptGraphs(models, DICTIONARY, rows, GraphOptions(silence="SIL"))
    scores = np.random.default_rng(0).normal(0, 3, (max(rows.values()) + 1, 5)).astype("f4")
    spoken = [kaldi_paths(1, 2, 3, 5), kaldi_paths(2, 3, 1, 5)]
    silent = kaldi_paths(1, 1, 1, 5)
    expected = math.inf
    for before, after in itertools.product(([], [silent]), repeat=2):
        for phones in itertools.product(*before, *spoken, *after):
            pdfs = list(itertools.chain(*phones))
            if len(pdfs) == scores.shape[1]:
                costs = sum(part[choice] for part, choice in zip([*before, *spoken, *after], phones))
                expected = min(expected, costs - scores[pdfs, range(len(pdfs))].astype(float).sum())
    assert Aligner(graphs).align(["ab"], np.asfortranarray(scores)).total == pytest.approx(expected, abs=1e-4)
