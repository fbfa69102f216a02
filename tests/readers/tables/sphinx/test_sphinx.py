"""The files of Sphinx's acoustic models, written by the tests, and of pocketsphinx's model where it is installed."""

import contextlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import FormatError
from readers.tables.sphinx import (
    dumped_weights,
    read_definition,
    read_feature_parameters,
    read_gaussians,
    read_mixture_weights,
    read_sendump,
    read_transitions,
)
from tests.readers.tables.sphinx import writer

MODEL = (
    ["A", "B", "SIL"],
    {"SIL"},
    [("A", "B", "SIL", "b"), ("A", "B", "A", "i"), ("B", "SIL", "SIL", "s")],
    [0, 1, 2, 0, 0, 1],
    [[0, 1], [2, 3], [4, 5], [6, 1], [6, 7], [2, 3]],
)
STREAMS = [np.arange(12, dtype=np.float32).reshape(2, 3, 2), np.arange(100, 106, dtype=np.float32).reshape(2, 3, 1)]
CODES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
COUNTS = np.array([[[3, 1, 0], [0, 4, 12]]], float)


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "file"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    "content", [writer.text_definition(*MODEL), writer.binary_definition(*MODEL), writer.binary_definition(*MODEL, ">")]
)
def test_definition_is_read_in_every_form(content, written):
    definition = read_definition(written(content))
    assert definition.phones == ("A", "B", "SIL")
    assert definition.fillers == {"SIL"}
    assert definition.triphones.tolist() == [[0, 1, 2, 1], [0, 1, 0, 0], [1, 2, 2, 3]]
    assert definition.matrices.tolist() == MODEL[3]
    assert definition.senones.tolist() == MODEL[4]
    assert definition.phone_of_senones().tolist() == [0, 0, 1, 1, 2, 2, 0, 0]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("check", [True, False])
def test_gaussians_are_read_in_both_byte_orders(order, check, written):
    streams = read_gaussians(written(writer.gaussians(STREAMS, order, check)))
    for stream, expected in zip(streams, STREAMS, strict=True):
        np.testing.assert_array_equal(stream, expected)


@pytest.mark.parametrize("order", "<>")
def test_weights_and_transitions_are_normalised(order, written):
    weights = read_mixture_weights(written(writer.cube([[[1, 3], [0, 0]], [[5, 5], [0, 2]]], order)))
    np.testing.assert_allclose(weights, [[[0.25, 0.75], [0.5, 0.5]], [[0.5, 0.5], [0, 1]]], atol=1e-6)
    assert weights.min() > 0  # the floor
    transitions = read_transitions(written(writer.cube(COUNTS, order)))
    np.testing.assert_allclose(transitions, [[[0.75, 0.25, 0], [0, 0.25, 0.75]]])


@pytest.mark.parametrize("order", "<>")
def test_sendump_has_logarithms_of_8_bits(order, written):
    codes = read_sendump(written(writer.sendump(CODES, order)))
    np.testing.assert_array_equal(codes, CODES)
    weights = dumped_weights(codes)
    assert weights.shape == (4, 2, 3)
    assert weights[1, 0, 2] == pytest.approx(1.0001 ** (-1024 * int(CODES[0, 2, 1])))


def test_feature_parameters(written):
    assert read_feature_parameters(written("-lowerf 130\n\n# x\n-cmn batch\n")) == {"lowerf": "130", "cmn": "batch"}


def changed(content, old, new):
    assert old in content
    return content.replace(old, new, 1)


