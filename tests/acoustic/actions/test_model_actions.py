"""Actions on models: edit, SVD, dumpnode, plot; their options, files and faults."""

import sys
from pathlib import Path

import numpy as np
import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.config.config import Config
from readers.errors import ArgonautError, ConfigError, ModelError


class Here:
    """A directory with the model net, which is the current one."""

    def __init__(self, directory):
        self.directory = directory
        self.log: list[str] = []
        network = build_simple_network(SimpleNetworkOptions((6, 12, 10, 4), with_prior=True, init_scale=8), seed=4)
        network.set_value("Prior", np.full((4, 1), 0.25))
        save_model(network, "net")

    def action(self, name: str, settings: str):
        return make_action(name, Config.from_text(settings, "edit.cntk"), CommonSettings(allows_commands=True))

    def run(self, name: str, settings: str):
        return self.action(name, settings).run(self.log.append, lambda *done, **figures: None)

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def read(self, name: str) -> str:
        return (self.directory / name).read_text()


@pytest.fixture
def here(tmp_path, monkeypatch) -> Here:
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path)


# edit


def test_edit_takes_references_and_macros_from_its_block(here):
    here.write("macros.ndl", "Layer(x, r, c) { W=Parameter(r, c); Layer=Times(W, x) }")
    here.write("add.mel", "m=LoadModel($Old$)\n$Name$=Layer(H1, 3, 12)\nSaveModel(m, $New$)")
    settings = "Old=net\nNew=sub\\new\nName=extra\neditPath=.\\add.mel\nndlMacros=macros.ndl"
    report = here.run("edit", settings)
    assert load_model("sub/new").shapes["extra.Layer"].rows == 3
    assert (report.num_done, here.log) == (1, ["Written: sub/new"])


def test_edit_finds_faults_before_it_starts(here):
    here.write("bad.mel", "m=LoadModel(not yet there)\nCopyy(a, b)")
    with pytest.raises(ConfigError, match=r"^bad.mel:2: unknown command 'Copyy'; did you mean Copy"):
        here.action("edit", "editPath=bad.mel")
    with pytest.raises(ConfigError, match=r"^edit.cntk:1: gone.mel: No such file"):
        here.action("edit", "editPath=gone.mel")
    here.write("good.mel", "m=LoadModel($Model$)")
    with pytest.raises(ConfigError, match=r"^good.mel:1: \$Model\$ is not set"):
        here.action("edit", "editPath=good.mel")
    with pytest.raises(ConfigError, match=r"macros.ndl"):
        here.action("edit", "editPath=good.mel\nModel=net\nndlMacros=macros.ndl")


def test_edit_says_when_nothing_is_saved(here):
    here.write("none.mel", "m=LoadModel(net)\nRemove(H1)")
    assert here.run("edit", "editPath=none.mel").num_done == 0
    assert here.log == ["warning: none.mel: nothing is saved or dumped; expected SaveModel(...)"]


@pytest.mark.parametrize("text", ["", "\n", "# only a remark\n"])
def test_edit_refuses_a_script_without_commands(here, text):
    here.write("empty.mel", text)
    with pytest.raises(ConfigError, match=r"^empty.mel: no commands; expected at least one"):
        here.action("edit", "editPath=empty.mel")


def test_edit_shows_its_network_without_writing(here):
    here.write("cut.mel", "m=LoadModel(net)\nRemove(PosteriorProb)\nSaveModel(m, cut)")
    assert "PosteriorProb" not in here.action("edit", "editPath=cut.mel").network().nodes
    assert not (here.directory / "cut").exists()
    here.write("later.mel", "m=LoadModel(of an earlier command)\nSaveModel(m, cut)")
    with pytest.raises(FileNotFoundError, match="of an earlier command"):
        here.action("edit", "editPath=later.mel").network()


# SVD


def test_svd_by_expression(here):
    report = here.run("SVD", "modelPath=net\noutputmodelPath=small\nNodeNameRegex=W[01]\nKeepRatio=0.3\nAlignedSize=1")
    small = load_model("small")
    assert report.num_done == 2
    assert {"W0_U", "W0_V", "W0_SVD", "W1_U", "W1_V", "W1_SVD", "W2"} <= set(small.nodes)
    assert here.log[0].startswith("W0: 12x6 as rank ")
    assert here.log[-1].startswith("small: ")
    assert load_model("net").nodes.keys() >= {"W0", "W1"}


