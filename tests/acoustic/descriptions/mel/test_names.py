"""Which nodes a name or pattern means: the rules of the book's 4.2.1.7, models, case, and what is refused."""

import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.descriptions.mel.names import EditedModel, Models
from acoustic.descriptions.ndl import Scope
from acoustic.network import editing
from acoustic.network.network import Network
from readers.config.syntax import Source
from readers.errors import ConfigError, ModelError

LAYER3 = ["L3.BFF.B", "L3.BFF.W", "L3.BFF.FF.T", "L3.BFF.FF.P", "L3.RL"]


def models_of(**networks: Network) -> Models:
    models = Models()
    for name, network in networks.items():
        models.add(EditedModel(name, network, Scope(network)))
    return models


@pytest.fixture
def models(network) -> Models:
    small = Network(seed=1)
    small.add("InputValue", "L3.other", rows=2)
    return models_of(m1=network, m2=small)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("L3.RL", ["L3.RL"]),
        ("l3.rl", ["L3.RL"]),
        ("L3.*", LAYER3),
        ("L3.*.P", ["L3.BFF.FF.P"]),
        ("L*.RL", ["L1.RL", "L2.RL", "L3.RL"]),
        ("*.SM", ["CE.SM"]),
        ("m1.L3.*", LAYER3),
        ("M1.L3.rl", ["L3.RL"]),
        ("m2.L3.*", ["L3.other"]),
        ("m2", ["L3.other"]),
        ("m2*", ["L3.other"]),
        ("m2.*", ["L3.other"]),
    ],
)
def test_a_pattern_means_these_nodes(models, text, names):
    assert sorted(models.nodes(text)[1]) == sorted(names)


@pytest.mark.parametrize("text", ["*", "m1", "m1.*", "M1*"])
def test_all_nodes(models, network, text):
    assert models.nodes(text) == (models["m1"], list(network.nodes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("L4.*", r"^L4.\*: no such node in model m1; did you mean|known"),
        ("l3.*", "no such node in model m1; did you mean L3"),  # before and after the star, case counts
        ("L3.RLL", "no such node in model m1; did you mean L3.RL"),
        ("m3.L3", "no such node in model m1"),
        ("m2.L1.RL", "no such node in model m2"),
        ("L*.*.T", r"more than one \*"),
        ("m1.", "no name"),
        ("L3.R*RL", "no such node"),  # what stands before and after the star does not overlap
    ],
)
def test_what_means_nothing(models, text, message):
    with pytest.raises(ModelError, match=message):
        models.nodes(text)


def test_a_layer_is_not_taken_for_one_whose_name_begins_alike(network):
    names = [name for name in network.nodes if name.startswith("L2.")]
    twentieth = {name: f"L20{name[2:]}" for name in names}
    editing.copy_nodes(network, network, list(twentieth.items()))
    models = models_of(m=network)
    assert sorted(models.nodes("L2.*")[1]) == sorted(names)
    assert models.nodes("L2.*.T")[1] == ["L2.BFF.FF.T"]
    assert models.nodes("L2*.T")[1] == ["L2.BFF.FF.T", "L20.BFF.FF.T"]


def test_names_with_a_star_in_them_are_names():
    models = models_of(W0=build_simple_network(SimpleNetworkOptions((3, 4, 4, 2))))
    assert models.nodes("W0*features")[1] == ["W0*features"]
    assert models.nodes("W1*H1+B1")[1] == ["W1*H1+B1"]
    assert models.nodes("*+B1")[1] == ["W1*H1+B1"]


def test_names_that_differ_in_case_only():
    network = Network(seed=1)
    for name in ("Weight", "weight"):
        network.add("InputValue", name, rows=1)
    models = models_of(m=network)
    assert models.node("weight")[1] == "weight"
    with pytest.raises(ModelError, match="WEIGHT: no such node"):
        models.node("WEIGHT")


def test_a_name_of_the_description_means_the_node_it_made(network):
    models = models_of(m=network)
    models["m"].scope.evaluate(Source.from_text("L4 = RBFF(L3.RL, 4, 4)", "edit.mel"))
    assert models.node("L4")[1] == "L4.RL"
    assert models.node("m.l4")[1] == "L4.RL"


def test_the_default_model_is_the_first_until_one_is_set(network):
    models = models_of(m1=network, m2=Network())
    assert models.default.name == "m1"
    models.set_default("M2")
    assert models.default.name == "m2"
    models.remove("m2")
    with pytest.raises(ModelError, match="there is no model; expected m=LoadModel"):
        _ = models.default
    models.add(EditedModel("m3", Network(), None))
    assert models.default.name == "m3"
    with pytest.raises(ModelError, match="model 'm9': neither loaded nor created; did you mean m3 or m1"):
        models["m9"]
    with pytest.raises(ConfigError, match=r"model 'a\.b'; expected a name of letters"):
        models.add(EditedModel("a.b", Network(), None))


@pytest.mark.parametrize(
    ("source", "target", "pairs"),
    [
        ("L3.*", "L4.*", [(name, f"L4{name[2:]}") for name in LAYER3]),
        ("L3.*.T", "top*", [("L3.BFF.FF.T", "topBFF.FF")]),
        ("L3.RL", "other", [("L3.RL", "other")]),
        ("L3.RL", "ce.sm", [("L3.RL", "CE.SM")]),
        ("L1.RL", "L*.RL", [("L1.RL", "L2.RL"), ("L1.RL", "L3.RL")]),
        ("m2.*", "m1.new.*", [("L3.other", "new.L3.other")]),
    ],
)
def test_pairs_keep_what_the_star_stands_for(models, source, target, pairs):
    assert sorted(models.pairs(source, target)[2]) == sorted(pairs)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("L3.*", "L4", r"L3.\* to L4: expected a \* in both"),
        ("L3.RL", "L9.*", "no such node"),
        ("L3.RL", "a b", "invalid name"),
        ("L3.RL", ".a", "invalid name"),
    ],
)
def test_pairs_that_do_not_go_together(models, source, target, message):
    with pytest.raises(ModelError, match=message):
        models.pairs(source, target)
