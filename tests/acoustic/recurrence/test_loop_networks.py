"""Networks with loops as a whole: delays outside loops, gaps, faults, editing, files, descriptions."""

import numpy as np
import pytest

from acoustic.descriptions.ndl.evaluate import Scope
from acoustic.engine.engine import Engine
from acoustic.engine.forward_mode import jacobian_vector_product
from acoustic.network.editing import clone, copy_nodes, rename, subtree
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.config.syntax import Source
from readers.errors import ModelError, ShapeError
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.recurrence.loop_networks import (
    INPUTS,
    SIZE,
    build,
    data,
    delay,
    new_network,
    packed,
    parameter,
    whole,
    with_criterion,
)
from tests.acoustic.recurrence.recurrent_networks import gradients


def test_a_delay_outside_a_loop_shifts_each_sequence():
    network = new_network()
    network.add("PastValue", "past", "x", rows=INPUTS, timeStep=2, defaultHiddenActivity=7)
    network.add("FutureValue", "future", "x", rows=INPUTS)
    engine = Engine(network, ["past", "future"])
    xs, _ = data((2, 4))
    engine.forward({"x": packed(xs)}, layout=SequenceLayout.of_lengths((2, 4)))
    past, future = (np.reshape(np.asarray(engine.value(name)), (INPUTS, 4, 2)) for name in ("past", "future"))
    assert (past[:, :2] == 7).all()
    np.testing.assert_array_equal(past[:, 2:, 1], xs[1][:, :2])
    np.testing.assert_array_equal(future[:, 0, 0], xs[0][:, 1])
    np.testing.assert_array_equal(future[:, :3, 1], xs[1][:, 1:])
    assert (future[:, 1, 0] == 0.1).all()
    assert (future[:, 3] == 0.1).all()


def test_columns_without_a_frame_are_left_out_of_sums():
    """Of a network without loops, too, and whatever the threads."""
    for threads in (1, 2):
        network = Network("double", threads=threads)
        network.add("Input", "x", rows=INPUTS)
        network.add("Input", "labels", rows=SIZE)
        network.add("Times", "hidden", parameter(network, "W", SIZE, INPUTS), "x")
        with_criterion(network, network.add("Plus", "h", "hidden", parameter(network, "b", SIZE)).name)
        network.add("ErrorPrediction", "errors", "labels", "z")
        lengths = (90, 20, 1)
        xs, labels = data(lengths)
        plain = {"x": np.concatenate(xs, axis=1), "labels": np.concatenate(labels, axis=1)}
        matrices, layout = whole(lengths, xs, labels)
        results = []
        for fed, how in ((plain, None), (matrices, layout)):
            engine = Engine(network, ["J", "errors"])
            engine.forward(fed, training=True, layout=how)
            values = [engine.value("J").copy(), engine.value("errors").copy()]
            engine.backward()
            results.append([*values, *(engine.gradient(node.name).copy() for node in network.parameters())])
        for one, other in zip(*results):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_faults_are_named():
    network = build("simple")
    (x,), (labels,) = data((4,))
    fed, layout = whole((4,), [x], [labels])
    engine = Engine(network, ["J"])
    with pytest.raises(ModelError, match=r"'h.past' .PastValue.: independent frames; expected whole sequences"):
        engine.forward(fed)
    goes_on = SequenceLayout(1, 4, np.zeros((4, 1), bool), layout.ends, layout.gaps)
    with pytest.raises(ModelError, match="slot 0: continues a sequence that the previous minibatch did not hold"):
        engine.forward(fed, layout=goes_on)
    engine.forward(fed, layout=layout)
    with pytest.raises(ModelError, match="slot 0: continues"):
        engine.forward(fed, layout=goes_on)  # the one before has ended
    with pytest.raises(ShapeError, match="sequences of 5 columns; expected 4"):
        engine.forward(fed, layout=SequenceLayout.of_lengths((5,)))


