"""ONNX models with CTC outputs in the forms of other toolkits, whose scores the tests know."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

ROWS, OUTPUTS = 4, 5
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def weights(seed=0):
    """(OUTPUTS, ROWS)"""
    return np.random.default_rng(seed).normal(size=(OUTPUTS, ROWS)).astype(np.float32)


def write_model(path, rows_first=False, counts=True, subsampling=1, normalised=True, matrix=None):
    """A linear layer, of every n-th frame.

    rows_first, counts, subsampling > 1, normalised: NeMo; frames first: icefall and torchaudio; not normalised: logits.
    """
    matrix = weights() if matrix is None else matrix
    shape = ["B", matrix.shape[1], "T"] if rows_first else ["B", "T", matrix.shape[1]]
    inputs = [helper.make_tensor_value_info("audio_signal", FLOAT, shape)]
    nodes, last = [], "audio_signal"
    if rows_first:
        nodes.append(helper.make_node("Transpose", [last], ["frames"], perm=[0, 2, 1]))
        last = "frames"
    slices = {"first": [0], "end": [1 << 30], "axis": [1], "step": [subsampling]}
    constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in slices.items()]
    constants.append(numpy_helper.from_array(np.ascontiguousarray(matrix.T), "W"))
    nodes.append(helper.make_node("Slice", [last, *slices], ["fewer"]))
    nodes.append(helper.make_node("MatMul", ["fewer", "W"], ["logits"]))
    output = "logits"
    if normalised:
        nodes.append(helper.make_node("LogSoftmax", ["logits"], ["logprobs"], axis=2))
        output = "logprobs"
    outputs = [helper.make_tensor_value_info(output, FLOAT, ["B", "S", len(matrix)])]
    if counts:
        inputs.append(helper.make_tensor_value_info("length", INT64, ["B"]))
        nodes.append(helper.make_node("Identity", ["length"], ["encoded"]))
        outputs.append(helper.make_tensor_value_info("encoded", INT64, ["B"]))
    graph = helper.make_graph(nodes, "ctc", inputs, outputs, constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_samples_model(path, matrix, step, counts=None):
    """A convolution of samples (B, samples), the length of the rows of `matrix`; counts: shape of a second input."""
    inputs = [helper.make_tensor_value_info("input_values", FLOAT, ["B", "N"])]
    if counts is not None:
        inputs.append(helper.make_tensor_value_info("attention_mask", INT64, counts))
    constants = [
        numpy_helper.from_array(np.array([1], np.int64), "axis"),
        numpy_helper.from_array(np.ascontiguousarray(matrix[:, None, :]), "W"),
    ]
    nodes = [
        helper.make_node("Unsqueeze", ["input_values", "axis"], ["channels"]),
        helper.make_node("Conv", ["channels", "W"], ["rows"], strides=[step]),
        helper.make_node("Transpose", ["rows"], ["logits"], perm=[0, 2, 1]),
    ]
    if counts is not None:  # a mask of ones, or counts of samples, change nothing
        nodes.append(helper.make_node("Cast", ["attention_mask"], ["floats"], to=FLOAT))
        nodes.append(helper.make_node("ReduceMax", ["floats"], ["largest"], keepdims=0))
        nodes.append(helper.make_node("Div", ["largest", "largest"], ["one"]))
        nodes.append(helper.make_node("Mul", ["logits", "one"], ["scaled"]))
    outputs = [helper.make_tensor_value_info("logits" if counts is None else "scaled", FLOAT, ["B", "S", len(matrix)])]
    graph = helper.make_graph(nodes, "ctc", inputs, outputs, constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
