"""Distilling HTK model sets: the tables, sp tied to the middle of sil, triphones made by trees."""

import math

import numpy as np
import pytest

from decoder.graph.phone_models import PhoneModels, distil
from decoder.graph.triphone import has_context
from readers.errors import ArgonautError, FormatError, GraphError
from readers.htk.hmm_set import Hmm, HmmSet, TransitionMatrix, left_to_right, single_gaussian_state
from readers.htk.trees import DecisionTree, DecisionTrees, Question


def make_hmm_set():
    """aa by trees in two clusters for state 2, sil with jumps, sp tied to its middle."""
    hmm_set = HmmSet()
    for name in ("aa_s2_1", "aa_s2_2", "aa_s3_1", "aa_s4_1", "sil_s2", "sil_s3", "sil_s4"):
        hmm_set.macros["s"][name] = single_gaussian_state([0.0], [1.0], name)
    hmm_set.macros["t"]["T_aa"] = left_to_right([0.5, 0.6, 0.7], "T_aa")

    def hmm(name, states, transitions):
        parts = tuple(hmm_set.macros["s"][state] for state in states)
        hmm_set.macros["h"][name] = Hmm(name, parts, transitions, f"hmm_set:{len(hmm_set.hmms)}")

    silence = np.array(
        [[0, 1, 0, 0, 0], [0, 0.5, 0.3, 0.2, 0], [0, 0, 0.5, 0.5, 0], [0, 0.1, 0, 0.6, 0.3], [0, 0, 0, 0, 0]]
    )
    hmm("sil", ("sil_s2", "sil_s3", "sil_s4"), TransitionMatrix(silence))
    hmm("sp", ("sil_s3",), left_to_right([0.9], skip=0.7))
    hmm("sil-aa+aa", ("aa_s2_1", "aa_s3_1", "aa_s4_1"), hmm_set.macros["t"]["T_aa"])
    return hmm_set, hmm


QUESTION = Question("L_sil", ("sil-*",))
TREES = DecisionTrees(
    {"L_sil": QUESTION},
    {
        ("aa", 2): DecisionTree((("L_sil", "aa_s2_2", "aa_s2_1"),)),
        ("aa", 3): DecisionTree((), "aa_s3_1"),
        ("aa", 4): DecisionTree((), "aa_s4_1"),
    },
)
NAMES = {"sil": "sil", "sp": "sp", "sil-aa+aa": "sil-aa+aa", "sil-aa+sil": "sil-aa+aa"}


def test_model_set_is_reduced_to_states_transitions_and_silence_topology():
    models = distil(make_hmm_set()[0], NAMES)
    assert models.states == {
        "sil": ("sil_s2", "sil_s3", "sil_s4"),
        "sp": ("sp_s2",),  # scored as the middle of sil, left with a probability of its own
        "sil-aa+aa": ("aa_s2_1", "aa_s3_1", "aa_s4_1"),
        "sil-aa+sil": ("aa_s2_1", "aa_s3_1", "aa_s4_1"),
    }
    assert models.tied == {"sp_s2": "sil_s3"}
    stays = {state: math.exp(pair[0]) for state, pair in models.transitions.items()}
    assert stays == pytest.approx(
        {"sil_s2": 0.5, "sil_s3": 0.5, "sil_s4": 0.6, "sp_s2": 0.9, "aa_s2_1": 0.5, "aa_s3_1": 0.6, "aa_s4_1": 0.7}
    )
    assert all(math.exp(a) + math.exp(b) == pytest.approx(1) for a, b in models.transitions.values())
    probabilities = {model: {(a, b): math.exp(ln) for a, b, ln in ways} for model, ways in models.topology.items()}
    assert probabilities["sp"] == pytest.approx({(0, 1): 0.3, (0, 2): 0.7, (1, 2): 1.0})
    assert probabilities["sil"] == pytest.approx(
        {(0, 1): 1, (1, 2): 0.6, (1, 3): 0.4, (2, 3): 1, (3, 1): 0.25, (3, 4): 0.75}
    )
    assert models.senones["sp_s2"] == "sil_s3"


def test_sp_with_the_transitions_of_its_senone_needs_no_name_of_its_own():
    hmm_set, hmm = make_hmm_set()
    del hmm_set.hmms["sp"]
    hmm("sp", ("sil_s3",), left_to_right([0.5], skip=0.7))
    models = distil(hmm_set, NAMES)
    assert models.states["sp"] == ("sil_s3",)
    assert models.tied == {}


def test_order_of_sil_and_sp_does_not_matter():
    backwards = dict(reversed(NAMES.items()))
    assert distil(make_hmm_set()[0], backwards) == distil(make_hmm_set()[0], NAMES)


def test_trees_make_every_triphone_of_the_phones():
    models = distil(make_hmm_set()[0], NAMES, TREES, ["aa", "sil"])
    assert models.states["aa-aa+sil"] == ("aa_s2_2", "aa_s3_1", "aa_s4_1")
    assert models.states["sil-aa+sil"] == ("aa_s2_1", "aa_s3_1", "aa_s4_1")
    assert {m for m in models.states if "-" in m} == {f"{a}-aa+{b}" for a in ("aa", "sil") for b in ("aa", "sil")}
    assert math.exp(models.transitions["aa_s2_2"][0]) == pytest.approx(0.5)  # from the other models of aa


