"""Every update rule: three steps worked out one by one, the compiled loops against the plain ones and interpreted."""

import math

import numpy as np
import pytest

from acoustic.kernels.backend import Backend
from acoustic.network.network import Network
from acoustic.runtime.thread_team import ThreadTeam
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import (
    RULES,
    AdaGrad,
    AdamW,
    FsAdaGrad,
    Momentum,
    RmsProp,
    Step,
    compiled_loops,
    rule_kernels,
)
from acoustic.training.rules.arrays import AdamSettings, ArrayRules, RmsSettings
from acoustic.training.rules.compiled import CompiledRules
from acoustic.training.update import Updater

RATE, FRAMES = 0.1, 4
GRADIENTS = [(2.0, -1.0), (1.0, 3.0), (-4.0, 0.5)]  # of the two elements of a parameter, three minibatches


def weights_after(rule, precision="double", momentum=0.5, **options) -> list[np.ndarray]:
    """The two weights, 1 and -1 at first, after each of the three updates."""
    network = Network(precision)
    network.add("LearnableParameter", "w", rows=2)
    network["w"].value[...] = [[1.0], [-1.0]]
    updater = Updater(network, TrainingOptions(1, learning_rates_per_sample=1.0, rule=rule, **options))
    after = []
    for gradient in GRADIENTS:
        updater.begin(RATE, momentum, FRAMES)
        updater(network["w"], network.backend.asarray(np.array([gradient]).T))
        after.append(network["w"].value[:, 0].copy())
    return after


@pytest.mark.parametrize("precision", ["float", "double"])
def test_adagrad_by_hand(precision):
    # squares: (4, 1), (5, 10), (21, 10.25)
    first = (1 - 0.1 * 2 / 2, -1 + 0.1 * 1 / 1)
    second = (first[0] - 0.1 * 1 / math.sqrt(5), first[1] - 0.1 * 3 / math.sqrt(10))
    third = (second[0] + 0.1 * 4 / math.sqrt(21), second[1] - 0.1 * 0.5 / math.sqrt(10.25))
    after = weights_after(AdaGrad(normalise=False), precision)
    np.testing.assert_allclose(after, [first, second, third], rtol=1e-6)


@pytest.mark.parametrize("precision", ["float", "double"])
def test_adagrad_normalised_by_hand(precision):
    # The factors 1/sqrt(squares) and their means: (1/2, 1) 3/4; ...
    factors = [(1 / 2, 1.0), (1 / math.sqrt(5), 1 / math.sqrt(10)), (1 / math.sqrt(21), 1 / math.sqrt(10.25))]
    w, expected = [1.0, -1.0], []
    for (u1, u2), (g1, g2) in zip(factors, GRADIENTS):
        mean = (u1 + u2) / 2
        w = [w[0] - 0.1 * g1 * u1 / mean, w[1] - 0.1 * g2 * u2 / mean]
        expected.append(w)
    np.testing.assert_allclose(weights_after(AdaGrad(), precision), expected, rtol=1e-6)


@pytest.mark.parametrize("kernels", [ArrayRules(np), CompiledRules()], ids=["plain", "compiled"])
def test_weights_that_never_had_a_gradient_do_not_count_in_the_mean(kernels):
    def column(*values):
        return np.array([values], dtype=np.float32).T.copy(order="F")

    step = Step(0.1, 0.0, 1, math.inf, 0.0, 0.0)
    gradient = column(2, 0, -4)
    assert kernels.adagrad_scale(column(0, 0, 0), gradient, column(0, 0, 0), step) == pytest.approx(3 / 8)
    assert gradient[:, 0].tolist() == pytest.approx([1, 0, -1])  # 0, not 0 / 0
    assert kernels.adagrad_scale(column(0, 0), column(0, 0), column(0, 0), step) == 1.0
    settings = RmsSettings(0.0, 1.2, 0.75, 10.0, 0.1)
    state = column(0, 0, 0), column(1, 1, 1), column(1, 1, 1)
    mean = kernels.rmsprop_scale(column(0, 0, 0), column(2, 0, 4), state, step, settings)
    assert mean == pytest.approx((1.2 / 2 + 1.2 / 4) / 2, rel=1e-5)


