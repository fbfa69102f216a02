"""Networks of our nodes from Kaldi's nnet3 networks, equal to them also at the ends of utterances.

Chain models have an output for every n-th frame, but their lower layers see frames in between.  A step of our network
is n frames, and a node of Kaldi becomes one of ours for each phase, the frame's place among the n, that the output
depends on; phases share their parameters.  So no frame is computed that Kaldi would not compute.

Kaldi repeats the first and the last frame of the features beyond the ends.  The record of the network asks for that
(`FeatureRecord.edges`), because layers of time offsets would otherwise repeat their own values.  It repeats as many as
the context of the model has.  What cannot be computed from them, such as the state of an LSTM before the first frame,
is 0 where a descriptor has IfDefined; delays and masks see to that.
"""

import math
from pathlib import Path

import numpy as np

from acoustic.descriptions.kaldi_components import ComponentBuilder, attention_rows
from acoustic.descriptions.kaldi_frames import FEATURES as FEATURES
from acoustic.descriptions.kaldi_frames import FrameGraph, Key, Reference
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

OUTPUT = "output"
SCORES = "ScaledLogLikelihood"
# Values of a node at frames: the phase of the node, and how many steps later.
_Values = list[tuple[Node, int]]


def read_kaldi_network(
    path: str | Path,
    subsampling: int | None = None,
    precision: str | None = None,
    device: str = "cpu",
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

    Returns
    -------
    Network
        Its output `ScaledLogLikelihood` has a row for each pdf.  Cross-entropy models divide by their priors.

    Raises
    ------
    FormatError
        With file and byte, for another file and for components that are not known.
    ModelError
        For a network that depends on frames in another way.
    OSError
    """
    subsampling = frame_subsampling(path) if subsampling is None else subsampling
    return network_of_nnet(read_nnet_model(path), subsampling, precision or "float", device)


def network_of_nnet(
    model: NnetModel, subsampling: int, precision: str = "float", device: str = "cpu", first_is_last: bool = False
) -> Network:
    """Return the network of a model that was read, see `read_kaldi_network`.

    first_is_last: whether the first value of Kaldi's frames, c0, is the last one of the frames that the network is to
    take.
    """
    if not 1 <= subsampling <= MAX_SUBSAMPLING:
        raise ModelError(f"{model.nnet.source}: subsampling={subsampling}; expected 1 to {MAX_SUBSAMPLING}")
    return _Conversion(model, subsampling, Network(precision, device), first_is_last).network


class _Conversion:
    """Builds the network of a model, from its inputs up."""

    def __init__(self, model: NnetModel, subsampling: int, network: Network, first_is_last: bool) -> None:
        self.nnet = model.nnet
        self.step = subsampling
        self.beside = subsampling // 2  # frames on each side that an input column stacks
        self.first_is_last = first_is_last
        self.network = network
        self.network.source = self.nnet.source
        self.builder = ComponentBuilder(network)
        self._phases: dict[Key, list[Node]] = {}
        self._masks: dict[tuple[str, int], Node] = {}
        self._open_delays: list[tuple[Node, Key]] = []
        if not {FEATURES, OUTPUT} <= self.nnet.nodes.keys():
            missing = min({FEATURES, OUTPUT} - self.nnet.nodes.keys(), key=(OUTPUT, FEATURES).index)
            raise ModelError(
                f"{self.nnet.source}: no node {missing!r}; expected a network with {FEATURES!r} and {OUTPUT!r}"
            )
        self.frames = FrameGraph(self.nnet, self.step, OUTPUT)
        self.context = self._context(model)
        # Columns of repeated frames that the context of the model reaches, beyond those that a column stacks.
        self.edges = [max(0, math.ceil((frames - self.beside) / self.step)) for frames in self.context]
        self._add_input(FEATURES, self.step + 1 - self.step % 2)
        for name, phase in self.frames.order:
            if self.nnet.nodes[name].kind in ("component-node", "dim-range-node"):
                self._phases[name, phase] = self._build(name, self.nnet.nodes[name], phase)
        for delay, (name, phase) in self._open_delays:
            network.connect(delay, self.builder.stacked(self._parts_of(name, phase), name))
        output = self.nnet.nodes[OUTPUT].input
        assert output is not None  # only inputs have none
        scores = self._stacked(self._values(output, 0, OUTPUT), SCORES)
        if len(model.priors):
            priors = self.builder.parameter("priors", np.log(model.priors)[:, np.newaxis], learns=False)
            scores = self.network.add("Minus", SCORES, scores, priors)
        else:
            scores = self.network.add("Plus", SCORES, scores, self.builder.constant(0.0))
        self.network.outputs.append(SCORES)
        if not self.frames.has_optional:  # the model may have other outputs, which take more context
            self.edges = [int(steps) for steps in time_reach(scores)]
        self.network.feature_records[FEATURES] = FeatureRecord(
            context=(self.beside, self.beside), subsampling=subsampling, edges=(self.edges[0], self.edges[1])
        )
        self.network.validate()

    def _context(self, model: NnetModel) -> tuple[int, int]:
        """Return the context of a model, with which its output can be computed at least."""
        needed = self.frames.context[OUTPUT, 0]
        if self.frames.has_optional and (model.context[0] < needed[0] or model.context[1] < needed[1]):
            self.frames.refuse(
                f"a context of {model.context[0]} and {model.context[1]} frames",
                f"at least {needed[0]:g} and {needed[1]:g}, as the network takes",
            )
        return model.context

    def _add_input(self, name: str, window: int) -> Node:
        if name not in self.network.nodes:
            self.network.add("InputValue", name, rows=self.nnet.nodes[name].rows * window, tag="feature")
        return self.network[name]

    def _values(self, descriptor: Descriptor, frame: int, owner: str, optional: bool = False) -> _Values:
        """Return the values, to be stacked, of a descriptor at a frame that is counted from that of the step.

        optional: whether 0 stands for what cannot be computed.
        """
        kind = descriptor.kind
        if kind == "node":
            reference = Reference(descriptor.name, frame, optional)
            return [(self._optional(reference, owner), 0)] if optional else self._value(reference)
        if kind == "Append":
            return [value for operand in descriptor.operands for value in self._values(operand, frame, owner, optional)]
        frame = self.frames.moved(descriptor, frame, owner)
        if kind in ("Offset", "Round", "ReplaceIndex", "IfDefined"):
            return self._values(descriptor.operands[0], frame, owner, optional or kind == "IfDefined")
        if kind == "Scale":
            (operand,) = descriptor.operands
            node = self._stacked(self._values(operand, frame, owner, optional), owner)
            return [(self.builder.scaled(descriptor.value, node, owner), 0)]
        assert kind in ("Sum", "Const")
        summands = [operand for operand in descriptor.operands if operand.kind != "Const"]
        biases = [operand for operand in descriptor.operands if operand.kind == "Const"]
        if not summands:
            self.frames.refuse(f"node {owner!r} has a Const alone", "Const in a Sum with nodes")
        total = self._stacked(self._values(summands[0], frame, owner, optional), owner)
        for operand in summands[1:]:
            addend = self._stacked(self._values(operand, frame, owner, optional), owner)
            total = self.network.add("Plus", self.builder.new_name(owner), total, addend)
        for operand in biases:
            constant = self.builder.constant(operand.value)
            total = self.network.add("Plus", self.builder.new_name(owner), total, constant)
        return [(total, 0)]

    def _value(self, reference: Reference) -> _Values:
        """Return the nodes that hold the values of a node of Kaldi at a frame, and how many steps later."""
        name, frame, _ = reference
        if self.frames.is_ivector(name):
            return [(self._add_input(name, 1), 0)]
        if name == FEATURES:
            steps, place = divmod(frame + self.beside, self.step)
            return [(self._frame(place, self.nnet.nodes[name].rows), steps)]
        steps = self.frames.steps(reference)
        return [(part, steps) for part in self._phases[self.frames.key(reference)]]

    def _optional(self, reference: Reference, owner: str) -> Node:
        """Return the value of a node of Kaldi at a frame, and 0 where the context does not suffice for it.

        A delay gives 0 at steps that lie before the first one or after the last one, and masks at more of them.
        """
        name, frame, _ = reference
        key = self.frames.key(reference)
        steps = self.frames.steps(reference)
        if self.frames.is_ivector(name):
            return self._add_input(name, 1)
        before, after = self.frames.context[key]
        if math.isinf(before):
            self.frames.refuse(f"node {owner!r} may lack {name!r}, which depends on no frame", "IfDefined of frames")
        rows = self.nnet.nodes[name].rows
        if steps:
            node = self.network.add_node(
                "PastValue" if steps < 0 else "FutureValue",
                self.builder.new_name(f"{owner}.delay"),
                [None],
                {"rows": rows, "timeStep": abs(steps), "defaultHiddenActivity": 0.0},
            )
            self._open_delays.append((node, key))
        else:
            node = self.builder.stacked(self._parts_of(*key), owner)
        num_missing = (
            math.ceil((before - self.context[0] - frame) / self.step) + self.edges[0],
            math.ceil((after - self.context[1] + frame) / self.step) + self.edges[1],
        )
        for direction, count, of_delay in zip(("Past", "Future"), num_missing, (-steps, steps), strict=True):
            if count > max(of_delay, 0):
                mask = self._mask(f"{direction}Value", count)
                node = self.network.add("RowElementTimes", self.builder.new_name(f"{owner}.known"), node, mask)
        self.builder.recurrent.add(node.name)
        return node

    def _mask(self, kind: str, count: int) -> Node:
        """Return a row of ones, but for zeros at so many steps at the beginning or at the end."""
        if (kind, count) not in self._masks:
            name = f"{kind.removesuffix('Value').lower()}{count}"
            zeros = self.network.add("Scale", f"{name}.zeros", self.builder.constant(0.0), self._slice(0, 1))
            ones = self.network.add("Plus", f"{name}.ones", zeros, self.builder.constant(1.0))
            self._masks[kind, count] = self.network.add(
                kind, name, ones, rows=1, timeStep=count, defaultHiddenActivity=0.0
            )
        return self._masks[kind, count]

    def _parts_of(self, name: str, phase: int) -> list[Node]:
        """Return the nodes of a key."""
        if name == FEATURES:
            return [node for node, _ in self._value(Reference(name, phase, False))]
        return self._phases[name, phase]

    def _frame(self, place: int, rows: int) -> Node:
        """Return the frame at a place of the frames that an input column stacks."""
        if self.step == 1 and not self.first_is_last:
            return self.network[FEATURES]
        if (FEATURES, place) not in self._phases:
            first = place * rows
            if self.first_is_last:
                slices = [self._slice(first + rows - 1, 1), self._slice(first, rows - 1)]
                node = self.network.add("RowStack", self.builder.new_name(FEATURES), *slices)
            else:
                node = self._slice(first, rows)
            self._phases[FEATURES, place] = [node]
        return self._phases[FEATURES, place][0]

    def _slice(self, first: int, rows: int) -> Node:
        """Return some rows of the features."""
        return self.network.add("RowSlice", self.builder.new_name(FEATURES), FEATURES, startRow=first, numRows=rows)

    def _parts(self, values: _Values, owner: str) -> list[Node]:
        """Return the nodes of values; those of one node side by side are spliced together."""
        parts: list[tuple[Node, list[int]]] = []
        for node, steps in values:
            if parts and parts[-1][0] is node and steps not in parts[-1][1]:
                parts[-1][1].append(steps)
            else:
                parts.append((node, [steps]))
        nodes = []
        for node, steps_of_node in parts:
            if max(map(abs, steps_of_node)) > FURTHEST:
                self.frames.refuse(
                    f"node {owner!r} looks {max(map(abs, steps_of_node))} steps away", f"at most {FURTHEST}"
                )
            if steps_of_node == [0]:
                nodes.append(node)
            else:
                offsets = ":".join(map(str, steps_of_node))
                nodes.append(self.network.add("TimeSplice", self.builder.new_name(owner), node, offsets=offsets))
        return nodes

    def _stacked(self, values: _Values, owner: str) -> Node:
        """Return the node of values that are stacked."""
        return self.builder.stacked(self._parts(values, owner), owner)

    def _build(self, name: str, node: NnetNode, phase: int) -> list[Node]:
        """Return the nodes of a component or of a range of rows, at a phase."""
        label = f"{name}+{phase}" if phase else name
        offsets = required = [0]
        if node.component:
            component = self.nnet.components[node.component]
            offsets, required = component.offsets, component.required_offsets
        frames: list[_Values] = []
        if node.input is not None:
            frames = [self._values(node.input, phase + offset, label, offset not in required) for offset in offsets]
        if node.component and component.kind == "RestrictedAttentionComponent":
            return [self._attention(node.component, component, frames, label)]
        parts = self._parts([value for values in frames for value in values], label)
        if node.kind == "dim-range-node":
            return [self.builder.rows(parts, node.first_row, node.rows, label)]
        return self.builder.build(node.component, component, parts, label)

    def _attention(self, name: str, component: Component, frames: list[_Values], label: str) -> Node:
        """Return the node of attention to frames; what it takes of them is selected before they are spliced."""
        taken: dict[tuple[str, str], Node] = {}

        def take(kind: str, frames_of_kind: list[_Values]) -> list[Node]:
            values: _Values = []
            for frame in frames_of_kind:
                node, steps = frame[0] if len(frame) == 1 else (self._stacked(frame, label), 0)
                if (kind, node.name) not in taken:
                    rows = attention_rows(component)[kind]
                    taken[kind, node.name] = self.builder.selected(f"{name}.{kind}", rows, node, label)
                values.append((taken[kind, node.name], steps))
            return self._parts(values, label)

        own_frame = frames[component.offsets.index(0)]
        queries = take("queries", [own_frame])
        return self.builder.attention(name, component, queries, take("keys", frames), take("values", frames), label)
