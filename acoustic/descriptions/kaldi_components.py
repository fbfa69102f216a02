"""Nodes of ours for components of nnet3 networks.

A value is a list of nodes whose rows follow one another, so that what is stacked only to be cut again is not copied.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.leaves import Constant
from readers.errors import ModelError
from readers.kaldi.nnet3.components import Component

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
_SCALES = ("FixedScaleComponent", "PerElementScaleComponent", "NaturalGradientPerElementScaleComponent")
_COLUMNS = (*_SCALES, "FixedBiasComponent", "PerElementOffsetComponent", "ScaleAndOffsetComponent")
# The clipping and truncation of gradients belong to Kaldi's training.
_IDENTITIES = (
    "NoOpComponent",
    "SpecAugmentTimeMaskComponent",
    "ClipGradientComponent",
    "BackpropTruncationComponent",
)
Values = npt.NDArray[np.float64]


def attention_rows(component: Component) -> dict[str, list[int]]:
    """Return the rows of the input of attention that are keys, values and queries, these with a row for each frame."""
    heads, key_rows, value_rows = (component.fields[label] for label in ("NumHeads", "KeyDim", "ValueDim"))
    rows = np.arange(component.in_rows).reshape(heads, -1)
    ends = np.cumsum([key_rows, value_rows, key_rows])
    keys, values, queries, places = (part.ravel().tolist() for part in np.split(rows, ends, axis=1))
    return {"keys": keys, "values": values, "queries": queries + places}


class ComponentBuilder:
    """Adds the nodes of components to a network.

    Parameters
    ----------
    network : Network

    Attributes
    ----------
    recurrent : set of str
        Names of the nodes whose values come from other steps of a loop.  Products with them are kept apart from those
        with other values, which are computed for all steps at once.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.recurrent: set[str] = set()
        self._parameters: dict[tuple[str, tuple[int, ...]], Node] = {}
        self._constants: dict[float, Node] = {}

    def new_name(self, name: str) -> str:
        """Return a name that is free: the given one with a number."""
        number = 1
        while f"{name}.{number}" in self.network.nodes:
            number += 1
        return f"{name}.{number}"

    def constant(self, value: float) -> Node:
        """Return a scalar."""
        if value not in self._constants:
            self._constants[value] = self.network.add("Constant", f"constant{len(self._constants)}", value=value)
        return self._constants[value]

    def parameter(
        self, name: str, value: Values, learns: bool = True, blocks: tuple[int, ...] = (), **options: float
    ) -> Node:
        """Return the parameter of a name, which nodes share; blocks: the part of it that the value (rows, cols) is."""
        if (name, blocks) not in self._parameters:
            rows, cols = value.shape
            free_name = self.new_name(name) if name in self.network.nodes else name
            node = self.network.add(
                "Parameter", free_name, rows=rows, cols=cols, init="fixedValue", needGradient=learns, **options
            )
            self.network.set_value(node, value)
            self._parameters[name, blocks] = node
        return self._parameters[name, blocks]

    def stacked(self, parts: Sequence[Node], owner: str) -> Node:
        """Return one node for the rows of several."""
        return parts[0] if len(parts) == 1 else self.network.add("RowStack", self.new_name(owner), *parts)

    def rows(self, parts: Sequence[Node], first: int, count: int, owner: str) -> Node:
        """Return the node of some rows of a value."""
        begin = 0
        for part in parts:
            size = self.network.shapes[part.name].rows
            if (begin, size) == (first, count):
                return part
            if begin <= first and first + count <= begin + size:
                return self._slice(part, first - begin, count, owner)
            begin += size
        return self._slice(self.stacked(parts, owner), first, count, owner)

    def _slice(self, node: Node, first: int, count: int, owner: str) -> Node:
        return self.network.add("RowSlice", self.new_name(owner), node, startRow=first, numRows=count)

    def scaled(self, factor: float, node: Node, owner: str) -> Node:
        """Return a multiple of a node."""
        return node if factor == 1 else self.network.add("Scale", self.new_name(owner), self.constant(factor), node)

    def build(self, name: str, component: Component, parts: list[Node], label: str) -> list[Node]:
        """Add the nodes of a component.

        Parameters
        ----------
        name : str
            Of the component, for its parameters.
        component : Component
        parts : list of Node
            The value that it takes.
        label : str
            Name of the last node.

        Returns
        -------
        list of Node
            Its value.

        Raises
        ------
        ModelError
            For a component that gives what our nodes do not.
        """
        kind = component.kind
        fields = component.fields
        if kind in _IDENTITIES:
            return [self.scaled(fields.get("Scale", 1.0), part, label) for part in parts]
        if kind == "DropoutMaskComponent":
            return [self.constant(1.0 if "Continuous" in fields else 1.0 - fields.get("DropoutProportion", 0.0))]
        if kind == "LstmNonlinearityComponent":
            return self._lstm(name, component, parts, label)
        if kind == "CompositeComponent":
            for number, inner in enumerate(component.inner, 1):
                own_label = label if number == len(component.inner) else self.new_name(label)
                parts = self.build(f"{name}.{number}", inner, parts, own_label)
            return parts
        if kind == "ElementwiseProductComponent":
            size = component.out_rows
            factors = [self.rows(parts, first, size, label) for first in range(0, component.in_rows, size)]
            product = factors[0]
            for factor in factors[1:]:
                product = self.network.add("ElementTimes", self.new_name(label), product, factor)
            return [product]
        if kind in _ELEMENTWISE:
            node = self.network.add(_ELEMENTWISE[kind], label, self.stacked(parts, label))
            # Kaldi's older dropout makes up for zeros when a model is used, ours in training.
            proportion = fields.get("DropoutProportion", 0.0) if kind == "DropoutComponent" else 0.0
            return [self.scaled(1.0 - proportion, node, label)]
        if kind in _COLUMNS:
            return [self._columns(name, component, self.stacked(parts, label), label)]
        other: dict[str, Callable[[str, Component, list[Node], str], Node]] = {
            "BatchNormComponent": self._batch_normalisation,
            "NormalizeComponent": self._normalisation,
            "PermuteComponent": self._permutation,
            "TimeHeightConvolutionComponent": self._convolution,
        }
        return [other.get(kind, self._affine)(name, component, parts, label)]

    def _column(self, name: str, component: Component, values: Values, learns: bool) -> Node:
        """Return a vector, repeated for each block of rows."""
        tiled = np.tile(values, component.out_rows // len(values))
        return self.parameter(name, tiled[:, np.newaxis], learns)

    def _columns(self, name: str, component: Component, operand: Node, label: str) -> Node:
        """Multiply by a column and add another, those that the component has."""
        fields = component.fields
        learns = not component.kind.startswith("Fixed")
        scales = fields.get("Scales", fields.get("Params"))
        offsets = fields.get("Offsets", fields.get("Bias"))
        if scales is not None:
            factor = self._column(f"{name}.scale", component, scales, learns)
            own_label = label if offsets is None else self.new_name(label)
            operand = self.network.add("DiagTimes", own_label, factor, operand)
        if offsets is not None:
            addend = self._column(f"{name}.bias", component, offsets, learns)
            operand = self.network.add("Plus", label, operand, addend)
        return operand

    def _affine(self, name: str, component: Component, parts: list[Node], label: str) -> Node:
        """Multiply by a matrix and add a bias."""
        learns = component.kind != "FixedAffineComponent"
        orthonormal = float(component.fields.get("OrthonormalConstraint", 0.0))
        ends = np.cumsum([self.network.shapes[part.name].rows for part in parts])
        columns = np.split(component.matrix, ends[:-1], axis=1)
        groups: dict[str, list[int]] = {}
        for number, part in enumerate(parts):
            groups.setdefault("recurrent" if part.name in self.recurrent else "weights", []).append(number)
        if len(groups) == 1:
            groups = {"weights": list(range(len(parts)))}
        total = self.parameter(f"{name}.bias", component.bias[:, np.newaxis], learns) if len(component.bias) else None
        for suffix in sorted(groups, reverse=True):  # the products of all steps at once come first
            numbers = groups[suffix]
            is_last = suffix == min(groups)
            matrix = np.concatenate([columns[number] for number in numbers], axis=1)
            blocks = tuple(int(ends[number]) for number in numbers) if len(groups) > 1 else ()
            weights = self.parameter(f"{name}.{suffix}", matrix, learns, blocks, orthonormal=orthonormal)
            operand = self.stacked([parts[number] for number in numbers], label)
            own_label = label if is_last and total is None else self.new_name(label)
            product = self.network.add("Times", own_label, weights, operand)
            if total is None:
                total = product
            else:
                total = self.network.add("Plus", label if is_last else self.new_name(label), product, total)
        assert total is not None
        return total

    def _batch_normalisation(self, name: str, component: Component, parts: list[Node], label: str) -> Node:
        fields = component.fields
        invstd = 1 / np.sqrt(np.maximum(fields["StatsVar"], 0.0) + fields["Epsilon"])
        columns = {
            "scale": np.array([fields["TargetRms"]]),
            "bias": np.zeros(1),
            "mean": fields["StatsMean"],
            "invstd": invstd,
        }
        return self.network.add(
            "BatchNormalization",
            label,
            self.stacked(parts, label),
            *(self._column(f"{name}.{key}", component, values, False) for key, values in columns.items()),
            epsilon=fields["Epsilon"],
            normalizationTimeConstant=TIME_CONSTANT,
        )

    def _normalisation(self, name: str, component: Component, parts: list[Node], label: str) -> Node:
        """Give each block of rows a root mean square."""
        size = component.fields.get("BlockDim", component.in_rows)
        blocks = [self.rows(parts, first, size, label) for first in range(0, component.in_rows, size)]
        normalised = [self.network.add("RMSNormalization", self.new_name(label), block) for block in blocks]
        return self.scaled(component.fields.get("TargetRms", 1.0), self.stacked(normalised, label), label)

    def selected(self, name: str, rows: npt.ArrayLike, node: Node, owner: str) -> Node:
        """Return some rows of a node, in any order; name: of the constant matrix that selects them."""
        matrix = np.eye(self.network.shapes[node.name].rows, dtype=np.float64)[np.asarray(rows, np.int64)]
        selection = self.parameter(name, matrix, learns=False)
        return self.network.add("Times", self.new_name(owner), selection, node)

    def attention(
        self, name: str, component: Component, queries: list[Node], keys: list[Node], values: list[Node], label: str
    ) -> Node:
        """Average the values of frames by how well their keys suit the query, for each head.

        Parameters
        ----------
        name : str
            Of the component.
        component : Component
        queries, keys, values : list of Node
            As `attention_rows` selects them; keys and values of the frames of the component's offsets.
        label : str

        Returns
        -------
        Node

        References
        ----------
        attention.h of Kaldi.
        """
        fields = component.fields
        heads, key_rows, value_rows = (fields[label] for label in ("NumHeads", "KeyDim", "ValueDim"))
        num_frames = len(component.offsets)
        by_head = np.arange(num_frames * heads).reshape(num_frames, heads).T.ravel()
        by_rows = np.repeat(np.eye(heads), key_rows, axis=1) * fields["KeyScale"]
        scores = self.parameter(f"{name}.scores", by_rows, learns=False)
        spread = self.parameter(f"{name}.spread", np.repeat(np.eye(heads), value_rows, axis=0), learns=False)
        query = self.rows(queries, 0, heads * key_rows, label)
        places = self.rows(queries, heads * key_rows, heads * num_frames, label)

        def add(kind: str, *operands: Node) -> Node:
            return self.network.add(kind, self.new_name(label), *operands)

        fits = []
        for number in range(num_frames):
            key = self.rows(keys, number * heads * key_rows, heads * key_rows, label)
            fits.append(add("Times", scores, add("ElementTimes", query, key)))
        of_heads = self.selected(f"{name}.heads", by_head, self.stacked(fits, label), label)
        logits = add("Plus", of_heads, places)
        weights = self.stacked(
            [add("Softmax", self.rows([logits], head * num_frames, num_frames, label)) for head in range(heads)], label
        )
        of_frames = self.selected(f"{name}.frames", np.argsort(by_head), weights, label)
        averages = []
        for number in range(num_frames):
            value = self.rows(values, number * heads * value_rows, heads * value_rows, label)
            share = add("Times", spread, self.rows([of_frames], number * heads, heads, label))
            averages.append(add("ElementTimes", share, value))
        total = averages[0]
        for average in averages[1:]:
            total = add("Plus", total, average)
        if not fields["OutputContext"]:
            return total
        first_weight = heads * value_rows
        rows = np.concatenate(
            [
                np.arange(first_weight).reshape(heads, value_rows),
                first_weight + np.arange(heads * num_frames).reshape(heads, num_frames),
            ],
            axis=1,
        )
        return self.selected(f"{name}.output", rows.ravel(), self.stacked([total, weights], label), label)

    def _permutation(self, name: str, component: Component, parts: list[Node], label: str) -> Node:
        return self.selected(f"{name}.weights", component.fields["ColumnMap"], self.stacked(parts, label), label)

    def _convolution(self, name: str, component: Component, parts: list[Node], label: str) -> Node:
        """Convolve an image whose columns are frames."""
        model = component.convolution
        times = model.time_offsets
        first = min(0, *(height for _, height in model.offsets))
        last = max(height for _, height in model.offsets)
        below = (model.height_out - 1) * model.step + last - (model.height_in - 1)
        if below <= -model.step:
            raise ModelError(
                f"{component.where}: {model.height_out} heights of {model.height_in} in steps of {model.step}; "
                "expected windows up to the last"
            )
        rows = model.num_filters_out
        kernel = np.zeros((rows, len(times), last - first + 1, model.num_filters_in))
        blocks = component.matrix.reshape(rows, len(model.offsets), model.num_filters_in)
        for number, (time, height) in enumerate(model.offsets):
            kernel[:, times.index(time), height - first] = blocks[:, number]
        frames = self.stacked(parts, label)
        image = self.network.add(
            "Reshape",
            self.new_name(label),
            frames,
            numRows=len(times) * component.in_rows,
            imageWidth=len(times),
            imageHeight=model.height_in,
            imageChannels=model.num_filters_in,
        )
        convolved = self.network.add(
            "Convolution",
            self.new_name(label),
            self.parameter(f"{name}.weights", kernel.reshape(rows, -1)),
            image,
            kernelWidth=len(times),
            kernelHeight=kernel.shape[2],
            outputChannels=rows,
            horizontalSubsample=1,
            verticalSubsample=model.step,
            padTop=-first,
            padBottom=max(below, 0),
        )
        bias = self.parameter(f"{name}.bias", component.bias[:, np.newaxis])
        return self.network.add("Plus", label, convolved, bias)

    def _lstm(self, name: str, component: Component, parts: list[Node], label: str) -> list[Node]:
        """Compute the cells and the outputs of an LSTM.  Source: cu::ComputeLstmNonlinearity in cu-math.h of Kaldi."""
        size = component.out_rows // 2
        in_gate, forget_gate, new_cell, out_gate, old_cell = (self.rows(parts, k * size, size, label) for k in range(5))
        keep = 1.0
        if component.fields.get("UseDropout"):
            if not isinstance(parts[-1], Constant):
                raise ModelError(
                    f"{component.where}: masks that are computed; expected those of a DropoutMaskComponent"
                )
            keep = parts[-1].settings["value"]

        def add(kind: str, *operands: Node) -> Node:
            return self.network.add(kind, self.new_name(label), *operands)

        def gate(row: int, weighted: Node, cell: Node) -> Node:
            peephole = self.parameter(f"{name}.peephole{row}", component.fields["Params"][row][:, np.newaxis])
            return self.scaled(keep, add("Sigmoid", add("Plus", weighted, add("DiagTimes", peephole, cell))), label)

        kept = add("ElementTimes", gate(1, forget_gate, old_cell), old_cell)
        cell = add("Plus", kept, add("ElementTimes", gate(0, in_gate, old_cell), add("Tanh", new_cell)))
        return [cell, add("ElementTimes", gate(2, out_gate, cell), add("Tanh", cell))]
