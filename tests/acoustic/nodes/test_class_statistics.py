"""The scale of the classes and the LDA-like transform, by their definitions, and the networks that have them."""

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.nodes.class_statistics import lda_like_transform
from acoustic.training.procedures.precompute import precompute
from readers.config.config import Config
from readers.errors import ConfigError, ShapeError

CLASSES, DIM, FRAMES = 7, 4, 600


def data(seed=0):
    """Features (DIM, FRAMES) of classes that differ most along one direction, labels (CLASSES, FRAMES), classes."""
    rng = np.random.default_rng(seed)
    mixing, means = rng.normal(size=(DIM, DIM)), rng.normal(size=(CLASSES, DIM)) * (3, 1, 0.3, 0.1)
    classes = rng.integers(0, CLASSES, FRAMES)
    x = mixing @ (means[classes] + rng.normal(size=(FRAMES, DIM))).T + 2
    return np.asfortranarray(x), np.asfortranarray(np.eye(CLASSES)[classes].T), classes


def statistic(kind, x, labels, parts=3, **options):
    """The value of a statistic over the columns in parts."""
    network = Network("double", threads=1)
    network.add("Input", "x", rows=x.shape[0])
    network.add("Input", "labels", rows=labels.shape[0])
    operands = ("x", "labels") if kind == "LDATransform" else ("labels",)
    network.add(kind, "s", *operands, **options)
    cuts = np.array_split(np.arange(x.shape[1]), parts)
    sweep = [{"x": np.asfortranarray(x[:, cut]), "labels": np.asfortranarray(labels[:, cut])} for cut in cuts]
    assert precompute(network, lambda: sweep) == ["s"]
    return network["s"].value


def covariances(x, classes):
    """(within, between), class by class."""
    mean = x.mean(axis=1)
    within, between = np.zeros((len(x), len(x))), np.zeros((len(x), len(x)))
    for one in np.unique(classes):
        mine = x[:, classes == one]
        share = mine.shape[1] / x.shape[1]
        within += share * np.cov(mine, bias=True)
        between += share * np.outer(mine.mean(axis=1) - mean, mine.mean(axis=1) - mean)
    return within, between


def test_class_scale_by_hand():
    """Counts 0, 1 and 5, each with a hundredth of their average 2 added."""
    labels = np.eye(3)[[2, 2, 1, 2, 2, 2]].T
    raw = np.array([0.02, 1.02, 5.02]) ** -0.25
    found = statistic("ClassScale", labels, labels)
    np.testing.assert_allclose(found[:, 0], raw / raw.mean(), rtol=1e-12)
    assert found.mean() == pytest.approx(1)
    np.testing.assert_allclose(statistic("ClassScale", labels, labels, power=0.0), 1)


@pytest.mark.parametrize("parts", [1, 5])
def test_lda_transform_leaves_the_covariance_that_the_source_says(parts):
    x, labels, classes = data()
    matrix = statistic("LDATransform", x, labels, parts, maxSingularValue=1e9)
    ratios = np.sort(np.linalg.eigvals(np.linalg.solve(*covariances(x, classes))).real)[::-1]
    np.testing.assert_allclose(np.cov(matrix @ x, bias=True), np.diag(ratios + 0.001), atol=1e-9)
    assert ratios[0] > 10 * ratios[-1]


