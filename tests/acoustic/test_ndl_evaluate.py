"""NDL above a network: names, macros, order of creation, special nodes."""

import pytest

from acoustic.ndl import MacroTable, Scope, parse_ndl, shipped_macros
from acoustic.network import Network
from readers.config_syntax import Source

LAYERS = """
features = Input(4, tag=feature)
labels = Input(3, tag=label)
L1 = SBFF(features, 5, 4)
L2 = RBFF(L1, 5, 5)
CE = SMBFF(L2, 3, 5, labels, tag=criteria)
Err = ErrorPrediction(labels, CE.BFF.FF.P, tag=eval)
OutputNodes = (CE.BFF)
"""


def scope(text: str = "", network: Network | None = None, where: str = "net.ndl") -> Scope:
    made = Scope(network or Network(seed=1))
    made.evaluate(Source.from_text(text, where))
    return made


def test_node_names_are_the_dotted_path_of_variables():
    nodes = list(scope(LAYERS).network.nodes)
    assert nodes == [
        *("features", "labels"),
        *("L1.BFF.B", "L1.BFF.W", "L1.BFF.FF.T", "L1.BFF.FF.P", "L1.S"),
        *("L2.BFF.B", "L2.BFF.W", "L2.BFF.FF.T", "L2.BFF.FF.P", "L2.RL"),
        *("CE.BFF.B", "CE.BFF.W", "CE.BFF.FF.T", "CE.BFF.FF.P", "CE.SM", "Err"),
    ]


def test_special_nodes_from_tags_and_arrays():
    assert scope(LAYERS).network.special() == {
        "features": ["features"],
        "labels": ["labels"],
        "criteria": ["CE.SM"],
        "evaluations": ["Err"],
        "outputs": ["CE.BFF.FF.P"],
    }


@pytest.mark.parametrize(
    ("name", "node"),
    [("L1", "L1.S"), ("l1.s", "L1.S"), ("ce.bff", "CE.BFF.FF.P"), ("FEATURES", "features"), ("L1.x", "features")],
)
def test_names_lead_to_nodes_in_any_case(name, node):
    assert scope(LAYERS).find(name).name == node


def test_statements_in_line_use_the_nodes_that_are_there():
    network = scope(LAYERS).network
    edit = Scope(network, MacroTable(shipped_macros()))
    made = edit.evaluate(Source.from_text("HDim = 5\nL3 = SBFF(l2.rl, HDim, HDim)", "edit.mel"), define_macros=False)
    assert [node.name for node in made] == ["L3.BFF.B", "L3.BFF.W", "L3.BFF.FF.T", "L3.BFF.FF.P", "L3.S"]
    assert network["L3.BFF.FF.T"].operands[1] is network["L2.RL"]
    assert edit.find("L3").name == "L3.S"
    assert parse_ndl(Source.from_text("x = Sigmoid(L3.S)", "edit.mel")).statements[0].name == "x"
