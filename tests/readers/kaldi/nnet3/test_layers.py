"""Components of recurrent and convolutional networks: what was written is read, and damage is refused in one line."""

import numpy as np
import pytest

from readers.errors import FormatError
from readers.kaldi.nnet3.nnet import read_nnet_model
from tests.readers.kaldi.layers import attention_network, convolutional_network, lstm_network
from tests.readers.kaldi.models import Writer, put_model


def content_of(network, binary):
    lines, components, context = network
    return put_model(Writer(binary), lines=lines, components=components, context=context).content


LSTM = content_of(lstm_network(0), False).decode()
CONVOLUTION = content_of(convolutional_network(0), False).decode()
ATTENTION = content_of(attention_network(0), False).decode()


@pytest.mark.parametrize("network", [lstm_network(0), convolutional_network(0), attention_network(0)])
def test_both_forms_are_equal(tmp_path, network):
    models = []
    for binary in (True, False):
        path = tmp_path / "final.mdl"
        path.write_bytes(content_of(network, binary))
        models.append(read_nnet_model(path))
    assert models[0].nnet.nodes == models[1].nnet.nodes
    for name, component in models[0].nnet.components.items():
        other = models[1].nnet.components[name]
        assert (component.in_rows, component.out_rows) == (other.in_rows, other.out_rows)
        for label, value in component.fields.items():
            if label == "Model":
                assert value == other.convolution
                assert (component.offsets, component.required_offsets) in (([-1, 0, 1], [-1, 0, 1]), ([-2, 0, 2], [0]))
            elif label != "NumComponents":
                np.testing.assert_allclose(other.fields[label], value, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (CONVOLUTION, "<NumFiltersIn> 1 ", "<NumFiltersIn> 0 ", "0; expected 1 to 1000000"),
        (
            CONVOLUTION,
            "<NumFiltersIn> 1 ",
            "<NumFiltersIn> 3 ",
            "2x9 weights and 2 biases of (2, 27) weights; expected",
        ),
        (CONVOLUTION, "<HeightIn> 5 ", "<Height> 5 ", "'<Height>'; expected <HeightIn>"),
        (CONVOLUTION, "<HeightIn> 5 ", "<HeightIn> 9 ", "cnn1: 5 rows; expected 9, as its component takes"),
        (CONVOLUTION, "<NumFiltersOut> 2 <HeightIn> 5", "<NumFiltersOut> 999999 <HeightIn> 5", "images of more rows;"),
        (CONVOLUTION, "[ -1,-1 -1,0 ", "[ -1,-1 -1 ", "9 words; expected pairs such as -1,0"),
        (CONVOLUTION, "[ -1,-1 -1,0 ", "[ -1,-1 -1,-1 ", "9 offsets; expected rising pairs of frame and height up to"),
        (
            CONVOLUTION,
            "[ -1,-1 -1,0 ",
            "[ -99999,-1 -1,0 ",
            "9 offsets; expected rising pairs of frame and height up to",
        ),
        (CONVOLUTION, "[ -1,-1 -1,0 ", "[ -1,-9999 -1,0 ", "9 offsets among 30003; expected at least one in 100"),
        (CONVOLUTION, "<Offsets> [ -1,-1 -1,0 ", "<Offsets> [ -1,x -1,0 ", "'x'; expected an integer"),
        (
            CONVOLUTION,
            "<RequiredTimeOffsets> [ 0 ]",
            "<RequiredTimeOffsets> [ 1 ]",
            "required offsets [1]; expected some",
        ),
        (CONVOLUTION, "<RequiredTimeOffsets> [ 0 ]", "<RequiredTimeOffsets> [ ]", "required offsets []; expected some"),
        (CONVOLUTION, "<AddLogStddev> F", "<AddLogStddev> T", "a NormalizeComponent: a logarithm of the deviation;"),
        (
            CONVOLUTION,
            "<BlockDim> 7",
            "<BlockDim> 5",
            "a NormalizeComponent: blocks of 5 rows; expected sizes that fit",
        ),
        (CONVOLUTION, "<NumComponents> 3", "<NumComponents> 0", "0; expected 1 to 1000"),
        (
            CONVOLUTION,
            "<NumComponents> 3 <PerElementOffsetComponent>",
            "<NumComponents> 3 <CompositeComponent>",
            "'<Offsets>' in component 'inner component 1', a CompositeComponent; expected its other fields",
        ),
        (
            CONVOLUTION,
            "<SigmoidComponent> <Dim> 6",
            "<SigmoidComponent> <Dim> 5",
            "6 rows before 5; expected sizes that",
        ),
        (CONVOLUTION, "<ColumnMap> [ ", "<ColumnMap> [ 15 ", "a column map of 15 that is no permutation of at"),
        (
            ATTENTION,
            "<NumHeads> 2 ",
            "<NumHeads> 0 ",
            "a RestrictedAttentionComponent: sizes 0 2 3 3 2 1 1 0, key scale",
        ),
        (ATTENTION, "<NumLeftInputsRequired> 1", "<NumLeftInputsRequired> 3", "sizes 2 2 3 3 2 1 3 0, key scale 0.5"),
        (ATTENTION, "<TimeStride> 3", "<TimeStride> 9999", "sizes 2 2 3 9999 2 1 1 0, key scale 0.5; expected sizes"),
        (ATTENTION, "<KeyScale> 0.5", "<KeyScale> 0", "key scale 0; expected sizes that fit"),
        (ATTENTION, "<KeyDim> 2", "<KeyDim> 3", "attention: 22 rows; expected 26, as its component takes"),
        (LSTM, "<UseDropout> T", "<UseDropout> F", "l1.lstm: 13 rows; expected 10, as its component takes"),
        (LSTM, "<SelfRepairProb>", "<SelfRepairPros>", "'<SelfRepairPros>' in component 'l1.lstm', a LstmNonlin"),
        (LSTM, "<OutputDim> 3", "<OutputDim> 0", "a DropoutMaskComponent: 0 rows in, 0 out; expected sizes that fit"),
    ],
)
def test_damage_is_refused_in_one_line(tmp_path, text, old, new, message):
    assert old in text
    path = tmp_path / "final.mdl"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(FormatError) as fault:
        read_nnet_model(path)
    assert f"{fault.value}".startswith(f"{path}:")
    assert message in f"{fault.value}"
    assert "\n" not in f"{fault.value}"


def test_an_lstm_has_three_rows_of_parameters(tmp_path):
    lines, components, context = lstm_network(0)
    kind, put, params, dropout = components["l2.lstm"]
    components["l2.lstm"] = (kind, put, params[:2], dropout)
    path = tmp_path / "final.mdl"
    path.write_bytes(content_of((lines, components, context), True))
    with pytest.raises(FormatError, match=r"'l2\.lstm', a LstmNonlinearityComponent: 2 rows of parameters, not 3;"):
        read_nnet_model(path)
