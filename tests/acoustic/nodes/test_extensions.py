"""Node types of other packages, and the page that says how to write one: its code is run as it stands there."""

import re

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients, compare_with_forward_mode
from acoustic.network.network import Network
from acoustic.nodes import base, registry
from readers.common import extensions
from readers.errors import ConfigError
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
    install("\n".join(CODE[:2]), "my_nodes_of_the_page")
    assert registry.node_class("squash").__name__ == "SoftSign"
    assert registry.node_class("PowerSum").positional_arguments() == ("p", "X", "weights")
    assert registry.node_class("PowerSum") in set(registry.registered_nodes())
    exec(CODE[2], {})
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
