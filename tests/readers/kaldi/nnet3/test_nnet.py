"""nnet3 networks: nodes, descriptors and components; anything that is not known is refused by name and byte."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import FormatError
from readers.kaldi.nnet3.descriptors import Descriptor, parse_descriptor
from readers.kaldi.nnet3.nnet import is_kaldi_model, read_nnet_model, summary
from tests.readers.kaldi.models import Writer, put_model, put_transitions

BINARY = put_model(Writer(True)).content
TEXT = put_model(Writer(False)).content


def read(path, content):
    path.write_bytes(content)
    return read_nnet_model(path)


def test_both_forms_are_equal(tmp_path):
    models = [read(tmp_path / "final.mdl", content) for content in (BINARY, TEXT)]
    for model in models:
        assert model.context == (6, 4)
        assert model.priors.shape == (0,)
        assert [model.nnet.nodes[name].rows for name in ("input", "lda", "part", "output")] == [3, 11, 3, 6]
        component = model.nnet.components["f2.linear"]
        assert (component.in_rows, component.out_rows, component.offsets) == (4, 2, [-1, 0])
        assert component.fields["AlphaInOut"] == (4.0, 4.0)
        assert model.nnet.components["t1.dropout"].fields["TestMode"] is True
    assert models[0].nnet.nodes == models[1].nnet.nodes
    for name, component in models[0].nnet.components.items():
        for label, value in component.fields.items():
            np.testing.assert_allclose(models[1].nnet.components[name].fields[label], value, rtol=1e-6)


def test_descriptors_are_parsed():
    text = "Append(Offset(a.b, -3), Sum(Scale(-0.5, c), Const(1e0, 7)), Round(iv, 10), ReplaceIndex(iv, t, 0))"
    names = [Descriptor("node", name=name) for name in ("a.b", "c", "iv")]
    assert parse_descriptor(text) == Descriptor(
        "Append",
        (
            Descriptor("Offset", (names[0],), value=-3.0),
            Descriptor("Sum", (Descriptor("Scale", (names[1],), value=-0.5), Descriptor("Const", value=1.0, dim=7))),
            Descriptor("Round", (names[2],), value=10.0),
            Descriptor("ReplaceIndex", (names[2],), "t", 0.0),
        ),
    )
    assert list(parse_descriptor(text).nodes()) == ["a.b", "c", "iv", "iv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'the end' in a descriptor; expected a node or a function"),
        ("Append(a", "'the end' in a descriptor; expected ','"),
        ("Append(a b)", "'b' in a descriptor; expected ','"),
        ("a, b", "',' after the descriptor; expected its end"),
        ("a # b", "' # b'; expected a descriptor"),
        ("Offset(a, 1, 2)", "',' in a descriptor; expected ')'"),
        ("Offset(a, x)", "'x' in a descriptor; expected a number"),
        ("Offset(a, 99999)", "99999 in a descriptor; expected -10000 to 10000"),
        ("Round(a, 0)", "0 in a descriptor; expected 1 to 10000"),
        ("Scale(nan, a)", "expected -1e+30 to 1e+30"),
        ("ReplaceIndex(a, x, 0)", "ReplaceIndex of 'x'; expected t"),
        ("Failover(a, b)", "Failover in a descriptor; expected Append, Sum"),
        ("Switch(a, b)", "Switch in a descriptor; expected Append, Sum"),
        ("Sum(" * 60 + "a" + ")" * 60, "more than 50 descriptors in each other"),
    ],
)
def test_other_descriptors_are_refused(text, message):
    with pytest.raises(ValueError, match="expected") as fault:
        parse_descriptor(text)
    assert message in str(fault.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "<TanhComponent>",
            "<StatisticsPoolingComponent>",
            "component 'tanh' is a StatisticsPoolingComponent; expected",
        ),
        ("<RankIn>", "<RankOf>", "'<RankOf>' in component 't1.affine', a NaturalGradientAffineComponent; expected"),
        ("<StatsVar>", "<StatsMean>", "'<StatsMean>' in component 't1.batchnorm', a BatchNormComponent; expected its"),
        (
            "</NoOpComponent>",
            "</TanhComponent>",
            "'</TanhComponent>' in component 'f2.noop', a NoOpComponent; expected",
        ),
        ("<Epsilon> 0.001 ", "", "component 't1.batchnorm', a BatchNormComponent, without <Epsilon>; expected that"),
        ("<Epsilon> 0.001", "<Epsilon> 0.0", "statistics of 9 frames, epsilon 0; expected sizes that fit"),
        ("<TimeOffsets> [ -1 0 ]", "<TimeOffsets> [ 0 0 ]", "8 columns for offsets [0, 0]; expected sizes that fit"),
        ("<TimeOffsets> [ -1 0 ]", "<TimeOffsets> [ -1 0 1 ]", "8 columns for offsets [-1, 0, 1]; expected sizes"),
        ("<TimeOffsets> [ -1 0 ]", "<TimeOffsets> [  ]", "8 columns for offsets []; expected sizes that fit"),
        ("<BlockDim> 4 <TimePeriod>", "<BlockDim> 4 4 <TimePeriod>", "'4' in component 't1.dropout'"),
        ("<NumComponents> 14", "<NumComponents> 15", "'</Nnet3>'; expected <ComponentName>"),
        ("<NumComponents> 14", "<NumComponents> 13", "'<ComponentName>'; expected </Nnet3>"),
        ("<NumComponents> 14", "<NumComponents> -1", "-1; expected 0 to"),
        ("<ComponentName> tanh", "<ComponentName> last", "component 'last' again; expected each name once"),
        ("dim=3\n", "dim=x\n", "'x' rows; expected 1 to 1000000"),
        ("dim=3\n", "\n", "'input-node name=input'; expected input-node, component-node"),
        ("input-node name=input", "input-knot name=input", "expected input-node, component-node"),
        ("component=lda ", "component=lad ", "lda: component 'lad' is missing; expected one of the file"),
        ("input=lda\n", "input=input\n", "t1.affine: 3 rows; expected 11, as its component takes"),
        ("input=t1.dropout\n", "input=f2.noop\n", "a loop f2."),
        ("input=lda\n", "input=lad\n", "node 'lad' is missing; expected an input, a component or a range of rows"),
        ("input=lda\n", "input=output\n", "node 'output' is missing; expected an input, a component or a range of"),
        ("Sum(Scale(0.66, t1.dropout)", "Sum(Scale(0.66, input)", "a Sum of 3 and 4 rows; expected equal numbers"),
        ("dim-offset=1", "dim-offset=2", "part: rows up to 5; expected at most 4"),
        ("name=tanh component", "name=last component", "node 'last' again; expected each name once"),
        ("Offset(input, -1)", "Offset(input, -1.5)", "'-1.5' in a descriptor; expected a number"),
        ("<Nnet3> \n", "<Nnet3> x\n", "text after <Nnet3>; expected the end of the line"),
        ("<Nnet3> \n", "<Nnet2> \n", "'<Nnet2>'; expected <Nnet3>"),
        ("<RightContext>", "<Right>", "'<Right>'; expected <RightContext>"),
        ("<LeftContext> 6", "<LeftContext> -6", "-6; expected 0 to"),
        ("<Priors>  [  ]", "<Priors>  [ 0.5 0.5 ]", "2 priors; expected none, or 6, the rows of the output"),
        ("<Priors>  [  ]", "<Priors>  [ 0 1 1 1 1 1 ]", "a prior that is not positive; expected probabilities"),
        ("<Priors>  [  ]", "<Priors>  [  ] more", "b' more\\n'; expected the end of the file"),
        ("<Tuples> 3 1 0 0 1", "<Tuples> 3 1 0 0 77", "6 rows of the output; expected 78, as transition-ids use"),
    ],
)
def test_damaged_models_are_refused_in_one_line(tmp_path, old, new, message):
    assert old in TEXT.decode()
    with pytest.raises(FormatError) as fault:
        read(tmp_path / "final.mdl", TEXT.decode().replace(old, new, 1).encode())
    text = str(fault.value)
    assert text.startswith(f"{tmp_path / 'final.mdl'}:")
    assert message in text
    assert "\n" not in text


def test_biases_of_another_length_are_refused(tmp_path):
    damaged = BINARY.replace(b"<BiasParams> FV \4\0\0\0\0", b"<BiasParams> FV \4\1\0\0\0\0\0\0\0", 1)
    with pytest.raises(
        FormatError, match=r"component 'f2.linear', a TdnnComponent: 1 biases of 2 rows; expected sizes"
    ):
        read(tmp_path / "final.mdl", damaged)


@settings(max_examples=20, deadline=None)
@given(st.booleans(), st.data())
def test_damage_is_refused_or_harmless(tmp_path_factory, binary, data):
    content = bytearray(BINARY if binary else TEXT)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["byte", "cut", "drop"])):
            case "byte":
                content[at] = data.draw(st.sampled_from([0, 1, 4, 8, 32, 48, 57, 70, 127, 255]))
            case "cut":
                del content[max(at, 1) :]
            case "drop":
                del content[at : at + data.draw(st.integers(1, 9))]
        content = content or bytearray(b" ")
    with contextlib.suppress(FormatError):
        read(tmp_path_factory.getbasetemp() / "fuzzed.mdl", bytes(content))


def test_a_model_is_summed_up(tmp_path):
    path = tmp_path / "final.mdl"
    path.write_bytes(BINARY)
    (tmp_path / "frame_subsampling_factor").write_text("3\n")
    assert is_kaldi_model(path)
    figures = dict(summary(path))
    assert (figures["phones"], figures["transition-ids"], figures["pdfs"]) == (3, 6, 6)
    assert figures["inputs"] == "ivector 2, input 3"
    assert figures["outputs"] == "output 6, output-xent 6"
    assert figures["context"] == "6 frames before, 4 after"
    assert figures["subsampling"] == "3 frames"
    assert "2 Tdnn, 1 NoOp" in figures["components"]


def test_the_transitions_of_a_model_of_gaussians_are_summed_up(tmp_path):
    path = tmp_path / "final.mdl"
    path.write_bytes(put_transitions(Writer(True)).token("<SGMM>").content)
    assert dict(summary(path))["scores"] == "SGMM"
    path.write_bytes(Writer(True).token("<Nnet3>").content)
    assert not is_kaldi_model(path)