def test_physical_model_that_is_nowhere_is_named():
    with pytest.raises(GraphError, match="model 'p-q' of 'x-q' is not in the model set; expected its definition"):
        distil(make_hmm_set()[0], {"x-q": "p-q"})
    with pytest.raises(GraphError, match="none for 'q', which model 'x-q' needs"):
        distil(make_hmm_set()[0], {"x-q": "p-q"}, TREES)


def test_leaf_that_the_model_set_lacks_is_named():
    hmm_set = make_hmm_set()[0]
    del hmm_set.macros["s"]["aa_s2_2"]
    with pytest.raises(GraphError, match="leaf 'aa_s2_2' is not a tied state of the model set"):
        distil(hmm_set, NAMES, TREES, ["aa"])


def test_triphone_with_a_skip_is_named_with_its_line():
    hmm_set, hmm = make_hmm_set()
    matrix = left_to_right([0.5, 0.5, 0.5]).matrix.copy()
    matrix[1, 2:4] = 0.25
    hmm("aa-aa+aa", ("aa_s2_1", "aa_s3_1", "aa_s4_1"), TransitionMatrix(matrix))
    with pytest.raises(GraphError, match="hmm_set:3: model 'aa-aa\\+aa' is not left-to-right"):
        distil(hmm_set)


def test_state_that_is_never_left_is_named():
    hmm_set, hmm = make_hmm_set()
    hmm("aa-aa+aa", ("aa_s2_1",), left_to_right([1.0]))
    with pytest.raises(GraphError, match="state 2 of 'aa-aa\\+aa' is never left"):
        distil(hmm_set)


def test_transitions_that_differ_between_models_are_averaged_and_told():
    hmm_set, hmm = make_hmm_set()
    hmm("aa-aa+aa", ("aa_s2_1", "aa_s3_1", "aa_s4_1"), left_to_right([0.7, 0.6, 0.7]))
    lines = []
    models = distil(hmm_set, log=lines.append)
    assert math.exp(models.transitions["aa_s2_1"][0]) == pytest.approx(0.6)
    assert lines == ["transitions of 1 tied states differ between models, the first aa_s2_1: using their mean"]


def test_tables_read_back(tmp_path):
    models = distil(make_hmm_set()[0], NAMES, TREES, ["aa", "sil"])
    models.save(tmp_path / "hmms")
    again = PhoneModels.load(tmp_path / "hmms")
    assert again.states == models.states
    assert again.tied == models.tied
    for name in models.topology:
        assert np.array(again.topology[name]) == pytest.approx(np.array(models.topology[name]), rel=1e-8)
    assert {s: pytest.approx(p, rel=1e-8) for s, p in models.transitions.items()} == again.transitions


def test_tables_of_an_earlier_run_do_not_stay(tmp_path):
    distil(make_hmm_set()[0], NAMES).save(tmp_path)
    PhoneModels({"a": ("a_s2",)}).save(tmp_path)
    assert PhoneModels.load(tmp_path) == PhoneModels({"a": ("a_s2",)})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("topology", "sp 0 1\n", "topology:1: 'sp 0 1'; expected model from to ln_probability"),
        ("topology", "sp 0 1 0\nsp 0 1 0\n", "topology:2: 'sp' from 0 to 1; expected each transition once"),
        ("topology", "sp 1 1 0\n", "from 1 to 1; expected no transition to the same state or to the entry"),
        ("topology", "sp 0 1 -1\n", "transitions of 'sp' from 0 sum to 0.3679; expected 1"),
        ("topology", "sp 0 3 0\n", "topology: a state of 'sp' above its exit; expected 0 to 2"),
        ("topology", "zz 0 1 0\n", "topology: model 'zz' has no states"),
        ("tied", "[a] b\n", r"tied:1: '\[a\] b'; expected \[state\] \[senone\]"),
        ("tied", "[a] [b]\n[a] [c]\n", "tied:2: 'a' is repeated"),
        ("transitions", "[sil_s2] -0.6931472 -0.6931472\n", "transitions: none for sil_s3 of sil, sil_s4 of sil"),
    ],
)
def test_damaged_tables_are_named(tmp_path, name, text, message):
    distil(make_hmm_set()[0], NAMES).save(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(ArgonautError, match=message) as fault:
        PhoneModels.load(tmp_path)
    assert isinstance(fault.value, (FormatError, GraphError))


def test_models_have_context_if_one_of_them_is_a_triphone():
    monophones = {"sil": ("sil_s2",), "a": ("a_s2",)}
    assert not has_context(PhoneModels(monophones))
    assert has_context(PhoneModels(monophones | {"a-b+a": ("b_s2",)}))
    assert has_context(PhoneModels({"sil-a+b": ("a_s2",), "a-b+sil": ("b_s2",)}))