RMS_OPTIONS = {"gamma": 0.9, "increase": 1.5, "decrease": 0.5, "largest": 0.12, "smallest": 0.1}


def rms_factors() -> list[tuple[float, float]]:
    """Gradients 2, 1, -4: the sign stays once, then changes; -1, 3, 0.5: it changes, then stays."""
    # Steps begin at 0.02, fall to the smallest, 0.1, at first; 0.1 * 1.5 is cut at 0.12; 0.12 * 0.5 is raised to 0.1.
    steps = [(0.1, 0.1), (0.12, 0.1), (0.1, 0.12)]
    r = [(4.0, 1.0), (0.9 * 4 + 0.1 * 1, 0.9 * 1 + 0.1 * 9)]
    r.append((0.9 * r[1][0] + 0.1 * 16, 0.9 * r[1][1] + 0.1 * 0.25))
    return [(s1 / math.sqrt(r1 + 1e-6), s2 / math.sqrt(r2 + 1e-6)) for (s1, s2), (r1, r2) in zip(steps, r)]


@pytest.mark.parametrize("precision", ["float", "double"])
@pytest.mark.parametrize("normalise", [False, True])
def test_rmsprop_by_hand(precision, normalise):
    w, expected = [1.0, -1.0], []
    for (u1, u2), (g1, g2) in zip(rms_factors(), GRADIENTS):
        mean = (u1 + u2) / 2 if normalise else 1
        w = [w[0] - 0.1 * g1 * u1 / mean, w[1] - 0.1 * g2 * u2 / mean]
        expected.append(w)
    np.testing.assert_allclose(
        weights_after(RmsProp(**RMS_OPTIONS, normalise=normalise), precision), expected, rtol=1e-6
    )


@pytest.mark.parametrize("precision", ["float", "double"])
def test_fsadagrad_by_hand(precision):
    d = math.exp(-4 / 720000)
    w, v, a, k, expected = [1.0, -1.0], [0.0, 0.0], [0.0, 0.0], 0.0, []
    for gradient in GRADIENTS:
        k = d * k + (1 - d) * 4
        for i, g in enumerate(gradient):
            a[i] = d * a[i] + (1 - d) * g * g
            v[i] = 0.5 * v[i] + 0.5 * g * min(math.sqrt(k / a[i]), 10)
            w[i] -= 0.1 * v[i]
        expected.append(list(w))
    # At first all that is remembered is this minibatch: a/k = g^2/4.
    assert expected[0][0] == pytest.approx(1 - 0.1 * 0.5 * 2 * math.sqrt(4 / 4))
    np.testing.assert_allclose(weights_after(FsAdaGrad(), precision), expected, rtol=2e-5)


def test_fsadagrad_multiplies_by_ten_at_most():
    rule, kernels = FsAdaGrad(), ArrayRules(np)
    scalars = {}
    rule.advance(scalars, 10_000)
    for arithmetic, dtype in ((kernels, "f8"), (CompiledRules(), "f4")):
        weight = np.zeros((2, 1), dtype, order="F")
        state = [np.zeros_like(weight) for _ in range(2)]
        gradient = np.array([[0.5], [0.0]], dtype, order="F")
        rule.update(arithmetic, weight, gradient, state, scalars, Step(1.0, 0.0, 10_000, math.inf, 0.0, 0.0))
        np.testing.assert_allclose(weight[:, 0], [-5.0, 0.0])


