"""The computational network: named nodes, their stored values, and their roles (CNTK book 2.1)."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from acoustic.kernels.backend import Backend
from acoustic.kernels.shape import Shape
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from acoustic.nodes.leaves import StoredNode
from acoustic.nodes.option import name_hint
from acoustic.nodes.properties import DELAY
from acoustic.nodes.registry import node_class
from readers.config.feature_record import FeatureRecord
from readers.errors import ModelError, ShapeError
from readers.language.vocabulary_record import VocabularyRecord

_AT_LEAST_ONE = "at least one row and one column"
SPECIAL_LISTS = ("features", "labels", "criteria", "evaluations", "outputs")


class Network:
    """A directed graph of nodes.

    Parameters
    ----------
    precision : str
        ``float`` (float32) or ``double`` (float64).
    device : str
        ``cpu``, ``gpu`` or ``gpu:N``.
    seed : int
        Seed of the random initial values; the n-th random parameter takes the n-th stream.
    threads : int, optional
        Number of threads, see Backend.

    Attributes
    ----------
    nodes : dict
        Name to Node, in order of creation.
    shapes : dict
        Name to Shape.
    features, labels, criteria, evaluations, outputs : list of str
        Names of the nodes with a special role (SPECIAL_LISTS).
    feature_records : dict of str to FeatureRecord
        How the features of an input were computed, by the name of the input, for those that training recorded.
    vocabularies : dict of str to VocabularyRecord
        The words that the numbers or rows of an input stand for, by the name of the input, for those that training
        recorded.
    source : str
        The file that the network was read from, or "the network".
    """

    def __init__(
        self, precision: str = "float", device: str = "cpu", seed: int = 0, threads: int | None = None
    ) -> None:
        self.backend = Backend(precision, device, threads)
        self.seed = seed
        self.nodes: dict[str, Node] = {}
        self.shapes: dict[str, Shape] = {}
        self.features: list[str] = []
        self.labels: list[str] = []
        self.criteria: list[str] = []
        self.evaluations: list[str] = []
        self.outputs: list[str] = []
        self.feature_records: dict[str, FeatureRecord] = {}
        self.vocabularies: dict[str, VocabularyRecord] = {}
        self.source = "the network"
        self._num_random: int | None = None

    def __getitem__(self, name: str) -> Node:
        """Return the node called `name`, or the only one that differs from it in case.

        Raises ModelError with the nearest names if there is none.
        """
        if name in self.nodes:
            return self.nodes[name]
        same = [node for node_name, node in self.nodes.items() if node_name.lower() == name.lower()]
        if len(same) != 1:
            raise ModelError(f"node {name!r}: not in the network; {name_hint(name, self.nodes)}")
        return same[0]

    def add(self, type_name: str, name: str, *operands: Node | str, **options: Any) -> Node:
        """Create a node, infer its shape and give it its initial value.

        Parameters
        ----------
        type_name : str
            A node type or an alias, in any case.
        name : str
        *operands : Node or str
            Nodes of this network or their names.
        **options
            Options of the node type.

        Returns
        -------
        Node

        Raises
        ------
        ModelError
            For an unknown type or option, or a name that is taken.
        ShapeError
            When the operands do not fit.
        """
        node = self.add_node(type_name, name, operands, options)
        self.initialise(node)
        return node

    def initialise(self, node: Node) -> None:
        """Give a parameter or constant its initial value; other nodes have none. Raises ModelError."""
        if isinstance(node, StoredNode) and not node.is_precomputed:
            self.check_size(node)
            node.value = self._converted(node, np.asfortranarray(node.initial_value(self._generator(node))))

    def _converted(self, node: Node, value: Any) -> Any:
        """Return a value of a node in the network's precision.  Raises ModelError if it is too large for that."""
        with np.errstate(over="ignore"):
            converted = self.backend.asarray(value)
        wider = np.dtype(value.dtype).itemsize > np.dtype(self.backend.dtype).itemsize
        if wider and bool(self.backend.xp.isinf(converted).any()) and not np.isinf(value).any():
            raise ModelError(
                f"{node.where}: values beyond the range of float; expected smaller ones, or precision=double"
            )
        return converted

    def check_size(self, node: Node) -> None:
        """Raise ShapeError if the size of a parameter or constant is still open, ModelError if it is too large."""
        rows, cols = self.shapes[node.name]
        assert isinstance(cols, int)  # parameters and constants have no frames
        if 0 in (rows, cols):
            raise ShapeError(
                f"{node.where}: shape {rows}x{cols}; expected {_AT_LEAST_ONE}, or a node that settles them"
            )
        if rows * cols * 8 > _memory():
            raise ModelError(f"{node.where}: {rows}x{cols} numbers; expected a matrix that fits this machine's memory")

    def add_node(
        self,
        type_name: str,
        name: str,
        operands: Sequence[Node | str | None],
        options: Mapping[str, Any],
        origin: str = "",
    ) -> Node:
        """Create a node and infer its shape, without giving it a value.

        Parameters
        ----------
        type_name, name : str
        operands : sequence of Node, str or None
            The operand of a delay may be None, to be connected later; in this way loops are built.
        options : mapping
            Options of the node type.
        origin : str
            File and line of the description, for messages.

        Returns
        -------
        Node

        Raises
        ------
        ModelError, ShapeError
            As `add`.
        """
        if name in self.nodes:
            raise ModelError(f"{self.nodes[name].where}: already in the network; expected a new name")
        nodes: list[Any] = [self[operand] if isinstance(operand, str) else operand for operand in operands]
        for operand in nodes:
            if operand is not None and self.nodes.get(operand.name) is not operand:
                raise ModelError(f"node {name!r}: operand {operand.name!r} is not of this network")
        node = node_class(type_name)(name, nodes, dict(options), origin)
        if not node.delay:
            node.check_connected()
            self._settle_open_operands(node)
        self.shapes[name] = self.checked_shape(node)
        self.nodes[name] = node
        self._tag(node)
        return node

    def connect(self, node: Node | str, operand: Node | str) -> None:
        """Set the operand of a delay that was created without it. Raises ModelError and ShapeError."""
        node, operand = (self[reference] if isinstance(reference, str) else reference for reference in (node, operand))
        if not node.delay:
            raise ModelError(f"{node.where}: was created with its operands; expected a PastValue or FutureValue")
        node.operands = [operand]
        self.checked_shape(node)

    def _tag(self, node: Node) -> None:
        tag = str(node.settings.get("tag", "")).lower()
        for tag_name, names in (("feature", self.features), ("label", self.labels)):
            if tag == tag_name:
                names.append(node.name)

    def _generator(self, node: Node) -> np.random.Generator:
        own_seed = getattr(node, "own_seed", -1)
        if own_seed >= 0:
            return np.random.default_rng((self.seed, 0, own_seed))
        if getattr(node, "draws_random", False):
            if self._num_random is None:  # a network that was read from a file continues its numbering
                drawn = [
                    random_node for random_node in self.nodes.values() if getattr(random_node, "draws_random", False)
                ]
                self._num_random = sum(random_node.value is not None for random_node in drawn)
            self._num_random += 1
        return np.random.default_rng((self.seed, self._num_random or 0))

    def checked_shape(self, node: Node) -> Shape:
        """Return the shape that follows from a node's operands, as far as a delay has any yet. Raises ShapeError."""
        shaped_operands = (
            node.operands
            if not node.delay
            else [operand for operand in node.operands if operand and operand.name in self.shapes]
        )
        shape = node.infer_shape(*(self.shapes[operand.name] for operand in shaped_operands))
        one_per_frame = node.delay or (node.along_sequences and not node.sums_frames)
        if one_per_frame and shape.cols is not None:
            raise node.shape_error([shape], "one column per frame")
        fewest = 0 if _may_be_open(node) else 1
        if shape.rows < fewest or (isinstance(shape.cols, int) and shape.cols < fewest):
            raise ShapeError(f"{node.where}: shape {shape}; expected {_AT_LEAST_ONE}")
        return shape

    def _settle_open_operands(self, node: Node) -> None:
        """Determine the rows and columns of parameters without a value that their description leaves open as 0."""
        for k, operand in enumerate(node.operands):
            shape = self.shapes[operand.name]
            if _may_be_open(operand) and 0 in shape:
                wanted_shape = node.wanted_operand(k, *(self.shapes[sibling.name] for sibling in node.operands))
                if wanted_shape is not None:
                    shape = Shape(shape.rows or wanted_shape.rows, shape.cols or wanted_shape.cols)
                    operand.settings["rows"], operand.settings["cols"] = shape
                    self.shapes[operand.name] = shape

    def set_value(self, node: Node | str, value: Any) -> None:
        """Set the value of a parameter, constant or statistic.

        Parameters
        ----------
        node : Node or str
        value : array (rows, cols)
            Of any float type; it is converted to the network's precision and memory order.

        Raises
        ------
        ModelError
            For a node without a stored value.
        ShapeError
            For a value of another shape.
        """
        node = self[node] if isinstance(node, str) else node
        if not node.is_stored:
            raise ModelError(f"{node.where}: is computed; expected a parameter, constant or statistic")
        expected = self.shapes[node.name]
        if tuple(value.shape) != tuple(expected):
            raise ShapeError(f"{node.where}: value is {'x'.join(map(str, value.shape))}; expected {expected}")
        node.value = self._converted(node, value)

    def stored_values(self) -> dict[str, Any]:
        """Return the values (rows, cols) of parameters, constants and statistics by node name, if they have one."""
        return {node.name: node.value for node in self.stored() if node.value is not None}

    def parameters(self) -> list[Node]:
        """Return the learnable parameters, frozen ones included, in order of creation."""
        return [node for node in self.nodes.values() if node.is_stored and "needGradient" in node.settings]

    def stored(self) -> list[Node]:
        """Return the nodes whose value is saved with the model, in order of creation."""
        return [node for node in self.nodes.values() if node.is_stored]

    def precomputed(self) -> list[Node]:
        """Return the statistics (Mean, InvStdDev), computed or not, in order of creation."""
        return [node for node in self.nodes.values() if node.is_precomputed]

    def delays(self) -> list[Node]:
        """Return the nodes that use other frames of a sequence; a network that has any is recurrent."""
        return [node for node in self.nodes.values() if node.has(DELAY) or node.along_sequences]

    def special(self) -> dict[str, list[str]]:
        """Return the lists of nodes with a special role by list name."""
        return {name: getattr(self, name) for name in SPECIAL_LISTS}

    def num_parameters(self) -> int:
        """Return the number of values that training may change."""
        return sum(node.value.size for node in self.parameters() if node.needs_gradient)

    def validate(self) -> None:
        """Check the whole graph and infer all shapes again.

        All operands must be set, every loop must contain a delay, shapes must fit, and nodes must suit their special
        roles.

        Raises
        ------
        ModelError, ShapeError
            Naming the node.
        """
        for node in self.nodes.values():
            node.check_connected()
        order = forward_order(self.nodes.values(), children=lambda node: node.operands)
        delays = [node for node in order if node.delay]
        for node in delays:
            self.shapes[node.name] = node.infer_shape()
        for node in order:
            if self.nodes.get(node.name) is not node:
                raise ModelError(f"{node.where}: is an operand but not in the network")
            if not node.delay:
                self.shapes[node.name] = self.checked_shape(node)
        for node in delays:
            self.checked_shape(node)
        for list_name, names in self.special().items():
            names[:] = [self[name].name for name in names]  # a file may have them in another case
            for name in names:
                node = self[name]
                if list_name in ("features", "labels") and not node.is_input:
                    raise ModelError(f"{node.where}: is among the {list_name}; expected an InputValue")
                if list_name in ("criteria", "evaluations") and self.shapes[name] != Shape(1, 1):
                    raise ShapeError(f"{node.where}: {self.shapes[name]}, among the {list_name}; expected 1x1")

    def describe(self) -> Iterable[str]:
        """Yield one line per node in CNTK's notation: ``H1 = Sigmoid(W0*features+B0) [512x*]``."""
        for node in self.nodes.values():
            operands = ", ".join(operand.name if operand else "-" for operand in node.operands)
            yield f"{node.name} = {node.type_name}({operands}) [{self.shapes[node.name]}]"


def _may_be_open(node: Node) -> bool:
    """Return whether another node may still determine the size of this one."""
    return node.is_stored and "needGradient" in node.settings and node.value is None


def _memory() -> float:
    """Return the bytes of memory of the machine, infinity if unknown."""
    has_sysconf = hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if has_sysconf else np.inf
