"""NDLNetworkBuilder: which file, sections and macros make the network, and its initial values."""

import numpy as np
import pytest

from acoustic.actions.base import CommonSettings
from acoustic.actions.train import Train
from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.descriptions.ndl import build_network, ndl_options
from acoustic.training.options import TrainingOptions
from acoustic.training.sgd import train
from readers.config.config import Config
from readers.errors import ArgonautError, ConfigError

SECTIONS = """
load=macros
run=small
macros=[
  Dim=4
  Layer(x, r)
  {
    W=Parameter(r, Dim)
    Z=Sigmoid(Times(W, x))
  }
]
more=[
  Layer(x, r)
  {
    W=Parameter(r, 4)
    Z=Tanh(Times(W, x))
  }
]
small=[
  x=Input(4, tag=feature)
  L1=Layer(x, 2, tag=output)
]
large=[
  x=Input(4, tag=feature)
  L1=Layer(x, 9, tag=output)
]
"""


@pytest.fixture
def files(tmp_path):
    """files(name=text, ...) writes name.ndl of each; returns the directory."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.ndl").write_text(text)
        return tmp_path

    return write


def build(text: str, around: str = "", **options):
    config = Config.from_text(f"{around}\nNDLNetworkBuilder=[\n{text}\n]", "exp.cntk")
    return build_network(config.block("NDLNetworkBuilder"), **options)


def test_the_file_says_what_is_loaded_and_run(files):
    network = build(f"networkDescription={files(net=SECTIONS)}/net.ndl")
    assert network.shapes["L1.Z"].rows == 2
    assert network["L1.Z"].type_name == "Sigmoid"
    assert network.outputs == ["L1.Z"]


def test_the_block_overrides_the_file(files):
    network = build(f"networkDescription={files(net=SECTIONS)}/net.ndl\nload=more\nRun=large")
    assert network.shapes["L1.Z"].rows == 9
    assert network["L1.Z"].type_name == "Tanh"


def test_sections_of_the_configuration_itself():
    network = build(
        "load=macros:others\nrun=small", SECTIONS.partition("run=small")[2].replace("more", "unused") + "others=[]"
    )
    assert network.shapes["L1.Z"].rows == 2


def test_loaded_sections_may_make_nodes_that_the_network_uses(files):
    script = (
        "load=inputs\nrun=net\ninputs=[\nDim=4\nx=Input(Dim, tag=feature)\nhalf=Const(0.5)\nscaled=Scale(half, x)\n]\n"
    )
    network = build(f"networkDescription={files(net=script + 'net=[y=SBFF(scaled, 3, dim)]')}/net.ndl")
    assert network["y.BFF.FF.T"].operands[1].name == "scaled"
    assert network.features == ["x"]


def test_constants_that_are_loaded_may_stand_for_each_other_but_not_in_a_circle(files):
    network = build("load=c\nrun=r", "c=[a=b;b=4;M(r)=Parameter(r, A)]\nr=[W=M(3)]")
    assert network["W.M"].value.shape == (3, 4)
    with pytest.raises(
        ConfigError, match=r"exp.cntk:1: [ab] refers to itself; expected a value at the end of the references"
    ):
        build("load=c\nrun=r", "c=[a=b;b=a];r=[W=Parameter(a)]")


def test_the_files_of_ndl_macros_make_no_nodes(files):
    folder = files(net=SECTIONS, nodes="x=Input(2)")
    with pytest.raises(ConfigError, match=r"nodes.ndl:1: x = Input\(2\) among macros; expected macros and constants"):
        build(f"networkDescription={folder}/net.ndl;ndlMacros={folder}/nodes.ndl")


def test_references_are_those_of_the_block(files):
    script = "x=Input($Dim$, tag=feature)\nL$New$=Sigmoid(x)"
    network = build(f"networkDescription={files(net=script)}/net.ndl\n", "Dim=7;New=3")
    assert network.shapes["L3"].rows == 7


def test_macro_files_are_looked_up_further_out_and_several(files):
    folder = files(
        one="A(x)=Sigmoid(x)", two="set=[\nB(x)=Tanh(A(x))\n]", net="x=Input(3, tag=feature)\ny=B(x)\nz=SBFF(x,2,3)"
    )
    network = build(f"networkDescription={folder}/net.ndl", f"ndlMacros={folder}/one.ndl+{folder}/two.ndl")
    assert [network[name].type_name for name in ("y.unnamed1.A", "y.B")] == ["Sigmoid", "Tanh"]
    assert "z.BFF.FF.P" in network.nodes


def test_a_macro_that_a_later_file_repeats_is_that_of_the_later_file(files):
    """As in CNTK, whose recipe for AMI repeats its default macros in each network's file."""
    network = "load=macros\nrun=net\nmacros=[\nA(x)=Tanh(x)\n]\nnet=[\nx=Input(3, tag=feature)\ny=B(x)\n]"
    folder = files(default="A(x)=Sigmoid(x)\nB(x)=Exp(A(x))", net=network)
    block = Config.from_text(f"B=[ndlMacros={folder}/default.ndl; networkDescription={folder}/net.ndl]").block("B")
    built = build_network(block)
    assert built[built["y.B"].operands[0].name].type_name == "Tanh"
    assert ndl_options(block).notes == (f"{folder}/net.ndl:4: macro A replaces that of {folder}/default.ndl:1",)


