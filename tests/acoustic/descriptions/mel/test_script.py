"""Whole scripts: all or nothing, when descriptions are evaluated, snippets and macros, and scripts made at random."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acoustic.descriptions.mel.parse import parse_script
from acoustic.descriptions.mel.registry import commands
from acoustic.descriptions.mel.script import Editor
from acoustic.descriptions.ndl import MacroTable, shipped_macros
from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model
from readers.config.syntax import Source
from readers.errors import ArgonautError, ConfigError, ModelError


def test_a_script_that_fails_writes_nothing(shop):
    with pytest.raises(ModelError, match=r"edit.mel:4: Remove: nothing: no such node"):
        shop.run("m=LoadModel(a.dnn)\nSaveModel(m, one.dnn)\nDump(m, two.txt)\nRemove(nothing)")
    assert shop.files() == set()


def test_a_fault_in_writing_leaves_nothing_either(shop, monkeypatch):
    from acoustic.descriptions.mel import script as module

    calls = []

    def full_disk(network):
        calls.append(network)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return b"model"

    monkeypatch.setattr(module, "model_bytes", full_disk)
    with pytest.raises(OSError, match="No space"):
        shop.run("m=LoadModel(a.dnn)\nSaveModel(m, one.dnn)\nSaveModel(m, two.dnn)\nSaveModel(m, a.dnn)")
    assert shop.files() == set()
    assert load_model("a.dnn")


def test_what_is_saved_is_the_model_at_that_line(shop):
    shop.run("m=LoadModel(a.dnn)\nSaveModel(m, one.dnn)\nRemove(Err)\nSaveModel(m, two.dnn)\nRemove(*)")
    assert "Err" in load_model("one.dnn").nodes
    assert "Err" not in load_model("two.dnn").nodes


def test_a_model_that_the_script_saved_is_loaded_from_it(shop):
    shop.run("m=LoadModel(a.dnn)\nRemove(Err)\nSaveModel(m, one.dnn)\nn=LoadModel(./one.dnn)\nSaveModel(n, two.dnn)")
    assert "Err" not in load_model("two.dnn").nodes
    with pytest.raises(ModelError, match=r"edit.mel:3: LoadModel: one.txt: the script writes text to this file"):
        shop.run("m=LoadModel(a.dnn)\nDump(m, one.txt)\nn=LoadModel(one.txt)")


def test_a_file_saved_twice_holds_what_came_last(shop):
    assert len(shop.run("m=LoadModel(a.dnn)\nSaveModel(m, b.dnn)\nRemove(Err)\nSaveModel(m, b.dnn)")) == 1
    assert "Err" not in load_model("b.dnn").nodes
    assert not [path for path in shop.directory.iterdir() if path.name.endswith(".tmp")]


def test_an_equal_model_is_not_written_again(shop):
    text = "m=LoadModel(a.dnn)\nL4=RBFF(L3.RL, 4, 4)\nSaveModel(m, one.dnn)"
    shop.run(text)

    def written() -> tuple[int, int]:  # not the time of access, which reading changes
        status = (shop.directory / "one.dnn").stat()
        return status.st_ino, status.st_mtime_ns

    before = written()
    assert [str(path) for path in shop.run(text)] == ["one.dnn"]
    assert written() == before
    shop.run(text, seed=1)
    assert written() != before


def test_in_line_description_refers_forward_and_to_nodes_that_are_there(shop, operands):
    edited = shop.edit("b = Sigmoid(a)\nHDim=4\na = Plus(L2.RL, W)\nW=Parameter(HDim)\nSetInput(L3.*.T, 1, b)")
    assert operands(edited, "a") == ["L2.RL", "W"]
    assert operands(edited, "L3.BFF.FF.T") == ["L3.BFF.W", "b"]


def test_in_line_description_waits_for_the_next_command_only(shop):
    with pytest.raises(ConfigError, match=r"edit.mel:2: .*a"):
        shop.edit("b = Sigmoid(a)\nSetInput(L3.*.T, 1, b)\na = Plus(L2.RL, L2.RL)")


def test_in_line_description_goes_to_the_model_that_is_default_there(shop):
    shop.run(
        "m=LoadModel(a.dnn)\nn=LoadModel(b.dnn)\nx = Sigmoid(L1.RL)\nSetDefaultModel(n)\ny = Sigmoid(L1.RL)\n"
        "SaveModel(m, m.dnn)\nSaveModel(n, n.dnn)"
    )
    assert ("x" in load_model("m.dnn").nodes, "y" in load_model("m.dnn").nodes) == (True, False)
    assert ("x" in load_model("n.dnn").nodes, "y" in load_model("n.dnn").nodes) == (False, True)


def test_descriptions_see_the_shapes_that_edits_have_made(shop):
    edited = shop.edit(
        "wide=Parameter(6, 4)\nbias=Parameter(6)\nSetInputs(L2.BFF.FF.T, wide, L1.RL)\nSetInput(L2.*.P, 1, bias)\n"
        "new=RBFF(L2.RL, 4, 6)\nSetInput(L3.*.T, 1, new)"
    )
    assert (edited.shapes["L2.RL"].rows, edited.shapes["new.RL"].rows) == (6, 4)


def test_description_at_the_end_is_checked_too(shop):
    with pytest.raises(ArgonautError, match=r"edit.mel:3"):
        shop.run("m=LoadModel(a.dnn)\nSaveModel(m, x.dnn)\nb = Sigmoid(nowhere)")
    assert shop.files() == set()


def test_symbols_of_a_description_are_arguments_of_commands(shop, operands):
    edited = shop.edit("L4 = SBFF(L3.RL, 4, 4)\nSetInput(CE.*.T, 1, L4)\nSetProperty(L4, output, true)")
    assert operands(edited, "CE.BFF.FF.T") == ["CE.BFF.W", "L4.S"]
    assert edited.outputs == ["CE.BFF.FF.P", "L4.S"]


def test_a_layer_added_again_gets_its_own_initial_values(shop):
    one = shop.edit("L4 = RBFF(L3.RL, 4, 4)")["L4.BFF.W"].value
    two = shop.edit("L5 = RBFF(L3.RL, 4, 4)", seed=1)["L5.BFF.W"].value
    assert not np.array_equal(one, two)
    assert not np.array_equal(one, load_model("a.dnn")["L2.BFF.W"].value)
    np.testing.assert_array_equal(one, shop.edit("L4 = RBFF(L3.RL, 4, 4)")["L4.BFF.W"].value)


def test_a_snippet_makes_a_model_and_its_macros_are_global(shop, operands):
    shop.run(
        """
        new=[
            Norm(x)
            {
                M = Mean(x)
                D = InvStdDev(x)
                Norm = PerDimMeanVarNormalization(x, M, D)
            }
            in = Input(7, tag=feature)
            layer = RBFF(in, 4, 7)
        ]
        m=LoadModel(a.dnn)
        Copy(m.L1.BFF.W, new.layer.BFF.W, copy=value)
        SetDefaultModel(m)
        x = Norm(features)
        SetInput(L1.*.T, 1, x)
        SaveModel(new, new.dnn)
        SaveModel(m, m.dnn)
        """
    )
    new, edited = load_model("new.dnn"), load_model("m.dnn")
    np.testing.assert_array_equal(new["layer.BFF.W"].value, edited["L1.BFF.W"].value)
    assert new.features == ["in"]
    assert operands(edited, "L1.BFF.FF.T") == ["L1.BFF.W", "x.Norm"]


def test_macros_come_from_a_section_that_load_names(shop):
    shop.run(
        """
        load=macros
        edit=grow
        macros=[
            Twice(x) { a=Sigmoid(x); b=Sigmoid(a) }
        ]
        grow=[
            m=LoadModel(a.dnn)
            t=Twice(L3.RL)
            SaveModel(grown.dnn)
        ]
        """
    )
    assert {"t.a", "t.b"} <= set(load_model("grown.dnn").nodes)


def test_a_description_without_a_model_names_its_line(shop):
    with pytest.raises(ModelError, match=r"^edit.mel:2: there is no model; expected m=LoadModel"):
        shop.run("\nx = Input(3)\nSaveModel(x.dnn)")


@pytest.mark.slow
def test_copies_of_copies_end(shop):
    script = "m=LoadModel(a.dnn)\n" + "".join(f"Copy(*, c{k}.*)\n" for k in range(20))
    with pytest.raises(ModelError, match=r"edit.mel:\d+: Copy: \d+ copies among \d+ nodes; expected at most 20000"):
        shop.run(script)


@pytest.mark.parametrize("text", ["x = Sigmoid(L9.RL)", "Sigmoid(L1.RL)", "x = Nothing(L1.RL)", "a b = 3"])
def test_faults_of_descriptions_name_the_line(shop, text):
    with pytest.raises(ArgonautError, match=r"^edit.mel:2: "):
        shop.edit(text)


def test_a_shape_that_does_not_fit_names_the_line_that_connected(shop):
    with pytest.raises(ArgonautError, match=r"edit.mel:4: .*edit.mel:2: node 'L3.BFF.FF.T' \(Times\): .*expected"):
        shop.edit("SetInput(L3.*.T, 1, features)\nRemove(Err)")


# Scripts made at random

NODES = st.sampled_from(
    "L1.* L2.* L3.* L*.W *.T CE.* * L1.RL L2.RL features labels m b m.L1.* b.L2.* b.* CE.BFF.FF.P L9.*".split()
)
TARGETS = st.one_of(NODES, st.sampled_from("X.* Y.* *.T2 new b.X.* m.new".split()))


def calls() -> st.SearchStrategy[str]:
    def of(name: str, *arguments: st.SearchStrategy) -> st.SearchStrategy[str]:
        return st.tuples(*arguments).map(lambda values: f"{name}({', '.join(map(str, values))})")

    prop = st.sampled_from(["output", "feature", "criterion", "needGradient"])
    return st.one_of(
        of("Copy", NODES, TARGETS, st.sampled_from(["copy=value", "copy=all"])),
        of("Rename", NODES, TARGETS),
        of("SetInput", NODES, st.integers(-1, 3), NODES),
        of("CopySubTree", NODES, TARGETS),
        of("Remove", NODES),
        of("SetProperty", NODES, prop, st.booleans()),
    )


def sound(network) -> None:
    """What must hold of a network however it was edited."""
    assert set(network.shapes) == set(network.nodes)
    for name, node in network.nodes.items():
        assert node.name == name
        assert all(operand is None or network.nodes[operand.name] is operand for operand in node.operands)
        if node.is_stored and node.value is not None:
            assert tuple(node.value.shape) == tuple(network.shapes[name])
    for listed in network.special().values():
        assert set(listed) <= set(network.nodes)
        assert len(set(listed)) == len(listed)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(calls(), min_size=1, max_size=8))
def test_any_sequence_of_edits_leaves_a_sound_network_or_raises(shop, lines):
    editor = Editor(MacroTable(shipped_macros()))
    head = ["m=LoadModel(a.dnn)", "b=LoadModel(b.dnn)"]
    script = parse_script(Source.from_text("\n".join([*head, *lines, "SaveModel(m, out.dnn)"]), "edit.mel"))
    with suppress(ArgonautError):
        editor.run(script)
        network = load_model("out.dnn")
        if network.outputs and network.features == ["features"]:
            Engine(network, network.outputs)
    for name in ("m", "b"):
        sound(editor.models[name].network)


NAMES = [name for spec in commands() for name in (spec.name, *spec.aliases)]
PIECES = st.one_of(
    st.sampled_from(
        [*NAMES, *'( ) [ ] { } = , ; . * $ # " \n \\ - + : m L1 L1.RL a.dnn load edit Sigmoid 1 -1 1e9'.split(" ")]
    ),
    st.text(max_size=3),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, max_size=25).map("".join))
def test_garbage_raises_nothing_but_our_own_errors(shop, text):
    with suppress(ArgonautError):
        Editor(MacroTable(shipped_macros())).preview(parse_script(Source.from_text(text, "edit.mel")))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(NAMES), st.lists(st.one_of(TARGETS, st.text(max_size=4), st.just("1")), max_size=4))
def test_calls_with_any_arguments_raise_nothing_but_our_own_errors(shop, name, arguments):
    text = f"m=LoadModel(a.dnn)\n{name}({', '.join(arguments)})\nx={name}({', '.join(arguments)})"
    with suppress(ArgonautError):
        Editor(MacroTable(shipped_macros())).preview(parse_script(Source.from_text(text, "edit.mel")))