def test_svd_by_groups_in_a_file(here):
    here.write("groups.txt", "# most of the first layer\nW0   1.0\n\nW[12]\t0.3 # little above\n")
    here.run("svd", "modelPath=net\noutputModelPath=small\nSVDConfig=groups.txt\nAlignedSize=1")
    shapes = load_model("small").shapes
    assert shapes["W0_U"] == (12, 6)
    assert shapes["W1_U"].cols < 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("NodeNameRegex=W0\nKeepRatio=0", "edit.cntk:4: KeepRatio is 0; expected above 0, at most 1"),
        ("NodeNameRegex=W0\nKeepRatio=1.5", "edit.cntk:4: KeepRatio is 1.5"),
        ("NodeNameRegex=W0\nAlignedSize=0", "edit.cntk:4: AlignedSize is 0"),
        ("", "NodeNameRegex is missing"),
        ("SVDConfig=a.txt", "a.txt:2: 3 columns; expected a regular expression and a ratio"),
        ("SVDConfig=b.txt", "b.txt:2: W0 occurs twice"),
        ("SVDConfig=c.txt", "c.txt: no line"),
        ("SVDConfig=d.txt", "d.txt:1: ratio is 'x'; expected a number"),
        ("SVDConfig=gone.txt", "edit.cntk:3: gone.txt: No such file"),
        ("NodeNameRegex=V9", "no matrix is named V9; expected one of the network's: W0, W1, W2"),
    ],
)
def test_svd_faults(here, settings, message):
    for name, text in {"a": "W0 1\nW 0 1", "b": "W0 1\nW0 0.5", "c": "# none", "d": "W0 x"}.items():
        here.write(f"{name}.txt", text)
    with pytest.raises(ArgonautError, match=message):
        here.run("svd", f"modelPath=net\noutputModelPath=small\n{settings}")
    assert not (here.directory / "small").exists()


@pytest.mark.parametrize(
    ("action", "settings"),
    [("svd", "NodeNameRegex=W0"), ("mixUp", "numSubClasses=9"), ("combine", "reader=[]")],
)
def test_a_model_is_not_written_over_the_one_that_is_read(here, action, settings):
    before = (here.directory / "net").read_bytes()
    with pytest.raises(FileExistsError, match="is an input and would be overwritten") as fault:
        here.run(action, f"modelPath=net\noutputModelPath=./net\n{settings}")
    assert Path(fault.value.filename) == Path("net")
    assert (here.directory / "net").read_bytes() == before


# dumpnode


def test_dumpnode_of_all(here):
    report = here.run("dumpnode", "modelPath=net\nprintValues=false")
    lines = here.read("net.__AllNodes__.txt").splitlines()
    assert report.num_done == len(load_model("net").nodes) == sum(bool(line) for line in lines)
    assert lines[:2] == ["", "B0=LearnableParameter()  [12,1]  learningRateMultiplier=1  NeedsGradient=true"]
    assert "H1=Sigmoid(W0*features+B0)" in lines
    assert "Prior=Mean(labels)  [4]  HasComputed=true" in lines


def test_dumpnode_of_some(here):
    here.run("dumpNodes", "modelPath=net\nnodeName=prior\noutputFile=one.txt")
    head, *rows, rule = here.read("one.txt").splitlines()[1:]
    assert (head, rule) == ("Prior=Mean(labels)  [4]  HasComputed=true", "#" * 68)
    assert rows == [" 0.25"] * 4
    here.run("dumpNode", "modelPath=net\nnodeName=W2")
    assert "W2=" in here.read("net.W2.txt")
    here.run("dumpnode", "modelPath=net\nnodeNameRegex=W\\d\noutputFile=w.txt\nprintMetadata=false")
    text = here.read("w.txt")
    assert [line for line in text.splitlines() if line.startswith("W")] == ["W0", "W1", "W2"]
    assert text.count(" ") == 12 * 6 + 10 * 12 + 4 * 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("nodeName=W9", r"node 'W9': not in the network; did you mean W"),
        ("nodeNameRegex=W9", "no node is named W9"),
        ("nodeNameRegex=*W", r"edit.cntk:2: nodeNameRegex: '\*W': nothing to repeat"),
        ("printValues=false\nprintMetadata=false", "printValues is false, and printMetadata, too"),
    ],
)
def test_dumpnode_faults(here, settings, message):
    with pytest.raises(ArgonautError, match=message):
        here.run("dumpnode", f"modelPath=net\n{settings}")


# plot

PICTURE = "import sys; open(sys.argv[2], 'w').write(sys.argv[1])"


def test_plot_writes_the_graph(here):
    here.run("plot", "modelPath=net")
    text = here.read("net.dot")
    assert text.startswith("strict digraph {\nrankdir=BT; ")
    assert '"W0*features" -> "W0*features+B0";' in text
    assert '"H1" [label="H1\\nSigmoid  12×*"' in text
    colours = {name: text.split(f'"{name}" [')[1].split("fillcolor=")[1][:9] for name in ("features", "W0", "H1")}
    assert len(set(colours.values())) == 3
    assert text.count("{") == text.count("}") == 1


