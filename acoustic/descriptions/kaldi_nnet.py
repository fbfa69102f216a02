"""Networks of our nodes from Kaldi's nnet3 networks, equal to them also at the ends of utterances.

Chain models have an output for every n-th frame, but their lower layers see frames in between.  A step of our network
is n frames, and a node of Kaldi becomes one of ours for each phase, the frame's place among the n, that the output
depends on; phases share their parameters.  So no frame is computed that Kaldi would not compute.

Kaldi repeats the first and the last frame of the features beyond the ends.  The record of the network asks for that
(`FeatureRecord.edges`), because layers of time offsets would otherwise repeat their own values.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from acoustic.network.network import Network
from acoustic.network.traversal import time_reach
from acoustic.nodes.base import Node
from acoustic.nodes.time_splice import FURTHEST
from readers.config.feature_record import MAX_SUBSAMPLING, FeatureRecord
from readers.errors import ModelError
from readers.kaldi.nnet3.components import Component
from readers.kaldi.nnet3.descriptors import Descriptor
from readers.kaldi.nnet3.nnet import NnetModel, NnetNode, read_nnet_model
from readers.kaldi.option_files import frame_subsampling

FEATURES = "input"  # Kaldi's name of the features; other inputs are i-vectors
OUTPUT = "output"
SCORES = "ScaledLogLikelihood"
# Frames in which further training renews the statistics of batch normalisation, as in shipped layers; with 0, the first
# minibatch would replace those of the model.
TIME_CONSTANT = 10_000.0
_ELEMENTWISE = {
    "RectifiedLinearComponent": "RectifiedLinear",
    "SigmoidComponent": "Sigmoid",
    "TanhComponent": "Tanh",
    "SoftmaxComponent": "Softmax",
    "LogSoftmaxComponent": "LogSoftmax",
    "DropoutComponent": "Dropout",
    "GeneralDropoutComponent": "Dropout",
}
_IDENTITIES = ("NoOpComponent", "SpecAugmentTimeMaskComponent")
# Values of a node at frames: the phase of the node, and how many steps later.
_Values = list[tuple[Node, int]]


def read_kaldi_network(
    path: str | Path,
    subsampling: int | None = None,
    precision: str | None = None,
    device: str = "cpu",
    first_is_last: bool = False,
) -> Network:
    """Read the network of a `final.mdl` of nnet3.

    Parameters
    ----------
    path : path
        A model with a transition model and an nnet3 network, binary or text.
    subsampling : int, optional
        Frames per column of scores: 3 for most chain models.  By default as the files beside the model say, see
        `frame_subsampling`.
    precision, device : str, optional
        See Network.
    first_is_last : bool
        Whether the first value of Kaldi's frames, c0, is the last one of the frames that the network is to take.

    Returns
    -------
    Network
        Its output `ScaledLogLikelihood` has a row for each pdf.  Cross-entropy models divide by their priors.

    Raises
    ------
    FormatError
        With file and byte, for another file and for components that are not known.
    ModelError
        For a network that depends on frames in another way, such as a recurrent one.
    OSError
    """
    subsampling = frame_subsampling(path) if subsampling is None else subsampling
    return network_of_nnet(read_nnet_model(path), subsampling, precision or "float", device, first_is_last)


def network_of_nnet(
    model: NnetModel, subsampling: int, precision: str = "float", device: str = "cpu", first_is_last: bool = False
) -> Network:
    """Return the network of a model that was read, see `read_kaldi_network`."""
    if not 1 <= subsampling <= MAX_SUBSAMPLING:
        raise ModelError(f"{model.nnet.source}: subsampling={subsampling}; expected 1 to {MAX_SUBSAMPLING}")
    return _Conversion(model, subsampling, Network(precision, device), first_is_last).network


class _Conversion:
    """Builds the network of a model, from its output down."""

    def __init__(self, model: NnetModel, subsampling: int, network: Network, first_is_last: bool) -> None:
        self.nnet = model.nnet
        self.step = subsampling
        self.beside = subsampling // 2  # frames on each side that an input column stacks
        self.first_is_last = first_is_last
        self.network = network
        self.network.source = self.nnet.source
        self._phases: dict[tuple[str, int], Node] = {}
        self._parameters: dict[str, dict[str, Node]] = {}
        self._constants: dict[float, Node] = {}
        output = self._node(OUTPUT)
        assert output.input is not None  # only inputs have none
        self._add_input(FEATURES, self.step + 1 - self.step % 2)
        for name, phases in self._demanded().items():
            for phase in sorted(phases):
                self._phases[name, phase] = self._build(name, self.nnet.nodes[name], phase)
        scores = self._stacked(self._values(output.input, 0, OUTPUT), SCORES)
        if len(model.priors):
            priors = self._parameter("priors", np.log(model.priors)[:, np.newaxis], learns=False)
            scores = self.network.add("Minus", SCORES, scores, priors)
        else:
            scores = self.network.add("Plus", SCORES, scores, self._constant(0.0))
        self.network.outputs.append(SCORES)
        past, future = time_reach(scores)
        self.network.feature_records[FEATURES] = FeatureRecord(
            context=(self.beside, self.beside), subsampling=subsampling, edges=(int(past), int(future))
        )
        self.network.validate()

    def _refuse(self, found: str, expected: str) -> NoReturn:
        raise ModelError(f"{self.nnet.source}: {found}; expected {expected}")

    def _node(self, name: str) -> NnetNode:
        if name not in self.nnet.nodes:
            self._refuse(f"no node {name!r}", f"a network with {FEATURES!r} and {OUTPUT!r}")
        return self.nnet.nodes[name]

    def _add_input(self, name: str, window: int) -> Node:
        if name not in self.network.nodes:
            self.network.add("InputValue", name, rows=self._node(name).rows * window, tag="feature")
        return self.network[name]

    def _parameter(self, name: str, value: npt.NDArray[np.float64], learns: bool = True, **options: float) -> Node:
        rows, cols = value.shape
        node = self.network.add(
            "Parameter", name, rows=rows, cols=cols, init="fixedValue", needGradient=learns, **options
        )
        self.network.set_value(node, value)
        return node

    def _constant(self, value: float) -> Node:
        if value not in self._constants:
            self._constants[value] = self.network.add("Constant", f"constant{len(self._constants)}", value=value)
        return self._constants[value]

    def _new_name(self, name: str) -> str:
        """Return a name that is free: the given one with a number."""
        number = 1
        while f"{name}.{number}" in self.network.nodes:
            number += 1
        return f"{name}.{number}"

    def _demanded(self) -> dict[str, set[int]]:
        """Return the phases of each node on which the output depends, in the order of the file."""
        phases: dict[str, set[int]] = {name: set() for name in self.nnet.nodes}
        phases[OUTPUT].add(0)
        for name, node in reversed(self.nnet.nodes.items()):  # nodes are below those that they take
            offsets = self.nnet.components[node.component].offsets if node.component else [0]
            if node.input is None:
                continue
            for phase in phases[name]:
                for offset in offsets:
                    for operand, frame in self._operands(node.input, phase + offset, name):
                        phases[operand].add(frame % self.step)
        inner = [name for name, node in self.nnet.nodes.items() if node.kind in ("component-node", "dim-range-node")]
        return {name: phases[name] for name in inner}

    def _operands(self, descriptor: Descriptor, frame: int, owner: str) -> Iterator[tuple[str, int]]:
        """Yield the nodes of a descriptor at a frame, and the frames at which it takes them."""
        if descriptor.kind == "node":
            yield descriptor.name, frame
            return
        frame = self._moved(descriptor, frame, owner)
        for operand in descriptor.operands:
            yield from self._operands(operand, frame, owner)

    def _moved(self, descriptor: Descriptor, frame: int, owner: str) -> int:
        """Return the frame at which a descriptor takes its operands."""
        kind = descriptor.kind
        if kind == "Offset":
            return frame + int(descriptor.value)
        if kind not in ("Round", "ReplaceIndex") or all(map(self._is_ivector, descriptor.nodes())):
            return frame
        if kind == "Round" and self.step % int(descriptor.value) == 0:
            return frame - frame % int(descriptor.value)
        self._refuse(f"node {owner!r} has a {kind} of frames", f"one of an input other than {FEATURES!r}")

    def _values(self, descriptor: Descriptor, frame: int, owner: str) -> _Values:
        """Return the values, to be stacked, of a descriptor at a frame that is counted from that of the step."""
        kind = descriptor.kind
        if kind == "node":
            return [self._value(descriptor.name, frame)]
        if kind == "Append":
            return [value for operand in descriptor.operands for value in self._values(operand, frame, owner)]
        frame = self._moved(descriptor, frame, owner)
        if kind in ("Offset", "Round", "ReplaceIndex"):
            return self._values(descriptor.operands[0], frame, owner)
        if kind == "Scale":
            (operand,) = descriptor.operands
            node = self._stacked(self._values(operand, frame, owner), owner)
            scaled = self.network.add("Scale", self._new_name(owner), self._constant(descriptor.value), node)
            return [(scaled, 0)]
        if kind == "Sum":
            summands = [operand for operand in descriptor.operands if operand.kind != "Const"]
            biases = [operand for operand in descriptor.operands if operand.kind == "Const"]
            if not summands:
                self._refuse(f"node {owner!r} is a Sum of Const", "one of nodes")
            total = self._stacked(self._values(summands[0], frame, owner), owner)
            for operand in summands[1:]:
                addend = self._stacked(self._values(operand, frame, owner), owner)
                total = self.network.add("Plus", self._new_name(owner), total, addend)
            for operand in biases:
                total = self.network.add("Plus", self._new_name(owner), total, self._constant(operand.value))
            return [(total, 0)]
        self._refuse(f"node {owner!r} has the descriptor {kind}", "Append, Sum, Scale, Offset, ReplaceIndex or Round")

    def _is_ivector(self, name: str) -> bool:
        return name != FEATURES and self._node(name).kind == "input-node"

    def _value(self, name: str, frame: int) -> tuple[Node, int]:
        """Return the node that holds the values of a node of Kaldi at a frame, and how many steps later."""
        node = self._node(name)
        if node.kind == "input-node":
            if name != FEATURES:
                return self._add_input(name, 1), 0
            steps, place = divmod(frame + self.beside, self.step)
            return self._frame(place, node.rows), steps
        steps, phase = divmod(frame, self.step)
        return self._phases[name, phase], steps

    def _frame(self, place: int, rows: int) -> Node:
        """Return the frame at a place of the frames that an input column stacks."""
        if self.step == 1 and not self.first_is_last:
            return self.network[FEATURES]
        if (FEATURES, place) not in self._phases:
            first = place * rows
            if self.first_is_last:
                slices = [self._slice(first + rows - 1, 1), self._slice(first, rows - 1)]
                self._phases[FEATURES, place] = self.network.add("RowStack", self._new_name(FEATURES), *slices)
            else:
                self._phases[FEATURES, place] = self._slice(first, rows)
        return self._phases[FEATURES, place]

    def _slice(self, first: int, rows: int) -> Node:
        """Return some rows of the features."""
        return self.network.add("RowSlice", self._new_name(FEATURES), FEATURES, startRow=first, numRows=rows)

    def _stacked(self, values: _Values, owner: str) -> Node:
        """Return the node of values that are stacked; those of one node side by side are spliced together."""
        parts: list[tuple[Node, list[int]]] = []
        for node, steps in values:
            if parts and parts[-1][0] is node and steps not in parts[-1][1]:
                parts[-1][1].append(steps)
            else:
                parts.append((node, [steps]))
        nodes = []
        for node, steps_of_node in parts:
            if max(map(abs, steps_of_node)) > FURTHEST:
                self._refuse(f"node {owner!r} looks {max(map(abs, steps_of_node))} steps away", f"at most {FURTHEST}")
            if steps_of_node == [0]:
                nodes.append(node)
            else:
                offsets = ":".join(map(str, steps_of_node))
                nodes.append(self.network.add("TimeSplice", self._new_name(owner), node, offsets=offsets))
        return nodes[0] if len(nodes) == 1 else self.network.add("RowStack", self._new_name(owner), *nodes)

    def _build(self, name: str, node: NnetNode, phase: int) -> Node:
        """Return the node of a component or of a range of rows, at a phase."""
        assert node.input is not None
        label = f"{name}+{phase}" if phase else name
        if node.kind == "dim-range-node":
            operand = self._stacked(self._values(node.input, phase, label), label)
            return self.network.add("RowSlice", label, operand, startRow=node.first_row, numRows=node.rows)
        component = self.nnet.components[node.component]
        offsets = component.offsets
        values = [value for offset in offsets for value in self._values(node.input, phase + offset, label)]
        operand = self._stacked(values, label)
        if component.kind in _IDENTITIES:
            return operand
        if component.kind in _ELEMENTWISE:
            return self.network.add(_ELEMENTWISE[component.kind], label, operand)
        if node.component not in self._parameters:
            self._parameters[node.component] = self._parameters_of(node.component, component)
        parameters = self._parameters[node.component]
        if component.kind == "BatchNormComponent":
            return self.network.add(
                "BatchNormalization",
                label,
                operand,
                *(parameters[key] for key in ("scale", "bias", "mean", "invstd")),
                epsilon=component.fields["Epsilon"],
                normalizationTimeConstant=TIME_CONSTANT,
            )
        last = "Times" if "weights" in parameters else "DiagTimes"
        factor = parameters.get("weights", parameters.get("scale"))
        if factor is not None:
            bias_follows = "bias" in parameters
            operand = self.network.add(last, self._new_name(label) if bias_follows else label, factor, operand)
        return self.network.add("Plus", label, operand, parameters["bias"]) if "bias" in parameters else operand

    def _parameters_of(self, name: str, component: Component) -> dict[str, Node]:
        """Return the parameters of a component: weights, scale, bias, mean and invstd, those that it has."""
        fields = component.fields
        rows = component.out_rows

        def column(suffix: str, values: npt.NDArray[np.float64], learns: bool) -> Node:
            """Add a vector, repeated for each block of rows."""
            return self._parameter(f"{name}.{suffix}", np.tile(values, rows // len(values))[:, np.newaxis], learns)

        if component.kind == "BatchNormComponent":
            invstd = 1 / np.sqrt(np.maximum(fields["StatsVar"], 0.0) + fields["Epsilon"])
            return {
                "scale": column("scale", np.array([fields["TargetRms"]]), False),
                "bias": column("bias", np.zeros(1), False),
                "mean": column("mean", fields["StatsMean"], False),
                "invstd": column("invstd", invstd, False),
            }
        if component.kind in ("FixedScaleComponent", "FixedBiasComponent", "ScaleAndOffsetComponent"):
            learns = component.kind == "ScaleAndOffsetComponent"
            vectors = {"scale": fields.get("Scales"), "bias": fields.get("Offsets", fields.get("Bias"))}
            return {key: column(key, values, learns) for key, values in vectors.items() if values is not None}
        learns = component.kind != "FixedAffineComponent"
        orthonormal = float(fields.get("OrthonormalConstraint", 0.0))
        parameters = {"weights": self._parameter(f"{name}.weights", component.matrix, learns, orthonormal=orthonormal)}
        if len(component.bias):
            parameters["bias"] = self._parameter(f"{name}.bias", component.bias[:, np.newaxis], learns)
        return parameters