@pytest.mark.parametrize("precision", ["float", "double"])
def test_adamw_by_hand(precision):
    rule = AdamW(beta1=0.5, beta2=0.75, epsilon=0.01, decay=0.2)
    # h = g / 4; rate 0.1 * 4 = 0.4.  First update: p' = h, q' = h^2.
    first = 1 - 0.4 * (0.5 / (0.5 + 0.01) + 0.2 * 1)
    # p = 0.5 * 0.25 + 0.5 * 0.25 = 0.25, p' = 0.25 / 0.75; q = 0.75 * 0.0625 + 0.25 * 0.0625, q' = q / (1 - 0.5625)
    second = first - 0.4 * ((0.25 / 0.75) / (math.sqrt(0.0625 / 0.4375) + 0.01) + 0.2 * first)
    # p = 0.5 * 0.25 - 0.5 * 1, p' = p / 0.875; q = 0.75 * 0.0625 + 0.25, q' = q / (1 - 0.421875)
    third = second - 0.4 * ((-0.375 / 0.875) / (math.sqrt(0.296875 / 0.578125) + 0.01) + 0.2 * second)
    after = weights_after(rule, precision)
    np.testing.assert_allclose([w[0] for w in after], [first, second, third], rtol=1e-6)


def test_adamw_is_that_of_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=(7, 5)), rng.normal(size=(6, 7, 5))
    network = Network("double")
    network.add("LearnableParameter", "w", rows=7, cols=5)
    network["w"].value[...] = start
    updater = Updater(network, TrainingOptions(1, learning_rates_per_sample=1.0, rule=AdamW(decay=0.05)))
    theirs = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimiser = torch.optim.AdamW([theirs], lr=0.02, weight_decay=0.05)
    for gradient in gradients:
        updater.begin(0.02 / 8, 0.0, 8)
        updater(network["w"], np.asfortranarray(8 * gradient))  # a sum over 8 frames
        theirs.grad = torch.from_numpy(gradient)
        optimiser.step()
    np.testing.assert_allclose(network["w"].value, theirs.detach().numpy(), rtol=1e-10)


def test_adagrad_is_that_of_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    start, gradients = rng.normal(size=(7, 5)), rng.normal(size=(6, 7, 5))
    network = Network("double")
    network.add("LearnableParameter", "w", rows=7, cols=5)
    network["w"].value[...] = start
    updater = Updater(network, TrainingOptions(1, learning_rates_per_sample=1.0, rule=AdaGrad(False)))
    theirs = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimiser = torch.optim.Adagrad([theirs], lr=0.02, eps=0)
    for gradient in gradients:
        updater.begin(0.02, 0.0, 8)
        updater(network["w"], np.asfortranarray(gradient))
        theirs.grad = torch.from_numpy(gradient)
        optimiser.step()
    np.testing.assert_allclose(network["w"].value, theirs.detach().numpy(), rtol=1e-10)


RULE_LIST = [
    Momentum(),
    Momentum(nesterov=True),
    AdaGrad(),
    AdaGrad(normalise=False),
    RmsProp(),
    RmsProp(normalise=False),
    FsAdaGrad(),
    AdamW(),
]
REGULARISED = {"limit": 0.7, "l2": 0.3, "shrink": 0.004}


def run_rule(rule, kernels, dtype, shape, settings, updates=4):
    rng = np.random.default_rng(5)
    weight, *gradients = (np.asfortranarray(rng.normal(size=shape)).astype(dtype) for _ in range(updates + 1))
    state = []
    for value in rule.state.values():
        state.append(np.full(shape, value, dtype, order="F"))
    scalars = {}
    for number, gradient in enumerate(gradients):
        if number == 2:
            gradient[:, 0] = 0
        rule.advance(scalars, 8)
        step = Step(0.05, 0.7, 8, **({"limit": math.inf, "l2": 0.0, "shrink": 0.0} | settings))
        rule.update(kernels, weight, gradient, state, scalars, step)
    return [weight, *state]


