"""What a computation node is: a description, a shape rule and two pure functions; and the registry of node types.

A node type is one class.  It declares its names in the network description language, its operands and options, how its
shape follows from theirs, `forward`, which fills a buffer, and `backward`, which adds into its operands' gradients, and
what `backward` reads, so that the engine may recycle everything else.  Nothing else in the system lists node types.
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from acoustic.kernels.backend import Backend
from acoustic.kernels.shape import Shape
from acoustic.nodes.sequence_state import Sequences
from readers.errors import ModelError, ShapeError

REQUIRED: Any = object()
VALUE = "value"  # in `backward_reads`: the node's own value
WORK = "work"  # in `backward_reads`: the node's own workspace


@dataclass(frozen=True)
class Option:
    """An option of a node type: its name, type, default, and whether it may be given by position."""

    name: str
    kind: type
    default: Any = REQUIRED
    positional: bool = False
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def convert(self, value: Any, where: str) -> Any:
        """The value as this option's type, from that type or from text.  Raises ModelError."""
        try:
            if self.kind is bool:
                return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
            converted = self.kind(value)
            if self.kind is int and converted != float(value):
                raise ValueError(value)
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise ModelError(f"{where}: {self.name}={value!r}; expected {self.kind.__name__}") from error
        if self.choices:
            known = {choice.lower(): choice for choice in self.choices}
            if str(converted).lower() not in known:
                raise ModelError(f"{where}: {self.name}={value!r}; expected one of {', '.join(self.choices)}")
            return known[str(converted).lower()]
        return converted


@dataclass
class Run:
    """What one pass over a minibatch is told: where to compute, whether it trains, and where its randomness starts.

    dropout_rate is 0 in evaluation.  seed: whole numbers, say (seed, epoch, minibatch); equal seeds give equal masks.
    first_column: which column of the minibatch a part of it begins with.  sequences: how the columns hold sequences,
    and what came before them; None: the frames are on their own.
    """

    backend: Backend
    training: bool = False
    dropout_rate: float = 0.0
    seed: tuple[int, ...] = (0,)
    first_column: int = 0
    sequences: Sequences | None = None
    xp: Any = field(init=False)
    kernels: Any = field(init=False)

    def __post_init__(self) -> None:
        self.xp, self.kernels = self.backend.xp, self.backend.kernels


