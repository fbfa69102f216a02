"""Recurrent loops as ONNX Scan operators: the rows of a call are one sequence from beginning to end.

The nodes of a loop form the body of a Scan, which runs from row to row; the values of its delays are the Scan's state.
Outside tensors with a row per frame are scan inputs; the body uses all other outside tensors directly.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from acoustic.export.onnx_graph import OnnxGraph
from acoustic.network.network import Network
from acoustic.network.traversal import computed_operands
from acoustic.nodes.base import Node


def loop_to_onnx(
    graph: OnnxGraph, network: Network, order: Sequence[Node], tensors: Mapping[str, str], wanted: Collection[str]
) -> dict[str, str]:
    """Add a loop and return the tensors of those of its nodes that are `wanted`.

    `order` are the nodes of one step, delays first; `tensors` are those of the nodes outside the loop.
    """
    body = graph.body_graph()
    delays = [node for node in order if node.delay]
    member_names = {node.name for node in order}
    tensor_of = {name: tensor for name, tensor in tensors.items() if not network.shapes[name].has_frames}
    states = []
    firsts = []
    for node in delays:
        rows = network.shapes[node.name].rows
        steps = abs(node.delay)
        state = body.input(f"{body.prefix}/{node.name}", rows, steps)
        states.append(state)
        firsts.append(graph.constant(np.full((steps, rows), node.settings["defaultHiddenActivity"])))
        tensor_of[node.name] = body.rows(state, 0, 1)
        body.shapes[tensor_of[node.name]] = network.shapes[node.name]
    scanned = []
    for node in order:
        for operand in computed_operands(node):
            if operand.name not in tensor_of and operand.name not in member_names:
                rows = network.shapes[operand.name].rows
                row = body.input(f"{body.prefix}/{operand.name}", rows, None)
                tensor_of[operand.name] = body.reshape(row, [1, rows])
                body.shapes[tensor_of[operand.name]] = network.shapes[operand.name]
                scanned.append(tensors[operand.name])
    for node in order:
        if not node.delay:
            tensor = node.to_onnx(body, *[tensor_of[operand.name] for operand in computed_operands(node)])
            tensor_of[node.name] = tensor
            body.shapes[tensor] = network.shapes[node.name]
    for node, state in zip(delays, states):
        latest = tensor_of[node.operands[0].name]
        steps = abs(node.delay)
        if steps > 1:
            latest = body.add("Concat", body.rows(state, 1, steps), latest, axis=0)
        body.body_output(latest, network.shapes[node.name].rows, steps)
    names = [node.name for node in order if node.name in wanted]
    for name in names:
        rows = network.shapes[name].rows
        body.body_output(body.reshape(tensor_of[name], [rows]), rows, None)
    direction = int(delays[0].delay < 0)
    outputs = graph.add_many(
        "Scan",
        len(delays) + len(names),
        *firsts,
        *scanned,
        body=body.graph_proto("loop"),
        num_scan_inputs=len(scanned),
        scan_input_directions=[direction] * len(scanned),
        scan_output_directions=[direction] * len(names),
    )
    return dict(zip(names, outputs[len(delays) :]))