@pytest.mark.parametrize("settings", [{}, REGULARISED], ids=["plain", "regularised"])
@pytest.mark.parametrize(("shape", "threads"), [((5, 3), 1), ((257, 200), 1), ((257, 200), 3)])
@pytest.mark.parametrize("rule", RULE_LIST, ids=str)
def test_compiled_rules_against_the_plain_ones_in_double(rule, shape, threads, settings):
    ours = run_rule(rule, CompiledRules(ThreadTeam(threads)), np.float32, shape, settings)
    expected = run_rule(rule, ArrayRules(np), np.float64, shape, settings)
    for mine, theirs in zip(ours, expected):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("rule", RULE_LIST, ids=str)
def test_regularisation_in_the_order_of_the_tool(rule):
    """Clip, L2, rule, shrink: the same as the bare rule on gradients that were prepared, then shrunk."""
    limit, l2, l1 = 0.4, 0.05, 0.02
    after = weights_after(rule, clipping_threshold=limit, l2_weight=l2, l1_weight=l1)
    network = Network("double")
    network.add("LearnableParameter", "w", rows=2)
    network["w"].value[...] = [[1.0], [-1.0]]
    updater = Updater(network, TrainingOptions(1, learning_rates_per_sample=1.0, rule=rule))
    for gradient, expected in zip(GRADIENTS, after):
        w = network["w"].value
        prepared = np.clip(np.array([gradient]).T, -limit * FRAMES, limit * FRAMES) + l2 * FRAMES * w
        updater.begin(RATE, 0.5, FRAMES)
        updater(network["w"], np.asfortranarray(prepared))
        w[...] = np.sign(w) * np.maximum(np.abs(w) - RATE * l1 * FRAMES, 0)
        np.testing.assert_allclose(w[:, 0], expected, rtol=1e-12)


def singles(first, count):
    return [np.float32(first + 0.1 * k) for k in range(count)]


PENALTY = compiled_loops.Penalty(*singles(0.6, 3))
RMS, ADAM = RmsSettings(*singles(0.9, 5)), AdamSettings(*singles(0.7, 7))
LOOPS = {  # loop: number of arrays, other arguments
    "adagrad": (3, singles(0.5, 4)),
    "adagrad_scale": (3, singles(0.5, 2)),
    "rmsprop": (5, [np.float32(0.5), PENALTY, RMS]),
    "rmsprop_scale": (5, [PENALTY, RMS]),
    "fsadagrad": (4, [*singles(0.5, 2), PENALTY, *singles(0.5, 3)]),
    "adamw": (4, [np.float32(0.5), PENALTY, ADAM]),
}


@pytest.mark.parametrize("name", LOOPS)
def test_compiled_equals_interpreted(name):
    matrices, others = LOOPS[name]

    def arguments():
        rng = np.random.default_rng(2)
        return [*(np.abs(rng.normal(size=21)).astype("f4") * (1 if k else -1) for k in range(matrices)), *others]

    loop, ours, theirs = getattr(compiled_loops, name), arguments(), arguments()
    results = loop(*ours), getattr(loop, "py_func", loop)(*theirs)
    for first, other in zip(ours[:matrices], theirs[:matrices]):
        np.testing.assert_allclose(first, other, rtol=1e-5, atol=1e-6)
    if results[0] is not None:
        assert results[0] == pytest.approx(results[1], rel=1e-5)


@pytest.mark.parametrize("first", [0, 77])
def test_noise_is_the_same_everywhere(first):
    key = 0xFEDCBA9876543210
    ours, theirs = np.zeros((30, 7), np.float32, order="F"), np.zeros((30, 7), order="F")
    CompiledRules().add_noise(ours, key, 0.5, first)
    ArrayRules(np).add_noise(theirs, key, 0.5, first)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert np.isfinite(theirs).all()


