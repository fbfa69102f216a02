"""Node types of other packages, and the page that says how to write one: its code is run as it stands there."""

import re

import numpy as np
import pytest

from acoustic.descriptions.ndl.evaluate import Scope
from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients, compare_with_forward_mode
from acoustic.network.network import Network
from acoustic.nodes import base, registry
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdaGrad, Momentum
from acoustic.training.update import Updater
from readers.common import extensions
from readers.config.syntax import Source
from readers.errors import ConfigError
from tests.acoustic.recurrence.recurrent_networks import HEAD, check_numerically, data, randomise, whole
from tests.docs.pages import page_text

PAGE = page_text("nodes")
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """install(code): a package `my_nodes`, declared as the page says, in a registry of this test's own."""
    list(registry.registered_nodes())
    registered = dict(base.REGISTRY)
    for module in (base, registry):
        monkeypatch.setattr(module, "REGISTRY", registered)
    extensions._packages.cache_clear()

    def write(code, module):
        (tmp_path / f"{module}.py").write_text(code, encoding="utf-8")
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[argonaut.extensions]\nmine = {module}\n", encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)

    yield write
    extensions._packages.cache_clear()


def test_the_page_from_top_to_bottom(install):
    install("\n".join(CODE[:3]), "my_nodes_of_the_page")
    assert registry.node_class("squash").__name__ == "SoftSign"
    assert registry.node_class("PowerSum").positional_arguments() == ("p", "X", "weights")
    assert registry.node_class("PowerSum") in set(registry.registered_nodes())
    exec(CODE[3], {})
    network = Network("double", threads=1)
    network.add("Parameter", "x", rows=3, cols=4, initValueScale=30)
    network.add("SumElements", "J", network.add("SoftSign", "v", "x"))
    engine = Engine(network, ["v"])
    engine.forward()
    x = network["x"].value
    np.testing.assert_allclose(engine.value("v"), np.sign(x) * (1 - 1 / (1 + np.abs(x))), rtol=1e-12)
    for comparison in (*check_gradients(network, "J", {}), *compare_with_forward_mode(network, "J", {})):
        assert comparison.error < 1e-8


def test_a_package_that_cannot_be_imported_is_named(install):
    install("import a_module_that_is_not_there\n", "my_broken_nodes")
    message = "^extension of my_broken_nodes: my_broken_nodes: ModuleNotFoundError: No module named 'a_module_that"
    with pytest.raises(ConfigError, match=message):
        registry.node_class("Mine")
    assert registry.node_class("Sigmoid").type_name == "Sigmoid"  # what the project has itself stays known


def test_a_name_that_is_taken_is_refused(install):
    code = "from acoustic.nodes.base import Node, register_node\n\n\n"
    code += '@register_node("sigmoid")\nclass Mine(Node):\n    "X"\n'
    install(code, "my_second_sigmoid")
    with pytest.raises(ConfigError, match="ValueError: node type 'sigmoid' is already Sigmoid"):
        registry.node_class("Mine")


# ---- sparse gradients


class Whole(Updater):
    """An updater that never takes columns alone."""

    def __init__(self, network, options):
        super().__init__(network, options)
        self.takes_touched = False


class Columns(Updater):
    """An updater that takes no whole gradient of E."""

    def __call__(self, node, gradient):
        assert node.name != "E"
        super().__call__(node, gradient)


ADDS_TWICE = """
    def backward(self, context, grad, inputs, value, grads):
        if grads.needs(0):
            super().backward(context, grad, inputs, value, grads)
            super().backward(context, grad, inputs, value, grads)
"""
ADDS_NOTHING_FOR_0 = """
    def forward(self, context, e, index, *, out):
        super().forward(context, e, index, out=out)
        out *= index != 0

    def backward(self, context, grad, inputs, value, grads):
        if grads.needs(0) and inputs[1].any():
            super().backward(context, grad * (inputs[1] != 0), inputs, value, grads)
"""


def derived(body):
    return CODE[2] + f"\n\n@register_node('Derived')\nclass Derived(PickColumns):{body}"


