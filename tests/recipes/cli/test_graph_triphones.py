"""`argonaut graph` from an HTK model set: both stages, each alone, and tables in place of the model set."""

import itertools
import math

import pytest

from decoder.graph.graph_file import load_graph
from readers.htk.hmm_list import write_hmm_list
from readers.htk.hmm_set import Hmm, HmmSet, TransitionMatrix, left_to_right, single_gaussian_state
from readers.htk.mmf_writer import write_mmf
from readers.htk.trees import DecisionTree, DecisionTrees, Question, write_trees
from readers.language.att import read_acceptor
from readers.tables.hmm_tables import read_cntkmap, read_lookahead, read_state_map, read_transitions, write_state_map
from recipes.cli.main import main

SENONES = ["a_s2_1", "a_s2_2", "b_s2_1", "sil_s2", "sil_s3"]


@pytest.fixture
def task(tmp_path, monkeypatch):
    """A model set that has seen one triphone of each phone, trees for the others, dictionary and language model."""
    monkeypatch.chdir(tmp_path)
    model_set = HmmSet()
    for name in SENONES:
        model_set.macros["s"][name] = single_gaussian_state([0.0], [1.0], name)

    def hmm(name, states, transitions):
        model_set.macros["h"][name] = Hmm(name, tuple(model_set.macros["s"][s] for s in states), transitions)

    hmm("sil", ("sil_s2", "sil_s3"), left_to_right([0.5, 0.6]))
    hmm("sp", ("sil_s3",), left_to_right([0.9], skip=0.7))
    hmm("sil-a+b", ("a_s2_1",), left_to_right([0.25]))
    hmm("a-b+sil", ("b_s2_1",), left_to_right([0.75]))
    write_mmf("mmf", model_set)
    write_hmm_list("list", {"sil": "sil", "sp": "sp", "sil-a+b": "sil-a+b", "a-b+sil": "a-b+sil"})
    trees = {("a", 2): DecisionTree((("L_b", "a_s2_1", "a_s2_2"),)), ("b", 2): DecisionTree((), "b_s2_1")}
    write_trees("trees", DecisionTrees({"L_b": Question("L_b", ("b-*",))}, trees))
    (tmp_path / "senones").write_text("".join(f"{state}\n" for state in reversed(SENONES)))
    (tmp_path / "dict").write_text("<s> [] sil\n</s> [] sil\nX a b sp\nX a b sil\nY b a b a\n")
    (tmp_path / "text").write_text("X Y\nY\nX X Y\n")
    assert main(["lm", "estimate", "--text", "text", "--order", "2", "-o", "lm"]) == 0
    return tmp_path


MODEL_SET = ["--mmf", "mmf", "--hmm-list", "list", "--trees", "trees"]
BUILD = ["--dict", "dict", "--lm", "lm", "--state-list", "senones"]


def test_both_stages_in_one_run(task, capsys):
    assert main(["graph", *MODEL_SET, *BUILD, "--out", "graph"]) == 0
    printed = capsys.readouterr().out
    for line in ("models: 20 logical, 5 different, 5 senones", "compiled", "minimised", "words: 2 done, 0 skipped"):
        assert line in printed
    states = read_state_map("graph/state_map")
    assert states["b-a+sil"] == ("a_s2_2",)
    assert states["a-a+sil"] == ("a_s2_1",)
    rows = {state: len(SENONES) - 1 - i for i, state in enumerate(SENONES)}
    assert read_cntkmap("graph/cntkmap") == rows | {"sp_s2": rows["sil_s3"]}
    graph = load_graph("graph/graph.dg")
    assert set(graph.words) == {"<s>", "</s>", "X", "Y"}
    assert set(graph.models) == {"sil", "sp", "a", "b"}
    assert {"[a_s2_2]", "[sp_s2]", "X"} <= set(read_acceptor("graph/graph.fsa.gz").symbols)


def test_stages_one_after_the_other_give_the_same(task, capsys):
    assert main(["graph", *MODEL_SET, *BUILD, "--out", "graph"]) == 0
    assert main(["graph", *MODEL_SET, "--hmms", "hmms", "--dict", "dict"]) == 0
    assert capsys.readouterr().out.endswith("tables: hmms\n")
    assert main(["graph", "--hmms", "hmms", *BUILD, "--out", "again"]) == 0
    for name in ("graph.dg", "state_map", "transitions", "cntkmap", "lookahead"):
        assert (task / "again" / name).read_bytes() == (task / "graph" / name).read_bytes()


def test_argon_compiles_the_text_to_the_same_image(task, capsys):
    assert main(["graph", *MODEL_SET, *BUILD, "--out", "graph"]) == 0
    arguments = ["-precompile", "-infsm", "graph/graph.fsa.gz", "-lookahead-file", "graph/lookahead"]
    arguments += ["-transition-file", "graph/transitions", "--state-map", "graph/state_map", "--dict", "dict"]
    assert main(["argon", *arguments, "-graph", "again.dg"]) == 0
    one, two = load_graph("graph/graph.dg"), load_graph("again.dg")
    assert sorted(one.words) == sorted(two.words)
    assert sorted(one.arrays.emitting_cost) == sorted(two.arrays.emitting_cost)
    assert (one.num_states, one.num_positions) == (two.num_states, two.num_positions)
    assert dict(zip(one.states, one.state_index)) == dict(zip(two.states, two.state_index))


def test_state_map_and_transitions_stand_in_for_the_model_set(task):
    assert main(["graph", *MODEL_SET, "--hmms", "hmms", "--dict", "dict"]) == 0
    files = ["--states", "hmms/state_map", "--transitions", "hmms/transitions"]
    assert main(["graph", *files, *BUILD[:4], "--out", "graph"]) == 0
    assert main(["graph", "--hmms", "hmms", *BUILD, "--out", "other"]) == 0
    one, two = load_graph("graph/graph.dg"), load_graph("other/graph.dg")
    assert one.num_positions == two.num_positions


