"""Two networks trained together: an encoder's last states in a decoder, and gradients on their way back."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients
from acoustic.engine.pair_engine import PairEngine, make_engine
from acoustic.engine.planning.pass_plan import gradient_of, lay_out
from acoustic.export.onnx_export import to_onnx
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.runtime.engine_options import EngineOptions
from readers.errors import ModelError, ShapeError
from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.sequence_pairs import PairLayout

SIZE, SOURCES, TARGETS = 4, 3, 5


def parameter(network, name, rows, cols=1):
    return network.add("Parameter", name, rows=rows, cols=cols).name


def cell(network, name, below, rows, begin=None, type_name="PastValue"):
    """h(t) = tanh(W x(t) + R (h(t - 1) + begin(t))); returns the name of h."""
    network.add_node(type_name, f"{name}.past", [None], {"rows": SIZE, "defaultHiddenActivity": 0})
    past = f"{name}.past"
    if begin is not None:
        past = network.add("Plus", f"{name}.before", past, begin).name
    wx = network.add("Times", f"{name}.wx", parameter(network, f"{name}.W", SIZE, rows), below)
    rh = network.add("Times", f"{name}.rh", parameter(network, f"{name}.R", SIZE, SIZE), past)
    network.add("Tanh", name, network.add("Plus", f"{name}.sum", wx, rh))
    network.connect(f"{name}.past", name)
    return name


def build(context=True, precision="double"):
    """A decoder that begins with the encoder's last state and, with context, sees a function of it at every step."""
    network = Network(precision, threads=1)
    network.add("Input", "source", rows=SOURCES)
    network.add("Input", "words", rows=TARGETS)
    network.add("Input", "labels", rows=TARGETS)
    encoded = cell(network, "encoded", "source", SOURCES)
    begin = network.add("PairNetwork", "begin", encoded).name
    if context:
        projected = network.add("Times", "projected", parameter(network, "P", SIZE, SIZE), encoded)
        every = network.add("PairNetwork", "every", projected, steps="all")
        # A layer backward in time comes to the first frame last; here both ends of it are taken.
        backward = cell(network, "backward", "source", SOURCES, type_name="FutureValue")
        ends = [network.add("PairNetwork", name, backward, frame=name).name for name in ("first", "last")]
        begin = network.add("Plus", "begins", begin, network.add("Plus", "ends", *ends)).name
    top = cell(network, "decoded", "words", TARGETS, begin)
    if context:
        # The gradient of its first operand waits until all of the other's are done.
        top = network.add("Plus", "both", every, network.add("Tanh", "squashed", top)).name
    z = network.add("Times", "z", parameter(network, "V", TARGETS, SIZE), top)
    network.criteria.append(network.add("CrossEntropyWithSoftmax", "J", "labels", z).name)
    network.validate()
    rng = np.random.default_rng(5)
    for node in network.parameters():
        network.set_value(node, 0.6 * rng.standard_normal(node.value.shape))
    return network


def layout_of(slots):
    """slots: per slot the lengths of its sequences, one after the other."""
    steps = max(map(sum, slots))
    starts, ends = (np.zeros((steps, len(slots)), bool) for _ in range(2))
    gaps = np.ones((steps, len(slots)), bool)
    for slot, lengths in enumerate(slots):
        step = 0
        for length in lengths:
            starts[step, slot], ends[step + length - 1, slot] = True, True
            gaps[step : step + length, slot] = False
            step += length
    return SequenceLayout(len(slots), steps, starts, ends, gaps)


def pack(slots, sequences):
    """(columns, layout) of sequences given slot after slot."""
    layout = layout_of(slots)
    columns = np.zeros((sequences[0].shape[0], layout.num_columns), order="F")
    number = 0
    for slot, lengths in enumerate(slots):
        step = 0
        for length in lengths:
            columns[:, (step + np.arange(length)) * len(slots) + slot] = sequences[number]
            step, number = step + length, number + 1
    return columns, layout


def examples(sources, targets, seed=0):
    """(matrices, layout, [(source, words, labels)]) of pairs with these lengths in slots."""
    rng = np.random.default_rng(seed)
    flat = [[length for slot in slots for length in slot] for slots in (sources, targets)]
    pairs = [
        (
            rng.standard_normal((SOURCES, one)),
            np.eye(TARGETS)[:, rng.integers(0, TARGETS, two)],
            np.eye(TARGETS)[:, rng.integers(0, TARGETS, two)],
        )
        for one, two in zip(*flat)
    ]
    source, source_layout = pack(sources, [pair[0] for pair in pairs])
    words, target_layout = pack(targets, [pair[1] for pair in pairs])
    labels, _ = pack(targets, [pair[2] for pair in pairs])
    return {"source": source, "words": words, "labels": labels}, PairLayout(source_layout, target_layout), pairs