def test_gradients_that_are_no_numbers_show_in_the_weights():
    for rule in RULE_LIST:
        weight = np.ones((4, 1), np.float32, order="F")
        gradient = np.array([[1.0, np.nan, np.inf, 2.0]], np.float32).T.copy(order="F")
        state = [np.full_like(weight, value) for value in rule.state.values()]
        scalars = {}
        rule.advance(scalars, 2)
        with np.errstate(all="ignore"):
            rule.update(CompiledRules(), weight, gradient, state, scalars, Step(0.1, 0.5, 2, math.inf, 0.0, 0.0))
        assert not np.isfinite(weight[1, 0]), rule


def test_every_rule_has_names_and_kernels_for_either_precision():
    assert {"none", "normal", "simple", "adagrad", "rmsprop", "fsadagrad", "adamw", "naturalgradient"} == set(RULES)
    assert type(rule_kernels(Backend("double"))) is ArrayRules
    assert type(rule_kernels(Backend("float"))) is CompiledRules


@pytest.mark.parametrize("rule", [Momentum(), Momentum(nesterov=True), AdaGrad(), AdaGrad(normalise=False)], ids=str)
@pytest.mark.parametrize("limit", [math.inf, 0.5])
def test_updates_by_columns(rule, limit):
    """Those named change as they would alone, plain and compiled; the others stay."""
    rng = np.random.default_rng(7)
    columns = np.array([0, 3, 4, 8])
    start = {name: np.abs(rng.standard_normal((5, 9))) for name in ("weight", *rule.state)}
    gradient = rng.standard_normal((5, 4))
    step = Step(0.1, 0.9, 4, limit=limit, l2=0.0, shrink=0.0)
    alone = {name: np.asfortranarray(matrix[:, columns]) for name, matrix in start.items()}
    rule.update(ArrayRules(np), alone["weight"], gradient.copy(order="F"), [*alone.values()][1:], {}, step)
    for kernels, dtype in ((ArrayRules(np), np.float64), (CompiledRules(), np.float32)):
        after = {name: np.asfortranarray(matrix, dtype) for name, matrix in start.items()}
        given = np.asfortranarray(gradient, dtype)
        rule.update_columns(kernels, after["weight"], given, [*after.values()][1:], columns, step)
        for name, matrix in after.items():
            expected = start[name].copy()
            expected[:, columns] = alone[name]
            np.testing.assert_allclose(matrix, expected, rtol=3e-6, atol=3e-7, err_msg=name)


@pytest.mark.parametrize("settings", [{}, {"limit": 0.5}, {"l2": 0.3}, {"l1": 0.4}, {"limit": 1, "l2": 0.1, "l1": 0.2}])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("loops", [ArrayRules(np), CompiledRules()], ids=["plain", "compiled"])
def test_momentum_by_its_formulas(loops, nesterov, settings):
    """Element by element, in double: clip, L2, smooth, step, shrink."""
    rng = np.random.default_rng(1)
    weight, gradient, smoothed = (np.asfortranarray(rng.standard_normal((23, 4)), np.float32) for _ in range(3))
    expected = []
    rate, m, limit = 0.5, 0.75, settings.get("limit", np.inf)
    for w, g, v in zip(*(matrix.ravel(order="F").astype(float) for matrix in (weight, gradient, smoothed))):
        g = min(max(g, -limit), limit) + settings.get("l2", 0) * w
        v = m * v + (1 - m) * rate * g
        w = w - (m * v + (1 - m) * rate * g if nesterov else v)
        w = np.sign(w) * max(abs(w) - rate * settings.get("l1", 0), 0)
        expected.append((w, v))
    step = Step(rate, m, 1, limit=limit, l2=settings.get("l2", 0.0), shrink=rate * settings.get("l1", 0.0))
    loops.momentum(weight, gradient, smoothed, step, nesterov)
    np.testing.assert_allclose(weight.ravel(order="F"), [w for w, _ in expected], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(smoothed.ravel(order="F"), [v for _, v in expected], rtol=1e-5, atol=1e-6)