def test_trees_and_a_state_map_stand_in_for_the_model_set(task):
    write_state_map("map", {"sil": ("sil_s2", "sil_s3"), "sp": ("sil_s3",)})
    assert main(["graph", "--trees", "trees", "--states", "map", *BUILD, "--out", "graph"]) == 0
    assert not (task / "graph" / "transitions").exists()
    assert set(read_cntkmap("graph/cntkmap")) == set(load_graph("graph/graph.dg").states)
    triphones = {f"{a}-{c}+{b}" for a, b in itertools.product(("sil", "a", "b"), repeat=2) for c in "ab"}
    assert set(read_state_map("graph/state_map")) == {"sil", "sp"} | triphones


def test_transitions_of_an_alignment_replace_those_of_the_model_set(task):
    (task / "mlf").write_text('#!MLF!#\n"u"\n0 400000 sil_s3\n400000 500000 a_s2_1\n.\n')
    assert main(["graph", *MODEL_SET, *BUILD, "--alignment", "mlf", "--out", "graph"]) == 0
    pairs = read_transitions("graph/transitions")
    assert pairs["sp_s2"] == pairs["sil_s3"] != pairs["b_s2_1"]


def test_several_language_models_give_one_lookahead(task, capsys):
    (task / "models").write_text("lm 0.5\nlm 0.5\n")
    one = ["--dict", "dict", "--lm", "lm"]
    assert main(["graph", *MODEL_SET, *one, "--out", "one"]) == 0
    assert main(["graph", *MODEL_SET, *one[:2], "--lm-collection", "models", "--out", "two"]) == 0
    single, double = read_lookahead("one/lookahead"), read_lookahead("two/lookahead")
    assert set(single) == set(double)
    assert all(double[word] <= single[word] for word in single)  # as if all were at their best at once
    assert main(["graph", *MODEL_SET, *one, "--lm-collection", "models", "--out", "two"]) == 2
    assert "--lm is given beside --lm-collection; expected one of them" in capsys.readouterr().err


def test_a_loop_needs_no_language_model(task):
    assert main(["graph", *MODEL_SET, *without(BUILD, "--lm"), "--loop", "--out", "graph"]) == 0
    costs = read_lookahead("graph/lookahead")
    words = set(costs) - {"<s>", "</s>"}
    assert words
    assert {costs[word] for word in words} == {math.floor(math.log(len(words) + 1) * 1024) / 1024}
    assert (task / "graph" / "graph.dg").exists()


def without(arguments, name):
    at = arguments.index(name)
    return arguments[:at] + arguments[at + 2 :]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [*MODEL_SET, *without(BUILD, "--lm"), "--out", "g"],
            "--lm is missing; expected it, --lm-collection, --grammar, or --loop for a loop in which all words "
            "have the same probability, or --hmms for the tables alone",
        ),
        ([*MODEL_SET, *BUILD, "--loop", "--out", "g"], "--lm is given beside --loop; expected one of them"),
        ([*MODEL_SET, *BUILD], "--out is missing; expected a directory for the graph"),
        (
            [*MODEL_SET, *without(BUILD, "--dict"), "--out", "g"],
            "no dictionary; expected one, which a triphone graph needs",
        ),
        ([*without(MODEL_SET, "--trees"), *BUILD, "--out", "g"], "mmf + dict + lm: HMM set: no model for"),
        (["--trees", "trees", *BUILD, "--out", "g"], "--trees is given without --mmf or --states"),
        ([*MODEL_SET, *BUILD, "--short-pause", "tick", "--out", "g"], "short pause: no model 'tick' in the HMM set"),
        ([*MODEL_SET, *BUILD, "--silence", "pau", "--out", "g"], "dictionary entry '<s>': sil; expected silence 'pau'"),
    ],
)
def test_what_is_missing_is_named_on_one_line(task, capsys, arguments, message):
    assert main(["graph", *arguments]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def test_broken_files_are_named_on_one_line(task, capsys):
    (task / "senones").write_text("a_s2_1\nb_s2_1\n")
    assert main(["graph", *MODEL_SET, *BUILD, "--out", "g"]) == 2
    assert "state list: no output for sil_s2, sil_s3, a_s2_2; expected every state" in capsys.readouterr().err
    (task / "list").write_text("sil-a+b x-y+z\n")
    assert main(["graph", *without(MODEL_SET, "--trees"), *BUILD, "--out", "g"]) == 2
    assert "mmf + list: HMM list: model 'x-y+z' of 'sil-a+b' is not in the model set" in capsys.readouterr().err
    (task / "mmf").write_text("~h sil\n")
    assert main(["graph", *MODEL_SET, *BUILD, "--out", "g"]) == 2
    assert "mmf:1: the end of the file; expected <BEGINHMM>" in capsys.readouterr().err


def test_silence_with_ways_back_is_walked_as_the_model_set_says(task):
    from readers.htk.mmf import read_mmf

    model_set = read_mmf("mmf")
    matrix = left_to_right([0.5, 0.5]).matrix.copy()
    matrix[2, 1:] = (0.25, 0.25, 0.5)
    sil = model_set.hmms["sil"]
    model_set.macros["h"]["sil"] = Hmm("sil", sil.states, TransitionMatrix(matrix))
    write_mmf("mmf", model_set)
    assert main(["graph", *MODEL_SET, *BUILD, "--out", "graph"]) == 0
    assert (task / "graph" / "topology").read_text().startswith("sil 0 1 ")