def test_a_layout_that_was_refused_is_refused_again():
    network = build("simple")
    (x,), (labels,) = data((4,))
    fed, layout = whole((4,), [x], [labels])
    engine = Engine(network, ["J"])
    engine.forward(fed, layout=layout)
    goes_on = SequenceLayout(1, 4, np.zeros((4, 1), bool), layout.ends, layout.gaps)
    for _ in range(2):
        with pytest.raises(ModelError, match="slot 0: continues"):
            engine.forward(fed, layout=goes_on)
    engine.forward(fed, layout=layout)


def test_loops_that_cannot_be_are_refused():
    network = new_network()
    delay(network, "past")
    delay(network, "future", type_name="FutureValue")
    with pytest.raises(ModelError, match=r"'past' .PastValue.: input 0 .m. is not connected"):
        network.validate()
    network.add("Plus", "h", "past", "future")
    network.connect("past", "h")
    network.connect("future", "h")
    with pytest.raises(
        ModelError, match=r"'past': in one loop with 'future' \(future, h, past\); expected PastValue or"
    ):
        network.validate()
    with pytest.raises(ShapeError, match=r"'past' .PastValue.: m 'x' is 4x.; expected 3 rows"):
        network.connect("past", "x")
    with pytest.raises(ModelError, match="timeStep=0; expected at least 1"):
        delay(network, "none", timeStep=0)
    network = new_network()
    past = delay(network, "past")
    network.add("SumElements", "sum", past)
    network.add("Plus", "h", "labels", "sum")
    network.connect(past, "h")
    with pytest.raises(ModelError, match=r"'sum' .SumElements.: in the loop of h, past, sum; expected nodes"):
        Engine(network, ["h"])


@pytest.mark.parametrize("kind", ["simple", "two delays"])
def test_forward_mode_wants_sequences(kind):
    network, (matrices, _) = build(kind), whole((4,), *data((4,)))
    with pytest.raises(ModelError, match=r"PastValue\): independent frames; expected whole sequences"):
        jacobian_vector_product(network, ["J"], matrices, {})


def test_a_network_with_loops_can_be_edited():
    network, lengths = build("lstm"), (3, 5)
    batch = [whole(lengths, *data(lengths))]
    twin = clone(network)
    rename(twin, {"h": "cell output"})
    copy_nodes(
        twin,
        twin,
        [(name, f"second.{name}") for name in subtree(twin, "J") if name not in ("x", "labels")],
        shared=["x", "labels"],
    )
    twin.validate()
    assert gradients(twin, batch)[0] == gradients(network, batch)[0]
    engine = Engine(twin, ["second.J"])
    engine.forward(batch[0][0], layout=batch[0][1])
    assert float(engine.value("second.J")[0, 0]) == gradients(network, batch)[0]


def test_a_network_with_loops_is_saved_and_loaded(tmp_path):
    network, lengths = build("two delays"), (3, 5)
    save_model(network, tmp_path / "model")
    again = load_model(tmp_path / "model")
    batch = [whole(lengths, *data(lengths))]
    assert gradients(again, batch)[0] == gradients(network, batch)[0]
    save_model(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_an_ndl_description_may_use_what_comes_later():
    network = Network("double", threads=1)
    Scope(network).evaluate(
        Source.from_text(
            "x=Input(4)\nlabels=Input(3)\nold=Delay(3, h, delayTime=1)\nW=Parameter(3,4)\nR=Parameter(3,3)\n"
            "b=Parameter(3)\nsum=Plus(Times(W,x), Times(R,old))\nh=Tanh(Plus(sum,b))\nV=Parameter(3,3)\nz=Times(V,h)\n"
            "J=CrossEntropyWithSoftmax(labels, z, tag=criterion)\n",
            "net.ndl",
        )
    )
    network.validate()
    lengths = (3, 5)
    own = build("simple")
    for name, other in (("W", "h.W"), ("R", "h.R"), ("b", "h.b"), ("V", "V")):
        network.set_value(name, own[other].value)
    batch = [whole(lengths, *data(lengths))]
    assert gradients(network, batch)[0] == pytest.approx(gradients(own, batch)[0], rel=1e-12)
