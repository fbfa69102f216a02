"""The base class of node types: declarations, a shape rule and two pure functions; and their registry.

A node type is one class. It declares its names, operands and options, how its shape follows from theirs, `forward`,
which fills a buffer with the value, `backward`, which adds to the gradients of the operands, and what that reads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from acoustic.kernels.backend import Backend
from acoustic.kernels.shape import Shape
from acoustic.nodes.option import REQUIRED, Option, name_hint
from acoustic.nodes.sequence_state import Sequences
from readers.errors import ModelError, ShapeError

VALUE = "value"  # in `backward_reads`: the node's value
WORK = "work"  # in `backward_reads`: the node's workspace


@dataclass
class PassContext:
    """The settings of one pass over a minibatch: where it computes, whether it trains, and its random seed.

    Parameters
    ----------
    backend : Backend
    training : bool
    dropout_rate : float
        Probability that Dropout sets an element to zero; 0 in evaluation.
    seed : tuple of int
        For instance (seed, epoch, minibatch); equal seeds give equal dropout masks.
    first_column : int
        The number in the minibatch of the first column of this part, where threads share the columns.
    sequences : Sequences or None
        The sequences that the columns hold, and the state from earlier minibatches; None for independent frames.
    """

    backend: Backend
    training: bool = False
    dropout_rate: float = 0.0
    seed: tuple[int, ...] = (0,)
    first_column: int = 0
    sequences: Sequences | None = None
    kernels: Any = None  # ArrayKernels, CompiledKernels, or an Emitter while operations are listed
    xp: Any = field(init=False)  # numpy or cupy
    #: matmul(a, b, out, scale=1, keep=0) computes scale a b + keep out in Fortran order, which a @ b would not keep
    matmul: Callable[..., None] = field(init=False)

    def __post_init__(self) -> None:
        self.xp = self.backend.xp
        self.kernels = self.kernels or self.backend.kernels
        self.matmul = self.kernels.matmul


class Node:
    """Base of every node type.

    Operands and values are matrices (rows, cols) in Fortran order, in the precision of the network. A subclass sets the
    class attributes that it needs and defines `infer_shape`, `forward` and, when it is differentiable, `backward` and
    `tangent`, the derivative in forward mode that checks `backward`.

    Parameters
    ----------
    name : str
        Unique in its network.
    operands : sequence of Node
    settings : dict, optional
        Options by name, as values or text.
    origin : str
        File and line of the description that made the node, for messages; it is not saved.

    Raises
    ------
    ModelError
        For a wrong number of operands, an unknown or missing option, or a bad value of one.
    """

    type_name: ClassVar[str] = ""  #: the name in model files and messages
    aliases: ClassVar[tuple[str, ...]] = ()  #: further names in the network description language
    operand_names: ClassVar[tuple[str, ...]] = ()  #: names of the operands, for messages and documentation
    variadic: ClassVar[bool] = False  #: the last operand may be given any number of times, at least once
    options: ClassVar[tuple[Option, ...]] = ()  #: the options of the type
    #: operands and options in the order of a positional call, unless it is operands, then positional options
    arguments: ClassVar[tuple[str, ...]] = ()
    #: for each operand what its gradient reads: operand numbers, VALUE, WORK; None or no entry for no gradient
    backward_reads: ClassVar[tuple[tuple[int | str, ...] | None, ...]] = ()
    sums_frames: ClassVar[bool] = False  #: the value is a sum over frames: values of parts of the columns are added
    is_input: ClassVar[bool] = False  #: given by the caller, one column per frame
    is_stored: ClassVar[bool] = False  #: has a value that is saved with the model
    is_precomputed: ClassVar[bool] = False  #: a statistic of the training set; its value is None until it is computed
    onnx_operator: ClassVar[str] = ""  #: the equivalent ONNX operator on transposed matrices, if there is one
    along_sequences: ClassVar[bool] = False  #: a frame's value depends on other frames of its sequence
    properties: ClassVar[frozenset[str]] = frozenset()  #: DELAY, RANDOM and so on, see properties.py

    def __init__(
        self,
        name: str,
        operands: Sequence["Node"] = (),
        settings: dict[str, Any] | None = None,
        origin: str = "",
    ) -> None:
        self.name = name
        self.origin = origin
        self.operands = list(operands)
        self.settings = self._check_settings(settings or {})
        self._check_number_of_operands()
        self._value: Any = None
        self.version = 0  # increases whenever the stored value changes

    def _check_number_of_operands(self) -> None:
        count = len(self.operands)
        names = self.operand_names
        if count == len(names) or (self.variadic and count > len(names)):
            return
        expected = f"at least {len(names)}" if self.variadic else f"{len(names)}"
        raise ModelError(f"{self.where}: {count} operands; expected {expected} ({', '.join(names)})")

    def check_connected(self) -> None:
        """Raise ModelError when an operand is None, as after the removal of its node."""
        for k, operand in enumerate(self.operands):
            if operand is None:
                name = self.operand_names[min(k, len(self.operand_names) - 1)]
                raise ModelError(f"{self.where}: input {k} ({name}) is not connected; expected a node there")

    def _check_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        option_of_name = {name.lower(): option for option in self.options for name in (option.name, *option.aliases)}
        checked = {}
        for name, value in settings.items():
            if name.lower() not in option_of_name:
                hint = name_hint(name, [option.name for option in self.options])
                raise ModelError(f"{self.where}: unknown option {name!r}; {hint}")
            option = option_of_name[name.lower()]
            checked[option.name] = option.convert(value, self.where)
        for option in self.options:
            if checked.setdefault(option.name, option.default) is REQUIRED:
                raise ModelError(f"{self.where}: option {option.name!r} is missing; expected {option.kind.__name__}")
        return checked

    @classmethod
    def positional_arguments(cls) -> tuple[str, ...]:
        """Return operands and options in the order of a positional call, as in ``RowSlice(startRow, numRows, X)``.

        The last one of a variadic type stands for any number of operands.
        """
        return cls.arguments or (*cls.operand_names, *(option.name for option in cls.options if option.positional))

    @property
    def where(self) -> str:
        """The node's name and type, after the file and line that made it if known, for messages."""
        return f"{self.origin}: {self._label}" if self.origin else self._label

    @property
    def _label(self) -> str:
        return f"node {self.name!r} ({self.type_name})"

    @property
    def needs_gradient(self) -> bool:
        """Whether training changes this node's own value; the engine derives it for other nodes (Algorithm 2.5)."""
        return False

    def has_gradient(self, k: int) -> bool:
        """Return whether the value is differentiable with respect to operand `k`."""
        return self.gradient_reads(k) is not None

    def gradient_reads(self, k: int) -> tuple[int | str, ...] | None:
        """Return the entry of `backward_reads` for operand `k`, or None.

        The last entry of a variadic type holds for all further operands.
        """
        if self.variadic:
            k = min(k, len(self.backward_reads) - 1)
        return self.backward_reads[k] if 0 <= k < len(self.backward_reads) else None

    def has(self, *names: str) -> bool:
        """Return whether the type has one of some properties."""
        return not self.properties.isdisjoint(names)

    @property
    def keeps_statistics(self) -> bool:
        """Whether stored operands follow the minibatches: see `updated_statistics`."""
        return type(self).updated_statistics is not Node.updated_statistics

    @property
    def is_leaf(self) -> bool:
        """Whether the value is given instead of computed during a pass."""
        return self.is_input or self.is_stored

    @property
    def value(self) -> Any:
        """The stored matrix (rows, cols) of a parameter, constant or statistic; None while there is none."""
        return self._value

    @value.setter
    def value(self, array: Any) -> None:
        self._value = array
        self.touch()

    def touch(self) -> None:
        """Mark the value as changed, after a change in place; engines and compiled loops compare `version` only."""
        self.version += 1

    def assign(self, value: Any) -> None:
        """Copy a value into the memory of the stored one, and mark it as changed."""
        self.value[...] = value
        self.touch()

    def shape_error(self, shapes: Sequence[Shape], expected: str) -> ShapeError:
        """Return the error for operands that do not fit.

        Its text has the form
        ``n.ndl:7: node 'h' (Times): A 'W' is 2x3, B 'x' is 4x5; expected columns of A = rows of B``.

        Parameters
        ----------
        shapes : sequence of Shape
            Of the operands.
        expected : str

        Returns
        -------
        ShapeError
        """
        roles = [*self.operand_names, *[f"operand {k + 1}" for k in range(len(self.operand_names), len(shapes))]]
        operands = zip(roles, self.operands, shapes)
        operands_text = ", ".join(f"{role} {operand.name!r} is {shape}" for role, operand, shape in operands)
        return ShapeError(f"{self.where}: {operands_text}; expected {expected}")

    # With Any for keywords, too, overrides may name the operands and buffers that they take.
    def infer_shape(self, *shapes: Any, **_: Any) -> Shape:
        """Return the shape of the value.

        Parameters
        ----------
        *shapes : Shape
            Of the operands.

        Raises
        ------
        ShapeError
            When the operands do not fit.
        """
        raise NotImplementedError

    @property
    def delay(self) -> int:
        """The number of steps by which the value lags behind the operand; negative if it is ahead, 0 for no delay.

        A delay node may be created before its operand, and may depend on its own value: it closes a recurrent loop.
        """
        return 0

    @property
    def reach(self) -> tuple[float, float]:
        """The number of earlier and of later steps of the sequence on which a step's value depends."""
        return (float("inf"),) * 2 if self.along_sequences else (max(self.delay, 0), max(-self.delay, 0))

    def wanted_operand(self, k: int, *shapes: Any, **_: Any) -> Shape | None:
        """Return the shape that operand `k`, a parameter with rows or columns left open as 0, must have.

        `shapes` are those of all operands. None means that this node does not determine it.
        """
        return None

    def work_shape(self, *shapes: Any, **_: Any) -> Shape | None:
        """Return the shape of the workspace that `forward` fills for `backward`, or None for no workspace."""
        return None

    def splits_frames(self, *shapes: Any, **_: Any) -> bool:
        """Return whether threads may share the columns, given the shapes of the operands.

        This holds if each column of the value depends only on the same column of the operands that have one column per
        frame. A sum over frames may be shared if the sum of its parts is the value.
        """
        return all(shape.cols in ((None,) if self.sums_frames else (None, 1)) for shape in shapes)

    def frame_by_frame(self, *shapes: Shape) -> bool:
        """Return whether a minibatch in evaluation may be cut at any column without changing the values."""
        return self.splits_frames(*shapes) and not self.sums_frames

    def forward(self, context: PassContext, *inputs: Any, **buffers: Any) -> None:
        """Fill `out` with the value.

        Parameters
        ----------
        context : PassContext
        *inputs : array (rows, cols)
            The values of the operands.
        out : array (rows, cols)
            The buffer of the value.
        work : array, optional
            The workspace, for types that define `work_shape`; None when no backward pass follows.
        """
        raise NotImplementedError

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        """Add to the gradients of the operands.

        Parameters
        ----------
        context : PassContext
        grad : array (rows, cols)
            The gradient of the criterion with respect to the value.
        inputs, value : arrays or None
            Values of the operands and of the node; None where `backward_reads` does not name them.
        grads : GradientTargets
            The gradients of the operands, see gradient_targets.py.

        Raises
        ------
        ModelError
            For a type without a gradient.
        """
        raise ModelError(f"{self.where}: has no gradient; expected a differentiable node below a training criterion")

    def updated_statistics(
        self, context: PassContext, stored: Sequence[Any], work: Any, num_frames: int
    ) -> dict[int, Any]:
        """Return new values of stored operands after a training minibatch, by operand number.

        `stored` are the current values of the operands, None for computed ones; `work` is the workspace that `forward`
        filled.
        """
        raise NotImplementedError

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Return the directional derivative of the value (forward mode), an array (rows, cols).

        It serves to check `backward` and is therefore computed from the formula of the value and from `inputs` only.

        Parameters
        ----------
        context : PassContext
        inputs : sequence of arrays
            The values of the operands.
        tangents : sequence of arrays
            The direction in which each operand moves, of its shape.
        """
        raise ModelError(f"{self.where}: has no derivative; expected a differentiable node above the parameters")

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        """Add the operators that compute the value to an OnnxGraph and return the name of the resulting tensor.

        Every matrix is transposed in the graph, to (cols, rows): one row per frame. `inputs` are the names of the
        operands' tensors.

        Raises
        ------
        ModelError
            When ONNX has no equivalent.
        """
        if not self.onnx_operator:
            raise ModelError(f"{self.where}: has no form in ONNX; expected output nodes that do not depend on it")
        return graph.add(self.onnx_operator, *inputs)


class LinearNode(Node):
    """Base of types whose value is linear in all operands jointly; their tangent is the value of the tangents."""

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        rows, cols = self.infer_shape(*(Shape(*tangent.shape) for tangent in tangents))
        assert isinstance(cols, int)  # as those of the tangents
        out = context.backend.empty(rows, cols)
        self.forward(context, *tangents, out=out)
        return out


REGISTRY: dict[str, type[Node]] = {}


def register_node(name: str, *aliases: str) -> Callable[[type[Node]], type[Node]]:
    """Return a class decorator that registers a node type under a name and aliases, in any case.

    Parameters
    ----------
    name : str
        The name that model files store.
    *aliases : str

    Raises
    ------
    ValueError
        When a name is already registered.
    """

    def register(node_class: type[Node]) -> type[Node]:
        for node_name in (name, *aliases):
            if node_name.lower() in REGISTRY:
                raise ValueError(f"node type {node_name!r} is already {REGISTRY[node_name.lower()].__name__}")
        REGISTRY.update((node_name.lower(), node_class) for node_name in (name, *aliases))
        node_class.type_name = name
        node_class.aliases = aliases
        return node_class

    return register
