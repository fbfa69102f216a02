"""SimpleNetworkBuilder, rnnType SIMPLERNN, LSTM and LSTMENCODER: stacked recurrent layers.

Source: CNTK book, sections 3.2.1, 2.6.2 (eq. 2.178 to 2.182) and 7.4; parameters, criteria and outputs have CNTK's
names. Inner nodes, which CNTK numbers, have names here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from acoustic.descriptions.builders.parts import BuilderOptions, add_input, add_labels, add_lookup, add_outputs
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from readers.config.options import option


@dataclass(frozen=True)
class RecurrentOptions(BuilderOptions):
    """Options of recurrent networks.

    With `words` of 1 or more, the first hidden layer is a table of word vectors, looked up for each word of the input.
    """

    table_counts: ClassVar[bool] = False  # whether recurrentLayer=1 may mean the layer above the lookup table

    recurrent_layers: tuple[int, ...] = option(
        (), "numbers of the recurrent hidden layers, counted from 1, a lookup table included", cntk="recurrentLayer"
    )
    default_activity: float = option(
        0.1, "value of a delay before the beginning of a sequence", cntk="defaultHiddenActivity"
    )
    sparse_input: bool = option(False, "without effect: indicators are stored in the same way", cntk="sparseinput")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.words:
            self.check_lookup()
        first = self.first_layer + 1
        last = self.num_hidden
        layers = f"a hidden layer, {first} to {last}" if first <= last else "none, there is no such hidden layer"
        for layer in self.recurrent_layers:
            counted = self.table_counts and layer == 1 and first <= last
            table = "; layer 1 is the lookup table" if self.words and layer == 1 else ""
            text = f"is {layer}, {{layer_sizes}} {self.sizes}{table}; expected {layers}"
            self.require("recurrent_layers", counted or first <= layer <= last, text)

    @property
    def first_layer(self) -> int:
        """The number, counted from 0, of the first hidden layer that is not a lookup table."""
        return 1 if self.words else 0


@dataclass(frozen=True)
class SimpleRnnOptions(RecurrentOptions):
    """Options of a network with layers H(t) = f(U X(t) + W H(t-1)), if recurrent, else f(U X(t) + B)."""

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        add_top(network, self, add_rnn_layers(network, self), ("criterion", "eval"))
        return network


@dataclass(frozen=True)
class LstmOptions(RecurrentOptions):
    """Options of a network with LSTM layers with peepholes: the first layer and `recurrent_layers`.

    The other layers are f(U X(t) + B).
    """

    table_counts: ClassVar[bool] = True  # as in CNTK's example; the layer is an LSTM in any case
    all_recurrent: ClassVar[bool] = False  # whether the other layers are LSTMs without being named

    input_gate: float = option(-1.0, "initial bias of the input gates", cntk="inputGateInitVal")
    forget_gate: float = option(-1.0, "initial bias of the forget gates", cntk="forgetGateInitVal")
    output_gate: float = option(-1.0, "initial bias of the output gates", cntk="outputGateInitVal")
    open_input_gate: bool = option(False, "whether input gates are constantly 1", cntk="constInputGateValue")
    open_forget_gate: bool = option(False, "whether forget gates are constantly 1", cntk="constForgetGateValue")
    open_output_gate: bool = option(False, "whether output gates are constantly 1", cntk="constOutputGateValue")

    @property
    def initial_gates(self) -> dict[str, float]:
        """The initial bias of each gate."""
        return {"i": self.input_gate, "f": self.forget_gate, "o": self.output_gate}

    @property
    def open_gates(self) -> str:
        """The letters i, f, o of gates that are constantly 1."""
        is_open = {"i": self.open_input_gate, "f": self.open_forget_gate, "o": self.open_output_gate}
        return "".join(gate for gate in is_open if is_open[gate])

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        add_top(network, self, add_lstm_layers(network, self))
        return network


@dataclass(frozen=True)
class EncoderOptions(LstmOptions):
    """Options of the encoder of a pair of networks (LSTMENCODER): LSTM layers without an output layer.

    The last of layerSizes is the last hidden layer, and every hidden layer above the lookup table is an LSTM. The
    network has no criterion of its own.
    """

    all_recurrent: ClassVar[bool] = True
    no_prior: ClassVar[str] = "an encoder has no labels"

    @property
    def num_hidden(self) -> int:
        return len(self.layer_sizes) - 1

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        network.outputs.append(add_lstm_layers(network, self, prefix="Encoder").name)
        network.validate()
        return network


def add_rnn_layers(network: Network, options: RecurrentOptions) -> Node:
    """Add input and hidden layers of a simple recurrent network and return the last layer."""
    top = add_bottom(network, options)
    for layer in range(options.first_layer, options.num_hidden):
        recurrent = layer + 1 in options.recurrent_layers
        top = add_rnn_layer(network, options, layer, top) if recurrent else add_layer(network, options, layer, top)
        top = add_dropout(network, options, layer, top)
    return top


def add_lstm_layers(
    network: Network, options: "LstmOptions", layers: list[Node] | None = None, prefix: str = ""
) -> Node:
    """Add input and hidden layers of an LSTM network and return the last layer.

    All hidden layers, the lookup table included, are appended to `layers`. `prefix` is of the names of the lookup table
    and its matrix.
    """
    top = add_bottom(network, options, prefix=prefix)
    hidden_layers = layers if layers is not None else []
    hidden_layers += [top] if options.words else []
    for layer in range(options.first_layer, options.num_hidden):
        if layer == options.first_layer or options.all_recurrent or layer + 1 in options.recurrent_layers:
            component = 0 if layer == options.first_layer else layer  # CNTK's numbering
            top = add_lstm_layer(network, options, layer, top, component)
        else:
            top = add_layer(network, options, layer, top)
        top = add_dropout(network, options, layer, top)
        hidden_layers.append(top)
    return top


def add_layer(network: Network, options: BuilderOptions, layer: int, x: Node) -> Node:
    """Add hidden layer `layer`, counted from 0, without recurrence: H = f(U x + B)."""
    product = add_product(network, options, layer, x)
    rows = options.layer_sizes[layer + 1]
    bias = network.add("LearnableParameter", f"B{layer}", rows=rows, cols=1, init="fixedValue", value=0)
    return _nonlinear(network, options, layer, product, bias)


def add_rnn_layer(network: Network, options: RecurrentOptions, layer: int, x: Node) -> Node:
    """Add a layer H(t) = f(U x(t) + W H(t-1)), without a bias as in CNTK."""
    rows = options.layer_sizes[layer + 1]
    product = add_product(network, options, layer, x)
    recurrent = network.add("LearnableParameter", f"W{layer}", rows=rows, cols=rows, **options.initial())
    past = add_delay(network, options, f"PastH{layer + 1}", rows)
    again = network.add("Times", f"W{layer}*PastH{layer + 1}", recurrent, past)
    top = _nonlinear(network, options, layer, product, again)
    network.connect(past, top)
    return top


def add_lstm_layer(network: Network, options: LstmOptions, layer: int, x: Node, component: int | None = None) -> Node:
    """Add an LSTM layer, eq. 2.178 to 2.182, with the nonlinearity of the first layer in the gates.

    The names of the parameters end in `component`. They are created in the order in which CNTK draws their values. A
    gate that is always open is omitted, with its parameters.
    """
    number = layer if component is None else component
    rows = options.layer_sizes[layer + 1]
    columns = network.shapes[x.name].rows
    gates = [gate for gate in "ofic" if gate not in options.open_gates]
    parameters: dict[str, Node] = {}

    def parameter(kind: str, gate: str, cols: int) -> None:
        name = f"{kind}{gate.upper()}"
        parameters[name] = network.add(
            "LearnableParameter", f"{name}{number}", rows=rows, cols=cols, **options.initial()
        )

    def add(kind: str, name: str, *operands: Node) -> Node:
        return network.add(kind, f"{name}{layer + 1}", *operands)

    for gate in (gate for gate in "oifc" if gate in gates):
        parameter("WX", gate, columns)
    first = options.initial_gates | {"c": 0.0}
    for gate in (gate for gate in "ocif" if gate in gates):
        parameters[f"B{gate.upper()}"] = network.add(
            "LearnableParameter", f"b{gate}{number}", rows=rows, cols=1, init="fixedValue", value=first[gate]
        )
    for gate in (gate for gate in "ifoc" if gate in gates):
        parameter("WH", gate, rows)
        if gate != "c":
            parameter("WC", gate, 1)
    past_h, past_c = (add_delay(network, options, f"Past{letter}{layer + 1}", rows) for letter in "HC")

    def gate_of(gate: str, cell: Node | None) -> Node:
        up = gate.upper()
        total = add("Plus", f"XB{up}", add("Times", f"X{up}", parameters[f"WX{up}"], x), parameters[f"B{up}"])
        total = add("Plus", f"XH{up}", total, add("Times", f"R{up}", parameters[f"WH{up}"], past_h))
        if cell is not None:
            total = add("Plus", f"XHC{up}", total, add("DiagTimes", f"P{up}", parameters[f"WC{up}"], cell))
        kind = "Tanh" if gate == "c" else options.layer_type(0)
        return add(kind, f"Gate{up}", total) if kind else total

    squashed = gate_of("c", None)
    gated_input = add("ElementTimes", "Taken", gate_of("i", past_c), squashed) if "i" in gates else squashed
    gated_cell = add("ElementTimes", "Kept", gate_of("f", past_c), past_c) if "f" in gates else past_c
    cell = add("Plus", "C", gated_cell, gated_input)
    top = add("Tanh", "H" if "o" not in gates else "TanhC", cell)
    if "o" in gates:
        top = add("ElementTimes", "H", gate_of("o", cell), top)
    network.connect(past_h, top)
    network.connect(past_c, cell)
    return top


def add_bottom(network: Network, options: RecurrentOptions, lookup: str = "LookupTable", prefix: str = "") -> Node:
    """Add the features and, if the options say so, a lookup table called `lookup`, after the prefix."""
    features = add_input(network, options)
    return add_lookup(network, options, features, lookup, prefix) if options.words else features


def add_dropout(network: Network, options: RecurrentOptions, layer: int, top: Node) -> Node:
    """Add dropout to a layer if the options say so."""
    return network.add("Dropout", f"DropH{layer + 1}", top) if options.with_dropout else top


def add_top(network: Network, options: RecurrentOptions, top: Node, criteria: Sequence[str] = ()) -> None:
    """Add the output layer, without a bias as in CNTK, the criteria, and the scaled log-likelihood."""
    rows = options.layer_sizes[-1]
    columns = network.shapes[top.name].rows
    weights = network.add("LearnableParameter", f"W{options.num_hidden}", rows=rows, cols=columns, **options.initial())
    labels = add_labels(network, rows)
    last = network.add("Times", "outputs", weights, top)
    add_outputs(network, options, labels, last, criteria)


def add_product(network: Network, options: BuilderOptions, layer: int, x: Node) -> Node:
    rows = options.layer_sizes[layer + 1]
    columns = network.shapes[x.name].rows
    weights = network.add("LearnableParameter", f"U{layer}", rows=rows, cols=columns, **options.initial())
    return network.add("Times", f"U{layer}*{x.name}", weights, x)


def _nonlinear(network: Network, options: BuilderOptions, layer: int, product: Node, other: Node) -> Node:
    """Add f(product + other) under the name of the layer."""
    kind = options.layer_type(layer)
    total = network.add("Plus", f"Sum{layer + 1}" if kind else f"H{layer + 1}", product, other)
    return network.add(kind, f"H{layer + 1}", total) if kind else total


def add_delay(network: Network, options: RecurrentOptions, name: str, rows: int, steps: int = 1) -> Node:
    """Add a PastValue that is connected after its operand exists."""
    settings = {"rows": rows, "defaultHiddenActivity": options.default_activity, "timeStep": steps}
    return network.add_node("PastValue", name, [None], settings)
