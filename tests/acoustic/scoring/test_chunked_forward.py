"""Chunks with frames ahead: what a bidirectional network sees, gradients, and sums that leave the context out."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.model_file import save_model
from acoustic.scoring.chunked_forward import forward_in_chunks
from acoustic.scoring.scorer import AcousticScorer
from acoustic.training.procedures.precompute import frames_alone
from readers.errors import ModelError
from readers.minibatches.sequence_packing import pack_truncated
from tests.acoustic.recurrence.recurrent_networks import (
    check_part_numerically,
    data,
    filled,
    gradients,
    of_ndl,
    randomise,
    values,
    whole,
)

LENGTHS = (9, 4, 12, 7, 1, 8)
BLSTM, STACK = "top=BLSTM(x, 3)", "L1=BLSTM(x, 2)\ntop=BLSTM(L1, 3)"


def chunked(lengths, parallel, num_steps, ahead):
    return list(filled(*data(lengths), pack_truncated(lengths, parallel, num_steps, ahead)))


def by_sequence(network, name, lengths, parallel, num_steps, ahead):
    """Per sequence the values (rows, T) that its chunks give, context aside."""
    found = [np.zeros((network.shapes[name].rows, length)) for length in lengths]
    engine = Engine(network, [name])
    packing = list(pack_truncated(lengths, parallel, num_steps, ahead))
    for (matrices, layout), (_, pieces) in zip(filled(*data(lengths), packing), packing, strict=True):
        engine.forward(matrices, layout=layout)
        value = engine.value(name).reshape(-1, layout.num_steps, layout.num_sequences)
        for sequence, first, count, slot, step in pieces:
            if step < layout.num_kept:
                found[sequence][:, first : first + count] = value[:, step : step + count, slot]
    return found


@pytest.mark.parametrize("script", [BLSTM, STACK])
@pytest.mark.parametrize("ahead", [0, 5])
def test_a_chunk_as_long_as_the_sequences_is_the_whole_network(script, ahead):
    network, sequences = of_ndl(script), data(LENGTHS)
    together, expected = gradients(network, [whole(*sequences)])
    total, sums = gradients(network, chunked(LENGTHS, len(LENGTHS), max(LENGTHS), ahead))
    assert total == pytest.approx(together, rel=1e-12)
    for name, gradient in sums.items():
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("parallel", [1, 3])
def test_frames_ahead_of_all_that_follows_give_the_whole_networks_values(parallel):
    network = of_ndl(STACK)
    for found, x, y in zip(by_sequence(network, "z", LENGTHS, parallel, 3, max(LENGTHS)), *data(LENGTHS)):
        np.testing.assert_allclose(found, values(network, "z", [whole([x], [y])]), rtol=1e-11)


@pytest.mark.parametrize(("parallel", "num_steps", "ahead"), [(1, 4, 2), (3, 4, 2), (3, 2, 3), (6, 1, 1), (2, 5, 0)])
def test_forward_goes_on_and_backward_begins_anew(parallel, num_steps, ahead):
    """Where the chunk of a frame ends depends on where its slot was when the sequence began."""
    network, (xs, labels) = of_ndl(BLSTM), data(LENGTHS)
    found = by_sequence(network, "top.S", LENGTHS, parallel, num_steps, ahead)
    chunks = [piece for layout, pieces in pack_truncated(LENGTHS, parallel, num_steps, ahead) for piece in pieces]
    for sequence, (x, y) in enumerate(zip(xs, labels)):
        np.testing.assert_allclose(found[sequence][:3], values(network, "top.F.Cell.h", [whole([x], [y])]), rtol=1e-11)
        for _, first, count, _, step in (piece for piece in chunks if piece.sequence == sequence):
            if step < num_steps:
                seen = slice(first, first + count + (ahead if step + count == num_steps else 0))
                alone = values(network, "top.B.Cell.h", [whole([x[:, seen]], [y[:, seen]])])[:, :count]
                np.testing.assert_allclose(found[sequence][3:, first : first + count], alone, rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("script", [BLSTM, STACK, "top=LSTM(x, 3)"])
def test_gradients_of_a_chunk(script):
    parts = chunked(LENGTHS, 3, 4, 2)
    network = of_ndl(script)
    for count in (1, 3):
        check_part_numerically(network, parts[:count])


def test_a_network_without_future_gains_nothing_from_context():
    network = of_ndl("L1=LSTM(x, 3)\ntop=LSTMP(L1, 4, 2)")
    (total, sums), (same, others) = (gradients(network, chunked(LENGTHS, 3, 4, ahead)) for ahead in (0, 3))
    assert total == pytest.approx(same, rel=1e-12)
    for name, gradient in sums.items():
        np.testing.assert_allclose(gradient, others[name], rtol=1e-9, atol=1e-12)


def test_sums_leave_the_context_out():
    network = of_ndl("top=Tanh(x)")
    network.add("ErrorPrediction", "E", "labels", "z")
    once = [whole(*data(LENGTHS))]
    chunks = chunked(LENGTHS, 2, 3, 4)
    for name in ("J", "E"):
        assert values(network, name, chunks).sum() == pytest.approx(values(network, name, once).sum(), rel=1e-12)
    assert sum(layout.num_frames for _, layout in chunks) == sum(LENGTHS)

    class Batch:
        matrices, layout = chunks[0]

    assert frames_alone(Batch)["x"].shape[1] == chunks[0][1].num_frames < chunks[0][1].num_columns


def test_one_sequence_in_chunks():
    network, (xs, labels) = of_ndl(STACK), data((11,))
    engine, x = Engine(network, ["z"]), xs[0]
    expected = values(network, "z", [whole(xs, labels)])
    np.testing.assert_allclose(forward_in_chunks(engine, {"x": x}, ["z"])["z"], expected, rtol=1e-12)
    np.testing.assert_allclose(forward_in_chunks(engine, {"x": x}, ["z"], 4, 11)["z"], expected, rtol=1e-11)
    found = forward_in_chunks(engine, {"x": x}, ["z"], 4, 2)["z"]
    np.testing.assert_allclose(found, by_sequence(network, "z", (11,), 1, 4, 2)[0], rtol=1e-12)
    assert abs(found - expected).max() > 1e-4  # it does see less


def test_the_scorer_in_chunks(tmp_path):
    network = randomise(of_ndl(BLSTM, "float"))
    save_model(network, tmp_path / "model")
    x = np.float32(data((11,))[0][0])
    whole_scores = AcousticScorer(tmp_path / "model", "z", window=1).score(x)
    scores = AcousticScorer(tmp_path / "model", "z", window=1, chunks=(4, 2)).score(x)
    engine = Engine(network, ["z"])
    np.testing.assert_allclose(scores, forward_in_chunks(engine, {"x": x}, ["z"], 4, 2)["z"], rtol=1e-6)
    assert abs(scores - whole_scores).max() > 1e-4
    with pytest.raises(ModelError, match="chunks of 0 frames, 2 ahead; expected at least 1, and 0 or more ahead"):
        AcousticScorer(tmp_path / "model", "z", window=1, chunks=(0, 2))