def pick(type_name, threads=1):
    network = Network("double", threads=threads)
    network.add("Input", "index", rows=1)
    network.add("Parameter", "E", rows=3, cols=20)
    network.add("Parameter", "W", rows=2, cols=3)
    network.add("Times", "z", "W", network.add(type_name, "v", "E", "index"))
    network.add("SumElements", "J", network.add("Tanh", "h", "z"))
    return network


def numbers(seed, words=20):
    return {"index": np.asfortranarray(np.random.default_rng(seed).integers(0, words, (1, 64)).astype(float))}


def trained(updater_type, type_name, threads, minibatches, rule=None, momentum=0.0):
    network = pick(type_name, threads)
    engine = Engine(network, ["J"])
    updater = updater_type(network, TrainingOptions(1, learning_rates_per_sample=1.0, rule=rule or Momentum()))
    for index in minibatches:
        updater.begin(0.01, momentum, 64)
        engine.forward(index, training=True)
        engine.backward("J", updater)
    return network["E"].value


@pytest.mark.parametrize("threads", [1, 2])
def test_the_sparse_gradient_of_the_page(install, threads):
    install(CODE[2], f"my_sparse_nodes_{threads}")
    network = pick("PickColumns", threads)
    for comparison in (
        *check_gradients(network, "J", numbers(0)),
        *compare_with_forward_mode(network, "J", numbers(0)),
    ):
        assert comparison.error < 1e-8
    minibatches = [numbers(seed, words) for seed, words in enumerate((20, 7, 20))]
    for rule, momentum in ((Momentum(), 0.0), (AdaGrad(normalise=False), 0.0)):
        columns = trained(Columns, "PickColumns", threads, minibatches, rule, momentum)
        np.testing.assert_allclose(columns, trained(Whole, "PickColumns", threads, minibatches, rule, momentum), 1e-12)
    columns = trained(Columns, "PickColumns", threads, minibatches, Momentum(), 0.9)
    np.testing.assert_allclose(columns, trained(Columns, "PickColumns", 1, minibatches, Momentum(), 0.9), 1e-12)


@pytest.mark.parametrize("updater_type", [Whole, Columns])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_gradient_to_which_a_node_adds_nothing_is_zero(install, threads, updater_type):
    install(derived(ADDS_NOTHING_FOR_0), f"my_idle_nodes_{threads}_{updater_type.__name__}")
    minibatches = [numbers(0), numbers(1, words=1)]
    before = trained(updater_type, "Derived", threads, minibatches[:1])
    np.testing.assert_array_equal(trained(updater_type, "Derived", threads, minibatches), before)
    network = pick("Derived", threads)
    (slope,) = (each for each in check_gradients(network, "J", minibatches[1]) if each.parameter == "E")
    assert slope.computed == 0


RESTS = """
from acoustic.nodes.base import Node, Shape, register_node


@register_node("Rest")
class Rest(Node):
    operand_names = ("X", "w")
    backward_reads = ((), ())

    def infer_shape(self, x, w):
        return Shape(1, 1) if self.sums_frames else x

    def forward(self, context, x, w, *, out):
        out.fill(0)

    def backward(self, context, grad, inputs, value, grads):
        pass


@register_node("RestOfFrames")
class RestOfFrames(Rest):
    sums_frames = True

    def splits_frames(self, x, w):
        return True
"""
IN_A_LOOP = """
past = PastValue(3, 1, top)
still = Rest(past, Parameter(3, 1))
top = Tanh(Plus(still, Times(Parameter(3, 4), x)))
J = Plus(CrossEntropyWithSoftmax(labels, top), RestOfFrames(top, Parameter(3, 1)))
"""


def test_the_same_in_a_loop_and_between_gaps(install, monkeypatch):
    install(RESTS, "my_resting_nodes")
    monkeypatch.setattr("acoustic.kernels.backend.Backend.memory", lambda self, size: np.full(size, np.nan))
    network = Network("double", threads=1)
    Scope(network).evaluate(Source.from_text(HEAD + IN_A_LOOP, "net.ndl"))
    check_numerically(randomise(network), *whole(*data((5, 3, 4))))


def test_columns_that_are_handed_over_take_no_second_addition(install):
    install(derived(ADDS_TWICE), "my_hasty_nodes")
    with pytest.raises(ValueError, match=r"^operand 0: gradient added to a second time; expected one"):
        trained(Updater, "Derived", 1, [numbers(0)])
