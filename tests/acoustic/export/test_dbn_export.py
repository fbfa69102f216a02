"""Networks as models of dbn.exe: which layers the format has."""

import numpy as np
import pytest

from acoustic.export.dbn_export import dbn_model
from acoustic.network.network import Network
from readers.errors import ModelError


def network_of(*layers, criterion="CrossEntropyWithSoftmax"):
    """Layers of W x + b from 3 features; each is "Sigmoid" or "" for a linear one."""
    network = Network(threads=1)
    network.add("Input", "x", rows=3)
    network.add("Input", "labels", rows=2 if layers else 3)
    top = "x"
    for number, nonlinearity in enumerate(layers):
        rows, cols = 2 if number == len(layers) - 1 else 4, network.shapes[top].rows
        network.add("Parameter", f"W{number}", rows=rows, cols=cols)
        network.add("Parameter", f"b{number}", rows=rows, cols=1)
        network.add("Times", f"p{number}", f"W{number}", top)
        top = network.add("Plus", f"z{number}", f"p{number}", f"b{number}").name
        if nonlinearity:
            top = network.add(nonlinearity, f"h{number}", top).name
    network.criteria.append(network.add(criterion, "J", "labels", top).name)
    network.validate()
    return network


def test_layers_with_their_kinds_and_weights():
    network = network_of("Sigmoid", "", "Sigmoid", "")
    model = dbn_model(network)
    assert [layer.weights.shape for layer in model.layers] == [(4, 3), (4, 4), (4, 4), (2, 4)]
    assert len({layer.kind for layer in model.layers}) == 4  # the first and further ones with Sigmoid, linear, output
    for number, layer in enumerate(model.layers):
        np.testing.assert_array_equal(layer.weights, network[f"W{number}"].value)
        np.testing.assert_array_equal(layer.bias, network[f"b{number}"].value[:, 0])
    assert (model.mean.tolist(), model.deviation.tolist()) == ([0, 0, 0], [1, 1, 1])


@pytest.mark.parametrize("layers", [("Sigmoid",), ("Sigmoid", "Sigmoid"), ("", "Sigmoid")])
def test_an_output_layer_with_a_sigmoid_is_refused(layers):
    with pytest.raises(ModelError, match="is not a linear layer; expected one below the criterion"):
        dbn_model(network_of(*layers))


def test_other_nonlinearities_and_networks_without_layers_are_refused():
    with pytest.raises(ModelError, match=r"is no layer of dbn\.exe; expected layers of Sigmoid"):
        dbn_model(network_of("Tanh", ""))
    with pytest.raises(ModelError, match="0 operands that are no inputs; expected one, the output layer"):
        dbn_model(network_of())