TEXT = writer.text_definition(*MODEL)
BINARY = writer.binary_definition(*MODEL)
GAUSSIANS = writer.gaussians(STREAMS)
SIZES = writer.numbers("i", [2, 2, 3])


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (read_definition, "", "expected version 0.3"),
        (read_definition, changed(TEXT, "0.3", "0.4"), "'0.4'; expected version 0.3"),
        (read_definition, changed(TEXT, "3 n_tri", "4 n_tri"), "6 models; expected n_base and n_tri together"),
        (read_definition, changed(TEXT, "3 n_base", "x n_base"), ":3: 'x n_base'; expected a number"),
        (read_definition, changed(TEXT, "A B SIL b", "A B Q b"), ":12: 'A B Q b'; expected three phones"),
        (read_definition, changed(TEXT, "A B SIL b", "A B SIL q"), "expected three phones and i, b, e or s"),
        (read_definition, changed(TEXT, "4 5 N", "4 N"), "senones and N"),
        (read_definition, changed(TEXT, "4 5 N", "4 99 N"), "senone 99; expected 0 to 7"),
        (read_definition, changed(BINARY, b"A\0B\0", b"A\0A\0"), "two of one name"),
        (read_definition, BINARY[:-3], "left; expected a complete file"),
        (read_definition, changed(BINARY, b"BMDF\1", b"BMDF\2"), "version 2; expected 1"),
        (read_definition, BINARY[:44] + b"\xff\xff\xff\xff" + BINARY[48:], "size -1; expected at least 0"),
        (read_definition, BINARY[:44] + b"\x63\0\0\0" + BINARY[48:], "99 phones among 6 models"),
        (read_definition, BINARY[:-2] + b"\x7f\x7f", "senone 32639; expected 0 to 7"),
        (read_gaussians, b"", "the line s3"),
        (read_gaussians, b"s3\nversion", "no line endhdr"),
        (read_gaussians, changed(GAUSSIANS, b"\x44\x33", b"\x44\x34"), "of the byte order"),
        (read_gaussians, GAUSSIANS[:-1], "the file is truncated"),
        (read_gaussians, changed(GAUSSIANS, SIZES, writer.numbers("i", [2, 2, 4])), "the file is damaged"),
        (read_gaussians, writer.s3(SIZES + writer.numbers("i", [2, 1, 17])), "17 values; expected 18"),
        (read_gaussians, writer.s3(SIZES + writer.numbers("i", [2, 1, 18])), "left; expected a complete file"),
        (read_gaussians, writer.s3(writer.numbers("i", [1, 1, 1, 1, 1]) + writer.numbers("f", [np.nan])), "infinite"),
        (read_gaussians, writer.s3(writer.numbers("i", [1, 0, 1, 0])), "size 0; expected at least 1"),
        (read_mixture_weights, writer.cube([[[1.0, -1.0]]]), "weight -1; expected at least 0"),
        (read_transitions, writer.cube([[[1.0, 1.0]], [[0.0, 0.0]]]), "a state without any"),
        (read_transitions, writer.cube([[[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]]), "left-to-right models"),
        (read_transitions, writer.cube([[[1.0, 1.0, 0.0]]]), "1 states and 3 targets"),
        (read_sendump, writer.sendump(CODES)[:-1], "left; expected a complete file"),
        (read_sendump, writer.sendump(CODES) + b"x", "1 bytes after the last number"),
        (read_sendump, writer.sendump(CODES, texts=["cluster_count 15"]), "weights in clusters"),
        (read_sendump, writer.sendump(CODES, texts=["cluster_bits 4"]), "weights in clusters"),
        (read_feature_parameters, "-cmn batch\nx\n", ":2: 'x'; expected -name and its value"),
    ],
)
def test_broken_inputs_give_one_line(read, content, message, written):
    path = written(content)
    with pytest.raises(FormatError) as fault:
        read(path)
    assert message in str(fault.value)
    assert str(path) in str(fault.value)
    assert "\n" not in str(fault.value)


READERS = [
    (read_definition, TEXT.encode()),
    (read_definition, BINARY),
    (read_gaussians, writer.gaussians(STREAMS, check=False)),
    (read_transitions, writer.cube(COUNTS, check=False)),
    (read_sendump, writer.sendump(CODES)),
]


@pytest.mark.parametrize(("read", "content"), READERS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_damage_never_escapes(read, content, data, tmp_path_factory):
    raw = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_bytes(raw)
    with contextlib.suppress(FormatError):
        read(path)


@pytest.mark.skipif(importlib.util.find_spec("pocketsphinx") is None, reason="pocketsphinx is not installed")
def test_the_model_of_pocketsphinx():
    import pocketsphinx

    model = Path(pocketsphinx.__file__).parent / "model" / "en-us" / "en-us"
    definition = read_definition(model / "mdef")
    assert (len(definition.phones), len(definition.triphones), definition.num_senones) == (42, 137053, 5126)
    assert definition.fillers == {"SIL", "+NSN+", "+SPN+"}
    assert [stream.shape for stream in read_gaussians(model / "means")] == [(42, 128, 13)] * 3
    assert read_sendump(model / "sendump").shape == (3, 128, 5126)
    assert read_transitions(model / "transition_matrices").shape == (42, 3, 4)
    assert read_feature_parameters(model / "feat.params")["feat"] == "1s_c_d_dd"