def test_plot_renders_with_a_command_and_no_shell(here, monkeypatch):
    here.write("draw.py", PICTURE)
    command = f"{sys.executable} draw.py <IN> '<OUT>'"
    here.run("plot", f'modelPath=net\noutputDOTFile="graphs/a; b.dot"\noutputFile=graphs/p.jpg\nrenderCmd="{command}"')
    assert here.read("graphs/p.jpg") == "graphs/a; b.dot"
    assert here.log[-1] == "Written: graphs/p.jpg"
    assert {path.name for path in (here.directory / "graphs").iterdir()} == {"a; b.dot", "p.jpg"}


@pytest.mark.slow
def test_a_command_of_a_configuration_is_run_where_it_is_allowed_only(here, monkeypatch):
    here.write("draw.py", PICTURE)
    monkeypatch.setattr("shutil.which", lambda name: None)
    settings = f'modelPath=net\noutputFile=p.png\nrenderCmd="{sys.executable} draw.py <IN> <OUT>"'
    action = make_action("plot", Config.from_text(settings, "edit.cntk"), CommonSettings())
    action.run(here.log.append, lambda *done, **figures: None)
    assert "warning: edit.cntk:3: renderCmd is not run without --allow-commands" in here.log
    assert (here.directory / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("script", "message"),
    [("import sys; sys.exit('no such font')", "exit status 1 \\(no such font\\)"), ("pass", "wrote no file")],
)
def test_a_command_that_fails_leaves_the_picture_that_was_there(here, script, message):
    here.write("draw.py", script)
    here.write("p.png", "before")
    with pytest.raises(ConfigError, match=message):
        here.run("plot", f'modelPath=net\noutputFile=p.png\nrenderCmd="{sys.executable} draw.py <IN> <OUT>"')
    assert here.read("p.png") == "before"


@pytest.mark.parametrize(
    ("extension", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("jpg", b"\xff\xd8"), ("pdf", b"%PDF")]
)
def test_matplotlib_draws_where_graphviz_is_not(here, monkeypatch, extension, magic):
    monkeypatch.setattr("shutil.which", lambda name: None)
    command = "d:\\Tools\\graphviz\\bin\\dot.exe -Tjpg <IN> -o<OUT >"  # as the book has it
    here.run("plot", f'modelPath=net\noutputFile=p.{extension}\nrenderCmd="{command}"')
    assert (here.directory / f"p.{extension}").read_bytes().startswith(magic)
    assert (
        here.log[1] == "warning: d:/Tools/graphviz/bin/dot.exe of renderCmd is not installed; matplotlib draws instead"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('renderCmd="dot <IN> <OUT>"', "edit.cntk:2: renderCmd is given without outputFile"),
        ('outputFile=p.png\nrenderCmd="dot <IN>"', "edit.cntk:3: renderCmd is .*; expected a command with <IN> and"),
        ('outputFile=p.png\nrenderCmd="dot \'<OUT>"', "edit.cntk:3: renderCmd is .*No closing quotation"),
        ("outputFile=p.doc", "edit.cntk:2: p.doc: extension doc; expected one of .*png"),
        ("outputFile=p", "edit.cntk:2: p: extension none; expected one of .*png"),
    ],
)
def test_plot_faults(here, monkeypatch, settings, message):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ConfigError, match=message):
        here.action("plot", f"modelPath=net\n{settings}")
    assert not (here.directory / "net.dot").exists()


def test_plot_refuses_what_graphviz_cannot_draw_before_it_starts(here, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}" if name == "dot" else None)
    with pytest.raises(ConfigError, match=r"edit.cntk:2: p.doc: extension doc; expected one of png, svg, "):
        here.action("plot", "modelPath=net\noutputFile=p.doc")
    here.action("plot", 'modelPath=net\noutputFile=p.doc\nrenderCmd="dot <IN> <OUT>"')  # the command may know it


def test_plot_of_a_loop(here, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    network = Network()
    network.add("Input", "x", rows=3)
    network.add_node("PastValue", "past", [None], {"rows": 3})
    network.add("Tanh", "h", network.add("Plus", "sum", "x", "past"))
    network.connect("past", "h")
    save_model(network, "loop")
    here.run("plot", "modelPath=loop\noutputFile=p.svg")
    assert '"h" -> "past" [style=dashed, constraint=false];' in here.read("loop.dot")
    assert '"past" -> "sum";' in here.read("loop.dot")
    assert here.read("p.svg").startswith("<?xml")


@pytest.mark.parametrize("name", ["svd", "dumpnode", "plot"])
def test_a_model_that_is_not_there(here, name):
    settings = "modelPath=gone\noutputModelPath=x\nNodeNameRegex=W0"
    with pytest.raises((OSError, ModelError), match="gone"):
        here.run(name, settings)