def test_lda_transform_does_not_depend_on_how_the_features_are_mixed():
    x, labels, _ = data()
    mixed = np.random.default_rng(5).normal(size=(DIM, DIM)) @ x
    first, second = (statistic("LDATransform", one, labels, maxSingularValue=1e9) @ one for one in (x, mixed))
    signs = np.sign((first * second).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(first, signs * second, atol=1e-6)


def test_large_singular_values_are_cut_and_the_others_stay():
    x, _, classes = data()
    within, between = covariances(0.01 * x, classes)
    free = lda_like_transform(np, within, between, largest=1e9)
    u, singular, v = np.linalg.svd(free)
    limit = float(np.median(singular))
    np.testing.assert_allclose(
        lda_like_transform(np, within, between, largest=limit), (u * np.minimum(singular, limit)) @ v, atol=1e-9
    )


def test_soft_labels_count_by_their_weights():
    """A frame that is half of one class and half of another is two frames of half the weight."""
    x, labels, _ = data()
    soft = 0.5 * labels + 0.5 * np.roll(labels, 1, axis=0)
    twice = statistic("LDATransform", np.hstack([x, x]), np.hstack([labels, np.roll(labels, 1, axis=0)]))
    np.testing.assert_allclose(statistic("LDATransform", x, soft), twice, atol=1e-8)


@pytest.mark.parametrize("kind", ["constant row", "one class", "all zero", "one frame"])
def test_degenerate_data_give_a_finite_transform(kind):
    x, labels, _ = data()
    if kind == "constant row":
        x[1] = 3
    elif kind == "one class":
        labels = np.eye(CLASSES)[np.zeros(FRAMES, int)].T
    elif kind == "all zero":
        x[...] = 0
    else:
        x, labels = x[:, :1], labels[:, :1]
    matrix = statistic("LDATransform", x, labels, parts=1)
    assert np.isfinite(matrix).all()
    assert np.linalg.norm(matrix, 2) <= 5 + 1e-9


def test_bad_operands_and_options_are_named():
    network = Network(threads=1)
    network.add("Input", "x", rows=2)
    network.add("Constant", "c", value=1, rows=3, cols=4)
    with pytest.raises(
        ShapeError, match=r"node 's' \(LDATransform\): X 'x' is 2x\*, labels 'c' is 3x4; expected one col"
    ):
        network.add("LDATransform", "s", "x", "c")
    with pytest.raises(ShapeError, match="expected withinClass of at least 0 and maxSingularValue above 0"):
        network.add("LDATransform", "s", "x", "x", maxSingularValue=0)


def options_of(text):
    return simple_network_options(Config.from_text(f"B=[\n{text}\n]", "net.cntk").block("B"))


def test_the_simple_builder_puts_both_where_they_belong(tmp_path):
    text = f"layerSizes={DIM}:5:{CLASSES}\nclassScalePower=-0.25\napplyLDATransform=true\nneedPrior=true"
    text += "\nldaWithinClass=0.5"
    network = build_simple_network(options_of(text), "double")
    for node, below in {
        "CentredFeatures": ["features", "MeanOfFeatures"],
        "LDATransformOfFeatures": ["features", "labels"],
        "TransformedFeatures": ["LDATransformOfFeatures", "CentredFeatures"],
        "W0*features": ["W0", "TransformedFeatures"],
        "HLast": ["HLastUnscaled", "ClassScale"],
        "CrossEntropyWithSoftmax": ["labels", "HLast"],
        "ScaledLogLikelihood": ["HLast", "LogOfPrior"],
    }.items():
        assert [operand.name for operand in network[node].operands] == below
    assert network["LDATransformOfFeatures"].settings["withinClass"] == 0.5
    x, labels, classes = data()
    precompute(network, lambda: [{"features": x, "labels": labels}])
    matrix = network["LDATransformOfFeatures"].value
    save_model(network, tmp_path / "m")
    engine = Engine(load_model(tmp_path / "m"), ["TransformedFeatures", "HLastUnscaled", "HLast"])
    assert engine.inputs == ["features"]  # labels are asked for before training alone
    engine.forward({"features": np.asfortranarray(x, dtype=np.float32)})
    expected = matrix @ (x - x.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(engine.value("TransformedFeatures"), expected, rtol=1e-3, atol=1e-3)
    scales = (np.bincount(classes) + 0.01 * FRAMES / CLASSES) ** -0.25
    found = engine.value("HLast") / engine.value("HLastUnscaled")
    np.testing.assert_allclose(found, np.tile((scales / scales.mean())[:, None], FRAMES), rtol=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "applyLDATransform=true\napplyMeanVarNorm=true",
            r"net\.cntk:3: B\.applyLDATransform is given beside applyMeanVarN",
        ),
        ("applyLDATransform=true\nldaWithinClass=2", "ldaWithinClass is 2; expected 0 to 1"),
        ("classScalePower=-2", "classScalePower is -2; expected -1 to 1"),
    ],
)
def test_faults_of_the_block(text, message):
    with pytest.raises(ConfigError, match=message):
        options_of(f"layerSizes=4:3:2\n{text}")
