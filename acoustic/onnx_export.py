"""Writing a trained network as an ONNX model, for onnxruntime and whatever else reads it.

Inputs and outputs are (frames, rows), a frame a row, any number of them: the transposes of the network's matrices.
Dropout is off; statistics and parameters are constants.  Node types say themselves what they are in ONNX.
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from acoustic.network import Network
from acoustic.onnx_graph import OnnxGraph
from acoustic.order import forward_order
from readers.errors import ModelError
from readers.files import atomic_write


def require_onnx(where: str) -> None:
    """Raise ModelError unless the onnx package is there; where: what asks for it."""
    if importlib.util.find_spec("onnx") is None:
        raise ModelError(f"{where}: the onnx package is missing; expected it; pip install argonaut-asr[onnx]")


def to_onnx(network: Network, outputs: Sequence[str]):
    """The onnx.ModelProto of some nodes and what they depend on.

    Raises ModelError for unknown nodes, for types that have no form in ONNX, and for statistics that are not computed.
    """
    require_onnx("export to ONNX")
    names = list(dict.fromkeys(outputs))
    graph = OnnxGraph(network.backend.dtype)
    tensors: dict[str, str] = {}
    for node in forward_order([network[name] for name in names]):
        if node.is_input:
            tensor = graph.input(node.name, network.shapes[node.name].rows)
        elif node.is_stored:
            if node.value is None:
                raise ModelError(f"{node.where}: not computed; expected a trained model")
            tensor = graph.constant(network.backend.to_host(node.value).T, node.name)
        else:
            # A delay may stand before its operand; it has no form in ONNX and says so.
            below = () if node.delay else node.operands
            tensor = node.to_onnx(graph, *[tensors[operand.name] for operand in below])
        tensors[node.name] = tensor
        graph.shapes[tensor] = network.shapes[node.name]
    for name in names:
        is_leaf = network[name].is_leaf  # its tensor has the name already
        graph.output(tensors[name], f"{name}/output" if is_leaf else name, network.shapes[name])
    return graph.model("network", {"layout": "frames, rows", "outputs": " ".join(names)})


def export_onnx(network: Network, outputs: Sequence[str], path: str | Path) -> None:
    """Write the model of `to_onnx`, whole or not at all."""
    model = to_onnx(network, outputs)
    with atomic_write(path) as file:
        file.write(model.SerializeToString())