def test_a_builder_may_hold_the_description_itself():
    text = "run=NDLNetworkBuilder\nNDLNetworkBuilder=[\nx=Input(1)\ny=Plus(x, Constant(1))\nOutputNodes=(y)\n]"
    network = build_network(Config.from_text(text).block("NDLNetworkBuilder"))
    assert network.outputs == ["y"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run=nothing", r"exp.cntk:3: no block nothing=\[...\] in the configuration; expected one with a script"),
        ("", "exp.cntk:2: NDLNetworkBuilder has neither networkDescription nor run; expected networkDescription=FILE"),
        ("networkDescription={}/net.ndl+{}/net.ndl", "expected one file, and the others in ndlMacros"),
        (
            "networkDescription={}/none.ndl",
            "exp.cntk:3: .*none.ndl: No such file or directory; expected",
        ),
        ("networkDescription={}/net.ndl;run=big", "exp.cntk:3: .*net.ndl has no section big; expected one"),
        ("networkDescription={}/net.ndl;run=smal", "did you mean small"),
        ("networkDescription={}/net.ndl;run=small:large", "run names 2 sections; expected one"),
        (
            "networkDescription={}/net.ndl;load=small:macros;run=large",
            "net.ndl:25: L1 is assigned already, at .*net.ndl:21",
        ),
        (
            "networkDescription={}/net.ndl;load=macros:more",
            "net.ndl:13: macro Layer is defined already, at",
        ),
        ("networkDescription={}/plain.ndl", r"plain.ndl:1: no run=, and sections a, b; expected run= with the section"),
        ("networkDescription={}/twice.ndl", "twice.ndl:2: section A is defined already, at .*twice.ndl:1"),
        ("networkDescription={}/net.ndl;ndlMacros={}/none.ndl", "none.ndl: No such file"),
        ("networkDescription={}/net.ndl;randomSeedOffset=-1", "randomSeedOffset is -1; expected at least 0"),
        ("networkDescription={}/net.ndl;seed=1", "NDLNetworkBuilder.seed is not known here"),
    ],
)
def test_faults_name_the_place(files, text, message):
    folder = files(net=SECTIONS, plain="a=[x=Input(2)]\nb=[x=Input(2)]", twice="a=[]\nA=[]")
    with pytest.raises(ConfigError, match=message):
        build(text.replace("{}", str(folder)))


def test_own_macros_take_the_place_of_those_of_the_program(files):
    script = "x=Input(3, tag=feature)\nFF(a,b,c)=Plus(a, b)\ny=SBFF(x, 2, 3)\nSBFF(x, r, c)=Tanh(x)"
    network = build(f"networkDescription={files(net=script)}/net.ndl")
    assert network["y.SBFF"].type_name == "Tanh"
    # The program's BFF keeps its own FF.
    layer = build(f"networkDescription={files(net=script.rpartition(chr(10))[0])}/net.ndl")
    assert layer["y.BFF.FF.T"].type_name == "Times"


def test_dump_file_lists_the_nodes(files, tmp_path):
    build(f"networkDescription={files(net=SECTIONS)}/net.ndl\ndumpFileName={tmp_path}/dump.txt")
    assert "L1.Z = Sigmoid(L1.unnamed1) [2x*]" in (tmp_path / "dump.txt").read_text()


# The numbers

SIMPLE = SimpleNetworkOptions(
    layer_sizes=(2, 5, 4, 2), eval_criterion="ErrorPrediction", normalise_features=True, with_prior=True
)
# In the simple builder's order of creation.
SAME = """
features=Input(2, tag=feature)
norm=MeanVarNorm(features)
L1=SBFF(norm, 5, 2)
L2=SBFF(L1, 4, 5)
top=BFF(L2, 2, 4)
labels=Input(2, tag=label)
posterior=Softmax(top)
CE=CrossEntropyWithSoftmax(labels, top, tag=criterion)
Err=ErrorPrediction(labels, top, tag=evaluation)
Scaled=Minus(top, LogPrior(labels), tag=output)
"""


