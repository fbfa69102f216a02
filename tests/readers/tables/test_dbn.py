"""Models of dbn.exe: what the bytes say, each message, and no crash on damage."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readers.errors import ArgonautError, FormatError
from readers.tables.dbn import read_dbn, write_dbn
from tests.readers.tables.dbn_files import dbn_bytes

RNG = np.random.default_rng(0)
MEAN, DEVIATION = np.array([1, 2], np.float32), np.array([0.5, 4], np.float32)
LAYERS = [
    ("rbmgaussbernoulli", RNG.standard_normal((3, 6)).astype(np.float32), np.arange(3, dtype=np.float32)),
    ("rbmisalinearbernoulli", RNG.standard_normal((2, 3)).astype(np.float32), np.ones(2, np.float32)),
    ("rbmbernoullibernoulli", RNG.standard_normal((4, 2)).astype(np.float32), np.ones(4, np.float32)),
    ("perceptron", RNG.standard_normal((3, 4)).astype(np.float32), np.zeros(3, np.float32)),
]
PRIOR = np.array([0.5, 0.25, 0.25], np.float32)


@pytest.mark.parametrize(("header", "comment"), [(b"DBN\nmade by a test\0", "made by a test"), (b"DBN\0", "")])
@pytest.mark.parametrize("prior", [PRIOR, None])
def test_a_whole_model(tmp_path, header, comment, prior):
    (tmp_path / "m").write_bytes(dbn_bytes(MEAN, DEVIATION, LAYERS, prior, header))
    model = read_dbn(tmp_path / "m")
    assert (model.version, model.comment) == (0, comment)
    np.testing.assert_array_equal(model.mean, MEAN)
    np.testing.assert_array_equal(model.deviation, DEVIATION)
    for found, (kind, weights, bias) in zip(model.layers, LAYERS, strict=True):
        assert found.kind == kind
        np.testing.assert_array_equal(found.weights, weights)
        np.testing.assert_array_equal(found.bias, bias)
    assert (model.prior is None) if prior is None else (model.prior == prior).all()


@pytest.mark.parametrize("header", [b"DBN\nmade by a test\0", b"DBN\0"])
@pytest.mark.parametrize("prior", [PRIOR, None])
def test_a_written_model_has_the_bytes_of_the_one_read(tmp_path, header, prior):
    (tmp_path / "m").write_bytes(dbn_bytes(MEAN, DEVIATION, LAYERS, prior, header))
    write_dbn(tmp_path / "again", read_dbn(tmp_path / "m"))
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def changed(index: int, *layer) -> list:
    return [*LAYERS[:index], layer, *LAYERS[index + 1 :]]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"PK\3\4", r"m: begins with b'PK\\x03\\x04'; expected DBN"),
        (b"DBN\nno end", r"m: byte 4: comment has no end; expected text and a zero byte"),
        (dbn_bytes(MEAN, DEVIATION, changed(1, "relunetwork", *LAYERS[1][1:]), PRIOR),
         r"m: byte \d+: layer 2 is of kind 'relunetwork'; expected rbmgaussbernoulli, rbmbernoullibernoulli"),
        (dbn_bytes(MEAN, DEVIATION, changed(1, "perceptron", *LAYERS[1][1:]), PRIOR),
         r"layer 2 of 4 is a perceptron; expected it last"),
        (dbn_bytes(MEAN, DEVIATION, changed(1, LAYERS[1][0], np.ones((2, 5)), np.ones(2)), PRIOR),
         r"layer 2 has 5 inputs, 2 outputs and 2 biases; expected a bias for each output, and 3 inputs"),
        (dbn_bytes(MEAN, DEVIATION, changed(1, LAYERS[1][0], np.ones((2, 3)), np.ones(3)), PRIOR),
         r"layer 2 has 3 inputs, 2 outputs and 3 biases"),
        (dbn_bytes(MEAN, DEVIATION, LAYERS, PRIOR[:2]), r"2 priors; expected 3, one for each output"),
        (dbn_bytes(np.ones(4), np.ones(4), LAYERS, PRIOR), r"6 inputs; expected a multiple of the 4 of gmean"),
        (dbn_bytes(MEAN, -DEVIATION, LAYERS, PRIOR), r"gmean of 2 and gstddev of 2 values; .*deviations above 0"),
        (dbn_bytes(MEAN * np.nan, DEVIATION, LAYERS, PRIOR), r"matrix gmean contains infinite values or NaN"),
        (dbn_bytes(MEAN, DEVIATION, [], PRIOR), r"0 layers; expected 1 to 1000"),
        (dbn_bytes(MEAN, DEVIATION, LAYERS, PRIOR).replace(b"BNET", b"BNXT"), r"found b'BNXT'; expected the tag"),
        (dbn_bytes(MEAN, DEVIATION, LAYERS, PRIOR).replace(b"BMATa\0", b"BMATc\0"), r"matrix 'c'; expected a"),
        (dbn_bytes(MEAN, DEVIATION, LAYERS, PRIOR).replace(b"gmean\0\2\0\0\0", b"gmean\0\2\0\0\x7f"),
         r"matrix gmean of 2130706434x1 needs 8522825736 bytes; expected at most \d+"),
        (dbn_bytes(MEAN, DEVIATION, LAYERS, PRIOR)[:-4], r"found b''; expected the tag EDBN"),
    ],
)  # fmt: skip
def test_faults_name_the_place(tmp_path, raw, message):
    (tmp_path / "m").write_bytes(raw)
    with pytest.raises(FormatError, match=message) as caught:
        read_dbn(tmp_path / "m")
    assert "\n" not in str(caught.value)


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_one_line_or_harmless(tmp_path, data):
    raw = bytearray(dbn_bytes(MEAN, DEVIATION, LAYERS, PRIOR))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "m").write_bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    message = str(tmp_path)
    try:
        read_dbn(tmp_path / "m")
    except ArgonautError as fault:
        message = str(fault)
    assert message.startswith(str(tmp_path))
    assert "\n" not in message