RAGGED = ([[3], [1], [5]], [[2], [4], [1]])
SEVERAL = ([[3, 2], [6], [1, 1, 2]], [[1, 4], [2], [3, 1, 1]])


@pytest.mark.parametrize("slots", [RAGGED, SEVERAL, ([[4]], [[3]])], ids=["ragged", "several in a slot", "alone"])
@pytest.mark.parametrize("context", [False, True])
def test_gradients_reach_through_the_pair(slots, context):
    network = build(context)
    matrices, layout, _ = examples(*slots)
    engine = make_engine(network, ["J"])
    assert isinstance(engine, PairEngine)
    comparisons = check_gradients(network, "J", matrices, engine=engine, layout=layout, epsilon=2e-5)
    assert {one.parameter for one in comparisons} == {node.name for node in network.parameters()}
    assert all(abs(one.numeric) > 1e-4 for one in comparisons)
    for one in comparisons:
        assert one.error < 1e-7, one


@pytest.mark.parametrize("slots", [RAGGED, SEVERAL])
def test_gradients_are_the_sum_of_those_of_each_pair(slots):
    network = build()
    matrices, layout, pairs = examples(*slots)

    def gradients(matrices, layout):
        engine = PairEngine(network, ["J"])
        engine.forward(matrices, training=True, layout=layout)
        engine.backward()
        return engine.value("J").item(), {node.name: engine.gradient(node.name).copy() for node in engine.learnable()}

    together, sums = gradients(matrices, layout)
    alone = [
        gradients(
            {"source": source, "words": words, "labels": labels},
            PairLayout(layout_of([[source.shape[1]]]), layout_of([[words.shape[1]]])),
        )
        for source, words, labels in pairs
    ]
    assert together == pytest.approx(sum(value for value, _ in alone), rel=1e-12)
    for name, value in sums.items():
        np.testing.assert_allclose(value, sum(one[name] for _, one in alone), rtol=1e-9, atol=1e-12)