@pytest.mark.slow
def test_a_description_trains_to_the_weights_of_the_simple_builder(files, tmp_path, ring_reader):
    simple = build_simple_network(SIMPLE, seed=5)
    described = build(f"networkDescription={files(net=SAME)}/net.ndl", seed=5)
    options = TrainingOptions(max_epochs=2, learning_rates_per_minibatch=(0.5,), seed=5)
    for name, network in (("simple", simple), ("described", described)):
        train(network, ring_reader(), options, model_path=tmp_path / name)
    weights = [{node.value.tobytes() for node in network.parameters()} for network in (simple, described)]
    assert weights[0] == weights[1]
    assert len(weights[0]) == 6


def test_seed_and_offset_decide_the_values(files):
    text = f"networkDescription={files(net=SAME)}/net.ndl"
    values = [
        build(f"{text}\nrandomSeedOffset={offset}", seed=seed)["L1.BFF.W"].value
        for seed, offset in ((1, 0), (1, 2), (3, 0))
    ]
    assert not np.array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[1], values[2])


def test_values_follow_the_order_of_statements_whatever_is_used_first(files):
    forward = "x=Input(3, tag=feature)\ny=Plus(Times(V, x), Times(W, x))\nW=Parameter(4, 3)\nV=Parameter(4, 3)"
    ordered = "x=Input(3, tag=feature)\nW=Parameter(4, 3)\nV=Parameter(4, 3)\ny=Plus(Times(V, x), Times(W, x))"
    networks = [
        build(f"networkDescription={files(**{name: text})}/{name}.ndl")
        for name, text in (("forward", forward), ("ordered", ordered))
    ]
    for name in "WV":
        np.testing.assert_array_equal(*(network[name].value for network in networks))


def test_values_from_a_file(files, tmp_path):
    (tmp_path / "w.txt").write_text("1 2 3\n\n4 5 6\n")
    script = 'File="{0}"\nW=Parameter(2, 3, init=fromFile, initFromFilePath=File)'
    network = build(f"networkDescription={files(net=script.format(tmp_path / 'w.txt'))}/net.ndl")
    np.testing.assert_array_equal(network["W"].value, [[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ArgonautError, match=r"net.ndl:2: node 'W' .*none.txt.*; expected a readable file"):
        build(f"networkDescription={files(net=script.format(tmp_path / 'none.txt'))}/net.ndl")


# The action

ACTION = """
SGD=[modelPath={0}/m
maxEpochs=1
learningRatesPerMB=0.1]
reader=[readerType=HTKMLFReader]
"""


@pytest.mark.parametrize(
    ("builders", "expected"),
    [
        ("NDLNetworkBuilder=[networkDescription={0}/net.ndl]", "norm.xMean"),
        ("SimpleNetworkBuilder=[layerSizes=2:3:2]", "W0*features"),
        ("SimpleNetworkBuilder=[layerSizes=2:3:2]\nBrainScriptNetworkBuilder=[]", "W0*features"),
    ],
)
def test_action_train_takes_the_builder_that_is_there(files, builders, expected):
    folder = files(net=SAME)
    config = Config.from_text((ACTION + builders).replace("{0}", str(folder)), "exp.cntk")
    assert expected in Train(config, CommonSettings()).network().nodes
    inner = Config.from_text("SimpleNetworkBuilder=[layerSizes=2:9:2]", "inner.cntk", parent=config)
    assert Train(inner, CommonSettings()).network().shapes["H1"].rows == 9


def test_action_train_finds_faults_of_the_description_before_it_runs(files):
    folder = files(net=SAME.replace("L2=SBFF(L1, 4, 5)", "L2=SBFF(L1, 4, 6)"))
    text = (ACTION + "NDLNetworkBuilder=[networkDescription={0}/net.ndl]").replace("{0}", str(folder))
    with pytest.raises(ArgonautError, match=r"SBFF called at .*net.ndl:5\): node 'L2.BFF.FF.T' \(Times\)"):
        Train(Config.from_text(text, "exp.cntk"), CommonSettings())


@pytest.mark.parametrize(
    ("builders", "message"),
    [
        ("BrainScriptNetworkBuilder=[]", "exp.cntk:6: BrainScriptNetworkBuilder is not built; expected Simple"),
        ("NDLNetworkBuilder=[];SimpleNetworkBuilder=[]", "SimpleNetworkBuilder and NDLNetworkBuilder in one block"),
        ("", "SimpleNetworkBuilder is not set"),
    ],
)
def test_action_train_refuses_other_builders(tmp_path, builders, message):
    config = Config.from_text((ACTION + builders).replace("{0}", str(tmp_path)), "exp.cntk")
    with pytest.raises(ConfigError, match=message):
        Train(config, CommonSettings())