class Node:
    """Base of every node type.

    Operands are matrices (rows, cols) in Fortran order.  A subclass sets the class attributes it needs and defines
    `infer_shape`, `forward` and, when it can be differentiated, `backward` and, to check it, `tangent`.
    """

    type_name: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    operand_names: ClassVar[tuple[str, ...]] = ()
    variadic: ClassVar[bool] = False  # the last operand may stand any number of times, at least once
    options: ClassVar[tuple[Option, ...]] = ()
    # The order of the positional arguments in the network description language, when it is another than operands, then
    # positional options; names of operands and options.
    arguments: ClassVar[tuple[str, ...]] = ()
    # Per operand what its gradient reads: operand indices, VALUE, WORK; None, or no entry: it has no gradient.
    backward_reads: ClassVar[tuple[tuple[int | str, ...] | None, ...]] = ()
    # Operands whose buffer the value may overwrite, and whose gradient may be written over the node's own gradient
    # (if so, `backward` writes that one last, or unchanged).
    value_in_place: ClassVar[tuple[int, ...]] = ()
    gradient_in_place: ClassVar[tuple[int, ...]] = ()
    # The value is a sum over the frames: parts computed from parts of the columns add up to it.
    sums_frames: ClassVar[bool] = False
    # Operands without frames whose gradient is one matrix product over all frames: better made once than added up.
    frame_products: ClassVar[tuple[int, ...]] = ()
    # Those of them that are weights of a layer: which of the weight's dimensions, 0 rows or 1 columns, is that of the
    # layer's inputs.
    layer_inputs: ClassVar[dict[int, int]] = {}
    # Operands that may be given as Indicators, without the matrix, where an input holds one-hot columns.
    takes_indicators: ClassVar[tuple[int, ...]] = ()
    # Operands without frames whose gradient may be given for some columns alone: see Into.add_columns.
    touches_columns: ClassVar[tuple[int, ...]] = ()
    skips_gaps: ClassVar[bool] = False  # leaves columns without a frame out by itself
    is_input: ClassVar[bool] = False  # fed by the caller, one column per frame
    is_stored: ClassVar[bool] = False  # holds a value of its own, saved with the model
    is_precomputed: ClassVar[bool] = False  # a statistic of the whole training set; `value` is None until it is known
    reads_run: ClassVar[bool] = False  # its value depends on Run (random numbers, training or not)
    onnx_operator: ClassVar[str] = ""  # the ONNX operator that does the same to transposed matrices, if there is one
    is_delay: ClassVar[bool] = False  # may be made before its operand: see `delay`
    along_sequences: ClassVar[bool] = False  # its value of a frame follows from other frames of the same sequence
    is_socket: ClassVar[bool] = False  # its operand is of another network, with columns of its own: see PairNetwork
    keeps_statistics: ClassVar[bool] = False  # some stored operands follow the minibatches: see updated_statistics

    def __init__(
        self,
        name: str,
        operands: Sequence["Node"] = (),
        settings: dict[str, Any] | None = None,
        origin: str = "",
    ) -> None:
        self.name = name
        self.origin = origin  # file and line of the description that made it, for messages; not saved
        self.operands = list(operands)
        self.settings = self._check_settings(settings or {})
        self._check_number_of_operands()
        self._value: Any = None
        self.version = 0  # rises whenever a stored value changes

    def _check_number_of_operands(self) -> None:
        count, names = len(self.operands), self.operand_names
        if count == len(names) or (self.variadic and count > len(names)):
            return
        expected = f"at least {len(names)}" if self.variadic else f"{len(names)}"
        raise ModelError(f"{self.where}: {count} operands; expected {expected} ({', '.join(names)})")

    def check_connected(self) -> None:
        """Raise ModelError when an operand is None, as editing leaves it where the node it stood for is gone."""
        for k, operand in enumerate(self.operands):
            if operand is None:
                name = self.operand_names[min(k, len(self.operand_names) - 1)]
                raise ModelError(f"{self.where}: input {k} ({name}) is not connected; expected a node there")

    def _check_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        known = {name.lower(): option for option in self.options for name in (option.name, *option.aliases)}
        checked = {}
        for name, value in settings.items():
            if name.lower() not in known:
                hint = did_you_mean(name, [option.name for option in self.options])
                raise ModelError(f"{self.where}: unknown option {name!r}; {hint}")
            option = known[name.lower()]
            checked[option.name] = option.convert(value, self.where)
        for option in self.options:
            if checked.setdefault(option.name, option.default) is REQUIRED:
                raise ModelError(f"{self.where}: option {option.name!r} is missing; expected {option.kind.__name__}")
        return checked

    @classmethod
    def positional_arguments(cls) -> tuple[str, ...]:
        """Names of the operands and options in the order of a call by position, as in `RowSlice(startRow, numRows, X)`.

        The last one of a variadic type stands for any number of operands.
        """
        return cls.arguments or (*cls.operand_names, *(option.name for option in cls.options if option.positional))

    @property
    def where(self) -> str:
        return f"{self.origin}: {self._label}" if self.origin else self._label

    @property
    def _label(self) -> str:
        return f"node {self.name!r} ({self.type_name})"

    @property
    def needs_gradient(self) -> bool:
        """Whether training changes this node's own value; for other nodes the engine derives it (Algorithm 2.5)."""
        return False

    def has_gradient(self, k: int) -> bool:
        """Whether the value can be differentiated with respect to operand k."""
        return self.gradient_reads(k) is not None

    def gradient_reads(self, k: int) -> tuple[int | str, ...] | None:
        """The entry of `backward_reads` for operand k; of a variadic type the last entry stands for all that follow."""
        if self.variadic:
            k = min(k, len(self.backward_reads) - 1)
        return self.backward_reads[k] if 0 <= k < len(self.backward_reads) else None

    @property
    def is_leaf(self) -> bool:
        """Whether the value is given instead of computed during a pass."""
        return self.is_input or self.is_stored

    @property
    def value(self) -> Any:
        """The stored matrix (rows, cols) of a parameter, constant or statistic; None when there is none yet."""
        return self._value

    @value.setter
    def value(self, array: Any) -> None:
        self._value = array
        self.touch()

    def touch(self) -> None:
        """Call after every change of `value` in place: engines and compiled loops look at the version alone."""
        self.version += 1

    def shape_error(self, shapes: Sequence[Shape], expected: str) -> ShapeError:
        """The fault `n.ndl:7: node 'h' (Times): A 'W' is 2x3, B 'x' is 4x5; expected columns of A = rows of B`."""
        roles = [*self.operand_names, *[f"operand {k + 1}" for k in range(len(self.operand_names), len(shapes))]]
        operands = zip(roles, self.operands, shapes)
        found = ", ".join(f"{role} {operand.name!r} is {shape}" for role, operand, shape in operands)
        return ShapeError(f"{self.where}: {found}; expected {expected}")

    def infer_shape(self, *shapes: Shape) -> Shape:
        """The shape of the value.  Raises ShapeError when the operands do not fit."""
        raise NotImplementedError

    @property
    def delay(self) -> int:
        """How many steps back in time the value was computed; negative: ahead.  0: it is of the same step.

        Such a node may be made before its operand, and it may be its own operand through others: a recurrent loop.
        """
        return 0

    def wanted_operand(self, k: int, *shapes: Shape) -> Shape | None:
        """The shape that a parameter must have as operand k, when its description leaves rows or columns open with 0.

        shapes: of all operands.  None: the node does not settle it.
        """
        return None

    def work_shape(self, *shapes: Shape) -> Shape | None:
        """The shape of a workspace that `forward` fills for `backward`; None when there is none."""
        return None

    def splits_frames(self, *shapes: Shape) -> bool:
        """Whether some columns of the value follow from the same columns of the operands that have one per frame.

        For a sum over frames: whether some columns of the operands give their share of it.  shapes: of the operands.
        """
        if self.sums_frames:
            return all(shape.cols is None for shape in shapes)
        return all(shape.cols in (None, 1) for shape in shapes)

    def frame_by_frame(self, *shapes: Shape) -> bool:
        """The same question in evaluation: whether a minibatch can be cut anywhere, and the values stay the same."""
        return self.splits_frames(*shapes) and not self.sums_frames

    def repeats_calls(self, *shapes: Shape) -> bool:
        """Whether forward and backward compute by products and `run.kernels` alone, and alike in every pass.

        Such steps can be recorded and repeated without Python, see acoustic/runtime/replay.py.  shapes: of the
        operands.
        """
        return False

    def forward(self, run: Run, *inputs: Any, out: Any) -> None:
        """Fill `out` with the value; nodes with a workspace get it as `work` (None when no gradient will follow)."""
        raise NotImplementedError

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        """Add to the operands' gradients.

        grad: gradient of the criterion with respect to the value.  inputs and value hold None where `backward_reads`
        does not name them.  into: see acoustic.nodes.gradient_targets.Into.
        """
        raise ModelError(f"{self.where}: has no gradient; expected a differentiable node below a training criterion")

    def updated_statistics(self, run: Run, stored: Sequence[Any], work: Any, num_frames: int) -> dict[int, Any]:
        """Position of a stored operand -> its value after a training minibatch, where `keeps_statistics`.

        stored: the operands' values now, None for those that are computed; work: the workspace `forward` has filled.
        """
        raise NotImplementedError

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """The derivative of the value along one direction: how fast it changes while every operand moves.

        inputs: the operands' values; tangents: of each the direction in which it moves, a matrix of its shape.  It
        checks `backward`, so it follows from the formula of the value and from `inputs` alone.
        """
        raise ModelError(f"{self.where}: has no derivative; expected a differentiable node above the parameters")

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        """Add what computes the value to an OnnxGraph, where every matrix is transposed: (cols, rows), a frame a row.

        inputs: names of the operands' tensors; returns that of the value's.  Raises ModelError where ONNX has nothing.
        """
        if not self.onnx_operator:
            raise ModelError(f"{self.where}: has no form in ONNX; expected output nodes that do not depend on it")
        return graph.add(self.onnx_operator, *inputs)