def test_the_decoder_begins_where_the_encoder_ends():
    network = build(context=False)
    matrices, layout, pairs = examples(*SEVERAL)
    engine = PairEngine(network, ["decoded"])
    engine.forward(matrices, layout=layout)
    value = engine.value("decoded")
    weights = {node.name: node.value for node in network.parameters()}
    for number, (source, words, _) in enumerate(pairs):
        state = np.zeros(SIZE)
        for column in source.T:
            state = np.tanh(weights["encoded.W"] @ column + weights["encoded.R"] @ state)
        for t, column in enumerate(words.T):
            state = np.tanh(weights["decoded.W"] @ column + weights["decoded.R"] @ state)
            where = layout.target_starts[number] + t * layout.target.num_sequences
            np.testing.assert_allclose(value[:, where], state, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("buffer_sharing", [True, False])
def test_values_are_new_in_every_pass(buffer_sharing):
    network = build(precision="float")
    # Something that depends on no input, and so is not computed again.
    network.add("Times", "twice", network.add("Plus", "PP", "P", "P"), "encoded")
    network.add("PairNetwork", "more", "twice")
    network.add("Times", "PPP", network.add("Times", "PQ", parameter(network, "Q", SIZE, SIZE), "Q"), "more")
    network.add("SquareError", "K", "PPP", "decoded")
    network.add("Plus", "L", "J", "K")
    engine = PairEngine(network, ["L"], options=EngineOptions(buffer_sharing=buffer_sharing))
    found = []
    for training in (False, True):
        for seed in (0, 1, 0):
            matrices, layout, _ = examples(*RAGGED, seed=seed)
            engine.forward(matrices, training=training, layout=layout)
            found.append(engine.value("L").item())
            if training:
                engine.backward()
    assert found[0] == found[2] == found[3] == found[5] != found[1] == found[4]


def test_nothing_takes_the_place_of_a_gradient_that_waits():
    """What comes back to a PairNetwork is taken when all its users have been, and other gradients come in between."""
    network = build()
    others = "decoded"
    for k in range(8):
        branch = network.add("Times", f"t{k}", parameter(network, f"A{k}", SIZE, SIZE), "decoded")
        others = network.add("Plus", f"p{k}", branch, others)
    total = network.add("Plus", "total", "every", others)
    network.add("SquareError", "K", total, network.add("Times", "U", parameter(network, "A", SIZE, TARGETS), "words"))
    graph = Engine(network, ["K"]).graph
    (criterion,) = (node for node in graph.order if node.name == "K")
    layout = lay_out(graph, ["K"], 12, criterion, sharing=True, split=False)
    key, slab = gradient_of("every"), layout.plan.slab
    position = next(k for k, step in enumerate(layout.backward) if step.node.name == "every")
    start = {lifetime.key: lifetime.start for lifetime in layout.lifetimes}
    begin, end = start[key], len(layout.forward) + position
    assert end - begin > 3
    assert [k for k in slab if slab[k] == slab[key] and begin < start[k] <= end] == []


def test_a_frozen_encoder_learns_nothing():
    network = build(context=False)
    for node in network.parameters():
        if node.name.startswith("encoded"):
            node.settings["needGradient"] = False
    matrices, layout, _ = examples(*RAGGED)
    engine = PairEngine(network, ["J"])
    engine.forward(matrices, training=True, layout=layout)
    engine.backward()
    assert {node.name for node in engine.learnable()} == {"decoded.W", "decoded.R", "V"}


def test_saved_and_read_again(tmp_path):
    network = build(precision="float")
    save_model(network, tmp_path / "pair")
    again = load_model(tmp_path / "pair")
    assert list(again.describe())[-1] == list(network.describe())[-1]
    matrices, layout, _ = examples(*SEVERAL)
    values = []
    for one in (network, again):
        engine = make_engine(one, ["J"])
        engine.forward(matrices, layout=layout)
        values.append(engine.value("J").item())
    assert values[0] == values[1]


def test_networks_without_a_pair_have_the_usual_engine():
    network = build()
    assert type(make_engine(network, ["encoded"])) is Engine


def test_what_cannot_be_is_refused():
    network = build()
    matrices, layout, _ = examples(*RAGGED)
    with pytest.raises(ModelError, match=r"node 'every' \(PairNetwork\): takes the values of another network; exp"):
        Engine(network, ["J"]).forward({**matrices}, layout=layout.target)
    with pytest.raises(ModelError, match="no pairs of sequences"):
        PairEngine(network, ["J"]).forward(matrices, layout=layout.target)
    with pytest.raises(ShapeError, match=r"slots hold \[1, 1\] source and \[1, 2\] target sequences"):
        PairLayout(layout_of([[2], [2]]), layout_of([[2], [1, 1]]))
    half = SequenceLayout(1, 2, np.array([[True], [False]]), np.zeros((2, 1), bool), np.zeros((2, 1), bool))
    with pytest.raises(ShapeError, match="source sequences continue in another minibatch"):
        PairLayout(half, layout_of([[2]]))
    # Of two slots, one ends a sequence that another minibatch began, and begins one that does not end.
    starts = np.array([[True, False], [False, True]])
    some = SequenceLayout(2, 2, starts, ~starts, np.zeros((2, 2), bool))
    with pytest.raises(ShapeError, match="target sequences continue in another minibatch"):
        PairLayout(layout_of([[2], [2]]), some)


def test_one_parameter_or_input_for_both_is_refused():
    network = build()
    network.add("PairNetwork", "more", network.add("Times", "t", "decoded.R", "encoded"))
    with pytest.raises(ModelError, match=r"node 'decoded.R' .*: in the encoder and in the decoder"):
        PairEngine(network, [network.add("Plus", "all", "decoded", "more").name])
    network.add("PairNetwork", "input", "words")
    with pytest.raises(ModelError, match=r"node 'words' .*: in the encoder and in the decoder"):
        PairEngine(network, [network.add("Plus", "both words", "words", "input").name])


def test_a_chain_of_three_is_refused():
    network = build()
    third = network.add("PairNetwork", "third", "decoded")
    with pytest.raises(ModelError, match=r"node 'begin'.*in the encoder of another PairNetwork"):
        PairEngine(network, [third.name])


def test_an_operand_without_frames_is_refused():
    network = build()
    with pytest.raises(ShapeError, match="expected a node with one column per frame"):
        network.add("PairNetwork", "p", "P")


def test_a_pair_has_no_form_in_onnx():
    pytest.importorskip("onnx")
    with pytest.raises(ModelError, match=r"node 'every' \(PairNetwork\): has no form in ONNX"):
        to_onnx(build(), ["z"])
