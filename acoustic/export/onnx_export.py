"""Export of a trained network as an ONNX model, for onnxruntime and other programs.

Inputs and outputs are (frames, rows), one row per frame, for any number of frames: the transposes of the network's
matrices. Dropout is off, statistics and parameters are constants, and scores of classes without training data are
UNSEEN (unseen_classes.py). Each node type defines its form in ONNX; onnx_loops.py exports loops. A recurrent network
takes the rows of a call as one sequence.
"""

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from acoustic.export.onnx_graph import OnnxGraph
from acoustic.export.onnx_loops import loop_to_onnx
from acoustic.network.network import Network
from acoustic.network.traversal import components, computed_operands, is_loop, loop_order
from acoustic.network.unseen_classes import UNSEEN, unseen_outputs
from acoustic.nodes.base import Node
from readers.common.files import write_content
from readers.errors import ModelError

if TYPE_CHECKING:
    from onnx import ModelProto

FEATURE_RECORDS = "feature_records"  # metadata: how the features of each input were computed


def require_package(name: str, where: str) -> None:
    """Raise ModelError, naming what requires it, unless a package of the extra `onnx` is installed."""
    if importlib.util.find_spec(name) is None:
        raise ModelError(
            f"{where}: the {name} package is missing; expected it to be installed: "
            "pip install '.[onnx]' in the project's directory"
        )


def to_onnx(network: Network, outputs: Sequence[str]) -> "ModelProto":
    """Return the onnx.ModelProto of some nodes and everything that they depend on.

    Raises ModelError for unknown nodes, types without a form in ONNX, and statistics that are not computed.
    """
    require_package("onnx", "export to ONNX")
    names = list(dict.fromkeys(outputs))
    graph = OnnxGraph(np.dtype(network.backend.dtype))
    tensors: dict[str, str] = {}
    ordered = components([network[name] for name in names])
    for component in ordered:
        if is_loop(component):
            member_names = {node.name for node in component}
            users = (
                node for other_component in ordered if other_component is not component for node in other_component
            )
            exported_names = member_names & {
                *names,
                *(operand.name for node in users for operand in computed_operands(node)),
            }
            component_tensors = loop_to_onnx(graph, network, loop_order(component), tensors, exported_names)
        else:
            component_tensors = {component[0].name: _tensor(graph, network, component[0], tensors)}
        tensors |= component_tensors
        graph.shapes |= {tensor: network.shapes[name] for name, tensor in component_tensors.items()}
    for name in names:
        is_leaf = network[name].is_leaf  # its tensor already has the name
        graph.output(
            _disabled(graph, network, name, tensors[name]), f"{name}/output" if is_leaf else name, network.shapes[name]
        )
    properties = {"layout": "frames, rows", "outputs": " ".join(names)}
    records = {name: record.as_json() for name, record in network.feature_records.items() if name in tensors}
    if records:
        properties[FEATURE_RECORDS] = json.dumps(records)
    return graph.model("network", properties)


def _tensor(graph: OnnxGraph, network: Network, node: Node, tensors: dict[str, str]) -> str:
    if node.is_input:
        return graph.input(node.name, network.shapes[node.name].rows)
    if node.is_stored:
        if node.value is None:
            raise ModelError(f"{node.where}: not computed; expected a trained model")
        return graph.constant(network.backend.to_host(node.value).T, node.name)
    return node.to_onnx(graph, *[tensors[operand.name] for operand in computed_operands(node)])


def _disabled(graph: OnnxGraph, network: Network, name: str, tensor: str) -> str:
    """Return the output with UNSEEN for classes without training data."""
    unseen = unseen_outputs(network, name)
    if not unseen.size:
        return tensor
    ceiling = np.full((1, network.shapes[name].rows), np.inf)
    ceiling[0, unseen] = UNSEEN
    return graph.add("Min", tensor, graph.constant(ceiling))


def export_onnx(network: Network, outputs: Sequence[str], path: str | Path) -> None:
    """Write the model of `to_onnx` to a file, atomically."""
    model = to_onnx(network, outputs)
    write_content(path, model.SerializeToString())