class LinearNode(Node):
    """Base of the types whose value is linear in all operands together: the derivative is the direction's value."""

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        out = run.backend.empty(*self.infer_shape(*(Shape(*tangent.shape) for tangent in tangents)))
        self.forward(run, *tangents, out=out)
        return out


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: `did you mean X or Y`, or all known ones when none is near."""
    folded = {one.lower(): one for one in known}
    near = [one for low, one in folded.items() if name and low.startswith(name.lower())]
    near += [folded[low] for low in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
    if near:
        return f"did you mean {' or '.join(dict.fromkeys(near[:3]))}"
    return f"known: {', '.join(folded.values()) or 'none'}"


REGISTRY: dict[str, type[Node]] = {}


def register_node(name: str, *aliases: str) -> Callable[[type[Node]], type[Node]]:
    """Class decorator: make a node type known under a name and its aliases, in any case.  Refuses a name twice."""

    def register(node_class: type[Node]) -> type[Node]:
        for known in (name, *aliases):
            if known.lower() in REGISTRY:
                raise ValueError(f"node type {known!r} is already {REGISTRY[known.lower()].__name__}")
        REGISTRY.update((known.lower(), node_class) for known in (name, *aliases))
        node_class.type_name, node_class.aliases = name, aliases
        return node_class

    return register
