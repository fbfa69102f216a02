"""Image nodes against direct loops over pixels, their gradients, and what they say of operands that do not fit."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients
from acoustic.kernels.image_geometry import Image, ImageShape, image_of, keep_image
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.nodes.base import PassContext, Shape
from acoustic.runtime.engine_options import EngineOptions
from readers.errors import ModelError, ShapeError
from tests.acoustic.nodes.image_formulas import (
    add_criterion,
    convolution,
    convolution_options,
    network_over,
    pooled,
    pooling_options,
    values_of,
)

TOLERANCE = 1e-6

CONVOLUTIONS = [
    # image, kernel (width, height), steps, zero padding
    (Image(3, 4, 2), (2, 3), (1, 1), False),
    (Image(5, 4, 1), (3, 2), (2, 1), False),
    (Image(5, 6, 3), (3, 3), (2, 3), True),
    (Image(4, 5, 2), (2, 4), (1, 2), True),
    (Image(2, 3, 2), (5, 7), (1, 1), True),  # the kernel is larger than the image
    (Image(3, 3, 1), (3, 3), (1, 1), False),
    (Image(1, 1, 4), (1, 1), (1, 1), False),
    (Image(6, 2, 1), (1, 1), (4, 3), False),  # steps leave pixels out
]
POOLINGS = [
    (Image(4, 6, 2), (1, 3), (1, 3)),
    (Image(5, 5, 1), (2, 3), (2, 2)),
    (Image(4, 4, 3), (3, 2), (1, 1)),  # windows overlap
    (Image(2, 2, 2), (2, 2), (2, 2)),
    (Image(7, 3, 1), (2, 1), (3, 2)),  # pixels are left out
]


@pytest.mark.parametrize(("image", "kernel", "steps", "padded"), CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("precision", ["double", "float"])
def test_convolution_is_the_sum_over_each_window(image, kernel, steps, padded, precision):
    rng = np.random.default_rng(1)
    network, matrices = network_over(image, 3, rng, precision)
    network.add("Parameter", "w", rows=2, cols=kernel[0] * kernel[1] * image.channels, initValueScale=20)
    network.add("Convolution", "v", "w", "y", **convolution_options(2, kernel, steps, padded))
    y, v = values_of(network, matrices, ["y", "v"])
    expected = convolution(network["w"].value, y, image, kernel, steps, padded)
    np.testing.assert_allclose(v, expected, rtol=1e-5, atol=1e-12 if precision == "double" else 1e-5)
    assert image_of(network.shapes["v"]).channels == 2
    assert network.shapes["v"].rows == expected.shape[0]


@pytest.mark.parametrize(("image", "kernel", "steps", "padded"), CONVOLUTIONS, ids=str)
def test_gradients_of_convolution(image, kernel, steps, padded):
    rng = np.random.default_rng(2)
    network, matrices = network_over(image, 3, rng)
    network.add("Parameter", "w", rows=2, cols=kernel[0] * kernel[1] * image.channels, initValueScale=20)
    network.add("Convolution", "v", "w", "y", **convolution_options(2, kernel, steps, padded))
    comparisons = check_gradients(network, add_criterion(network, "v", rng, matrices), matrices)
    assert {comparison.parameter for comparison in comparisons} == {"w", "x"}
    for comparison in comparisons:
        assert comparison.error < TOLERANCE, comparison


@pytest.mark.parametrize(("image", "window", "steps"), POOLINGS, ids=str)
@pytest.mark.parametrize(("type_name", "function"), [("MaxPooling", max), ("AveragePooling", np.mean)])
@pytest.mark.parametrize("precision", ["double", "float"])
def test_pooling_takes_each_window_and_channel(type_name, function, image, window, steps, precision):
    rng = np.random.default_rng(3)
    network, matrices = network_over(image, 4, rng, precision)
    network.add(type_name, "v", "y", **pooling_options(window, steps))
    y, v = values_of(network, matrices, ["y", "v"])
    expected = pooled(y, image, window, steps, function)
    np.testing.assert_allclose(v, expected, rtol=1e-5, atol=1e-6)
    assert image_of(network.shapes["v"]).channels == image.channels


@pytest.mark.parametrize(("image", "window", "steps"), POOLINGS, ids=str)
@pytest.mark.parametrize("type_name", ["MaxPooling", "AveragePooling"])
def test_gradients_of_pooling(type_name, image, window, steps):
    rng = np.random.default_rng(4)
    network, matrices = network_over(image, 4, rng)
    network.add(type_name, "v", "y", **pooling_options(window, steps))
    (comparison,) = check_gradients(network, add_criterion(network, "v", rng, matrices), matrices)
    assert comparison.error < TOLERANCE, comparison


def test_of_equals_the_first_gets_the_gradient_of_max_pooling():
    network = Network("double", threads=1)
    network.add("ImageInput", "features", width=2, height=2, channels=1)
    network.add("Parameter", "x", rows=4, init="fixedValue", value=3)
    network.add("Plus", "y", "features", "x")
    network.add("MaxPooling", "v", "y", windowWidth=2, windowHeight=2, stepW=2, stepH=2)
    network.add("SumElements", "J", "v")
    engine = Engine(network, ["J"])
    engine.forward({"features": np.zeros((4, 1))}, training=True)
    engine.backward()
    np.testing.assert_array_equal(engine.gradient("x"), [[1], [0], [0], [0]])


def test_not_a_number_is_not_pooled_away():
    network = Network("float", threads=1)
    network.add("ImageInput", "features", width=1, height=3, channels=1)
    network.add("MaxPooling", "v", "features", windowWidth=1, windowHeight=3, stepW=1, stepH=1)
    for place in range(3):
        image = np.ones((3, 1))
        image[place] = np.nan
        assert np.isnan(values_of(network, {"features": image}, ["v"])[0]).all()


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_packing_fewer_images_at_a_time_changes_nothing(limit, monkeypatch):
    def gradients(samples):
        rng = np.random.default_rng(5)
        network, matrices = network_over(Image(4, 5, 2), 13, rng)
        network.add("Parameter", "w", rows=3, cols=12, initValueScale=20)
        options = convolution_options(3, (2, 3), (1, 1), False)
        network.add("Convolution", "v", "w", "y", maxTempMemSizeInSamples=samples, **options)
        engine = Engine(network, [add_criterion(network, "v", rng, matrices)])
        packed: list[int] = []
        pack = network.backend.kernels.pack
        monkeypatch.setattr(
            network.backend.kernels, "pack", lambda w, x, out: (packed.append(x.shape[1]), pack(w, x, out))
        )
        engine.forward(matrices, training=True)
        engine.backward()
        assert max(packed) <= (limit if samples else 13)
        return engine.gradient("w").copy(), engine.gradient("x").copy()

    for first, second in zip(gradients(0), gradients(limit)):
        np.testing.assert_allclose(first, second, rtol=1e-12)


def image_stack(frames):
    """(network of two convolutions, two poolings and an output layer, criterion ce; matrices)."""
    rng = np.random.default_rng(6)
    network = Network("double")
    network.add("ImageInput", "features", width=5, height=8, channels=1)
    network.add("Input", "labels", rows=3)
    for name, rows, cols in (("w1", 4, 9), ("w2", 3, 16), ("w3", 3, 6)):
        network.add("Parameter", name, rows=rows, cols=cols, initValueScale=10)
        network.set_value(name, rng.standard_normal((rows, cols)) / 3)
    network.add("Convolution", "c1", "w1", "features", **convolution_options(4, (3, 3), (1, 1), False))  # 3x6x4
    network.add("Parameter", "b1", rows=4, initValueScale=10)
    network.add("RectifiedLinear", "r1", network.add("Plus", "a1", "c1", "b1"))
    network.add("MaxPooling", "p1", "r1", windowWidth=1, windowHeight=2, stepW=1, stepH=2)  # 3x3x4
    network.add("Convolution", "c2", "w2", "p1", **convolution_options(3, (2, 2), (1, 1), False))  # 2x2x3
    network.add("Sigmoid", "s2", "c2")
    network.add("AveragePooling", "p2", "s2", windowWidth=2, windowHeight=1, stepW=1, stepH=1)  # 1x2x3
    network.add("Times", "z", "w3", "p2")
    network.add("CrossEntropyWithSoftmax", "ce", "labels", "z")
    network.criteria.append("ce")
    labels = np.zeros((3, frames), order="F")
    labels[rng.integers(0, 3, frames), np.arange(frames)] = 1
    matrices = {"features": np.asfortranarray(rng.standard_normal((40, frames))), "labels": labels}
    return network, matrices


def test_gradients_of_a_stack_of_image_nodes():
    network, matrices = image_stack(5)
    for comparison in check_gradients(network, "ce", matrices, epsilon=1e-6):
        assert comparison.error < TOLERANCE, comparison


def test_a_stack_of_image_nodes_shares_its_frames_out():
    """The same criterion and gradients with and without threads, shared buffers and fusion."""
    network, matrices = image_stack(160)
    network.backend.__dict__["team"] = type(network.backend.team)(3)
    results = []
    for settings in ({"threads": 1, "options": EngineOptions.plain()}, {"threads": 1}, {"threads": 3}):
        engine = Engine(network, ["ce"], **settings)
        assert engine.max_workers == settings["threads"]
        for _ in range(2):
            engine.forward(matrices, training=True)
            loss = engine.value("ce").copy()
            engine.backward()
        results.append([loss, *(engine.gradient(name).copy() for name in ("w1", "b1", "w2", "w3"))])
    for other in results[1:]:
        for first, second in zip(results[0], other):
            np.testing.assert_allclose(first, second, rtol=1e-10)


def test_images_pass_through_nodes_that_keep_the_shape():
    network = Network(threads=1)
    network.add("Image", "x", width=3, height=2, channels=2, tag="feature")
    network.add("Sigmoid", "y", "x")
    network.add("Dropout", "z", "y")
    network.add("ElementTimes", "e", "z", "x")
    assert network.features == ["x"]
    assert image_of(network.shapes["e"]) == Image(3, 2, 2)
    assert network.shapes["e"] == Shape(12, None)
    assert str(network.shapes["e"]) == "12x* (image 3x2x2)"
    assert image_of(network.shapes["e"].with_columns(5)) == Image(3, 2, 2)
    assert image_of(keep_image(Shape(11, None), network.shapes["e"])) is None
    assert keep_image(Shape(12, None), Shape(12, 1), network.shapes["e"]) == ImageShape(Image(3, 2, 2), None)


def test_an_image_network_is_saved_and_loaded(tmp_path):
    rng = np.random.default_rng(9)
    network, matrices = network_over(Image(4, 5, 2), 3, rng)
    network.add("Parameter", "w", rows=3, cols=12, initValueScale=20)
    network.add("Convolution", "c", "w", "y", **convolution_options(3, (2, 3), (1, 1), False))
    network.add("MaxPooling", "m", "c", windowWidth=2, windowHeight=1, stepW=1, stepH=1)
    network.add("AveragePooling", "a", "m", windowWidth=1, windowHeight=3, stepW=1, stepH=1)
    network.add("Parameter", "wt", rows=2, cols=2, initValueScale=20)
    network.add("TimeConvolution", "t", "wt", "a", offsets="0:2")
    save_model(network, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.shapes == network.shapes
    for first, second in zip(values_of(network, matrices, ["t"]), values_of(loaded, matrices, ["t"])):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("type_name", "w", "options", "message"),
    [
        (
            "Convolution",
            (3, 11),
            {},
            r"w \S+ is 3x11, image \S+ is 40x\* \(image 4x5x2\); expected w to have 12 columns",
        ),
        ("Convolution", (2, 12), {}, r"w \S+ is 2x12.*expected w to have 3 rows, outputChannels"),
        ("Convolution", (3, 12), {"kernelWidth": 5}, r"expected a window of at most 4x5, not 5x3"),
        ("Convolution", (3, 12), {"verticalSubsample": 0}, r"expected window 2x3 and steps 1, 0 to be at least 1"),
        ("Convolution", (3, 12), {"imageLayout": "CHW"}, r"imageLayout='CHW'; expected one of HWC"),
        ("TimeConvolution", (3, 12), {"offsets": "0:1:x"}, r"offsets='0:1:x'; expected integers such as -2:0:2"),
        ("TimeConvolution", (3, 12), {"offsets": "0:0"}, r"offsets='0:0'; expected each number once"),
        ("TimeConvolution", (3, 20), {"offsets": "0:5"}, r"expected offsets that span at most 4 frames, not 6"),
        ("TimeConvolution", (3, 21), {"offsets": "0:5"}, r"w \S+ is 3x21.*expected w to have 2 d columns"),
    ],
)
def test_what_does_not_fit_is_named(type_name, w, options, message):
    network, _ = network_over(Image(4, 5, 2), 1, np.random.default_rng(0))
    network.add("Parameter", "w", rows=w[0], cols=w[1])
    given = convolution_options(3, (2, 3), (1, 1), False) if type_name == "Convolution" else {}
    with pytest.raises((ModelError, ShapeError), match=rf"node 'v' \({type_name}\): .*{message}"):
        network.add(type_name, "v", "w", "y", **{**given, **options})


def test_numbers_of_pixels_beyond_all_images_are_refused_at_once():
    network = Network(threads=1)
    with pytest.raises(ModelError, match=r"height=1e\+300; expected an integer of at most 2\^53"):
        network.add("ImageInput", "y", width=4, height=1e300, channels=1)
    network.add("ImageInput", "y", width=4, height=2**40, channels=1)
    network.add("Parameter", "w", rows=2, cols=9)
    network.add("Convolution", "v", "w", "y", **convolution_options(2, (3, 3), (1, 1), True))
    assert image_of(network.shapes["v"]) == Image(4, 2**40, 2)


def test_a_column_that_is_no_image_is_refused():
    network = Network(threads=1)
    network.add("Input", "x", rows=12)
    options = {"windowWidth": 1, "windowHeight": 1, "stepW": 1, "stepH": 1}
    with pytest.raises(
        ShapeError, match=r"'v' \(MaxPooling\): m \S+ is 12x\*; expected an image, which comes from ImageInp"
    ):
        network.add("MaxPooling", "v", "x", **options)


@pytest.mark.parametrize("type_name", ["Plus", "Minus"])
@pytest.mark.parametrize("bias_first", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_column_with_a_number_per_channel_is_repeated_over_the_image(type_name, bias_first, threads):
    rng = np.random.default_rng(11)
    network, matrices = network_over(Image(2, 3, 4), 70, rng)
    network.backend.__dict__["team"] = type(network.backend.team)(threads)
    network.add("Parameter", "bias", rows=4, initValueScale=20)
    network.add(type_name, "v", *(("bias", "y") if bias_first else ("y", "bias")))
    assert image_of(network.shapes["v"]) == Image(2, 3, 4)
    y, v = values_of(network, matrices, ["y", "v"])
    bias, sign = np.tile(network["bias"].value, (6, 1)), -1 if type_name == "Minus" else 1
    np.testing.assert_allclose(v, bias + sign * y if bias_first else y + sign * bias)
    network.add("SumElements", "J", network.add("Sigmoid", "s", "v"))
    for comparison in check_gradients(network, "J", matrices):
        assert comparison.error < TOLERANCE, comparison


def test_a_matrix_is_not_repeated_downwards():
    network = Network(threads=1)
    for name, rows in (("a", 2), ("b", 4)):
        network.add("Parameter", name, rows=rows, cols=2)
    with pytest.raises(ShapeError, match=r"X \S+ is 2x2, Y \S+ is 4x2; expected rows equal"):
        network.add("Plus", "c", "a", "b")


def test_training_limits_what_every_convolution_packs():
    from acoustic.nodes.convolution import limit_packing

    network, _ = image_stack(40)
    limit_packing(network, 3)
    assert [network[name].settings["maxTempMemSizeInSamples"] for name in ("c1", "c2")] == [3, 3]
    assert network["c1"].images_at_a_time(PassContext(network.backend)) <= 3


def test_the_limit_of_a_training_configuration_reaches_the_convolutions(array_reader):
    from acoustic.training.options import TrainingOptions
    from acoustic.training.sgd import train

    network, matrices = image_stack(40)
    options = TrainingOptions(max_epochs=1, learning_rates_per_sample=0.001, minibatch_size=20, packed_samples=4)
    train(network, array_reader(**matrices), options)
    assert network["c2"].settings["maxTempMemSizeInSamples"] == 4
