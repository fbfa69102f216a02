"""An nnet3 network: inputs, nodes and outputs of its configuration lines, its components, and the priors of its model.

Source: nnet-nnet.cc and am-nnet-simple.cc of Kaldi.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from readers.common.report import Figures
from readers.kaldi.ark import BINARY
from readers.kaldi.hmm.gaussians import read_gaussians
from readers.kaldi.nnet3.components import Component, read_component
from readers.kaldi.nnet3.descriptors import Descriptor, parse_descriptor
from readers.kaldi.objects import Floats, KaldiObjects
from readers.kaldi.option_files import frame_subsampling
from readers.kaldi.transition_model import TransitionModel, read_transition_model

MODEL = b"<TransitionModel> "  # the first bytes of a model, after the mark of binary files
MOST_ROWS = 10**6
_SETTING = re.compile(r"([a-z-]+)=((?:(?!\s+[a-z-]+=).)*)")
_SETTINGS = {
    "input-node": ({"name", "dim"}, set[str]()),
    "component-node": ({"name", "component", "input"}, set[str]()),
    "dim-range-node": ({"name", "input-node", "dim", "dim-offset"}, set[str]()),
    "output-node": ({"name", "input"}, {"objective"}),
}


@dataclass(frozen=True)
class NnetNode:
    """A node.

    Attributes
    ----------
    kind : str
        input-node, component-node, dim-range-node or output-node.
    rows : int
        Of its value.
    input : Descriptor or None
        Where its values come from; None for an input.
    component : str
        Name of the component of a component-node.
    first_row : int
        First row of its input that a dim-range-node takes.
    """

    kind: str
    rows: int
    input: Descriptor | None = None
    component: str = ""
    first_row: int = 0


@dataclass(frozen=True)
class Nnet:
    """A network, whose nodes and components fit each other.

    Attributes
    ----------
    source : str
        The file.
    nodes : dict of str to NnetNode
        By name, in order.
    components : dict of str to Component
        By name.
    """

    source: str
    nodes: dict[str, NnetNode]
    components: Mapping[str, Component]


@dataclass(frozen=True)
class NnetModel:
    """The content of a `final.mdl` of nnet3.

    Attributes
    ----------
    transitions : TransitionModel
    nnet : Nnet
    context : (int, int)
        Frames of context on the left and on the right.
    priors : (N,) float64
        Of the rows of the output, for cross-entropy models; (0,) for none.
    """

    transitions: TransitionModel
    nnet: Nnet
    context: tuple[int, int]
    priors: Floats


def read_nnet_model(path: str | Path) -> NnetModel:
    """Read a `final.mdl` with a transition model and an nnet3 network, binary or text.

    Parameters
    ----------
    path : path

    Returns
    -------
    NnetModel

    Raises
    ------
    FormatError
        With file, byte and component, for anything else and for components that are not known.
    OSError
    """
    objects = KaldiObjects(path)
    transitions = read_transition_model(objects)
    nnet = read_nnet(objects)
    objects.expect("<LeftContext>")
    left = objects.integer(0)
    objects.expect("<RightContext>")
    right = objects.integer(0)
    objects.expect("<Priors>")
    begin = objects.position
    priors = objects.vector()
    objects.end()
    output = nnet.nodes.get("output")
    if output is not None and len(priors) not in (0, output.rows):
        objects.refuse(f"{len(priors)} priors", f"none, or {output.rows}, the rows of the output", begin)
    if len(priors) and priors.min() <= 0:
        objects.refuse("a prior that is not positive", "probabilities", begin)
    if output is not None and transitions.num_pdfs > output.rows:
        objects.refuse(f"{output.rows} rows of the output", f"{transitions.num_pdfs}, as transition-ids use", begin)
    return NnetModel(transitions, nnet, (left, right), priors)


def read_nnet(objects: KaldiObjects) -> Nnet:
    """Read a network, from ``<Nnet3>`` to ``</Nnet3>``.

    Parameters
    ----------
    objects : KaldiObjects

    Returns
    -------
    Nnet

    Raises
    ------
    FormatError
    """
    objects.expect("<Nnet3>")
    if objects.line().strip():
        objects.refuse("text after <Nnet3>", "the end of the line")
    lines: list[tuple[int, str]] = []
    while True:
        begin = objects.position
        line = objects.line().strip()
        if not line:
            break
        lines.append((begin, line))
    objects.expect("<NumComponents>")
    components: dict[str, Component] = {}
    for _ in range(objects.integer(0)):
        objects.expect("<ComponentName>")
        begin = objects.position
        name = objects.token()
        if name in components:
            objects.refuse(f"component {name!r} again", "each name once", begin)
        components[name] = read_component(objects, name)
    objects.expect("</Nnet3>")
    nodes: dict[str, NnetNode] = {}
    begins: dict[str, int] = {}
    for begin, line in lines:
        with _refused_at(objects, begin):
            name, node = _parse_node(line, components)
            if name in nodes:
                raise ValueError(f"node {name!r} again; expected each name once")
            nodes[name] = node
            begins[name] = begin
    for name, node in nodes.items():
        with _refused_at(objects, begins[name]):
            nodes[name] = _checked(name, node, nodes, components)
    try:
        TopologicalSorter({name: required_nodes(node) for name, node in nodes.items()}).prepare()
    except CycleError as fault:
        loop = [str(name) for name in fault.args[1]]
        objects.refuse(f"a loop {' <- '.join(loop)}"[:100], "IfDefined in each loop", begins[loop[0]])
    return Nnet(f"{objects.path}", nodes, components)


@contextmanager
def _refused_at(objects: KaldiObjects, begin: int) -> Iterator[None]:
    """Turn ValueError into FormatError with a position."""
    try:
        yield
    except ValueError as fault:
        found, _, expected = f"{fault}".partition("; expected ")
        objects.refuse(found, expected, begin)


def required_nodes(node: NnetNode) -> set[str]:
    """Return the names of the nodes without whose values a node has none; those of IfDefined may be missing."""

    def names(descriptor: Descriptor) -> Iterator[str]:
        if descriptor.kind == "node":
            yield descriptor.name
        elif descriptor.kind != "IfDefined":
            for operand in descriptor.operands:
                yield from names(operand)

    return set(names(node.input)) if node.input is not None else set()


def _parse_node(line: str, components: Mapping[str, Component]) -> tuple[str, NnetNode]:
    """Return the name and node of a configuration line; an output has no rows yet.  Raises ValueError."""
    kind, _, text = line.partition(" ")
    settings = dict(_SETTING.findall(text))
    required, optional = _SETTINGS.get(kind, (set[str](), set[str]()))
    if not required or not required <= settings.keys() <= required | optional:
        raise ValueError(f"{line[:60]!r}; expected {', '.join(_SETTINGS)} with their settings")
    name = settings["name"].strip()
    if kind == "input-node":
        return name, NnetNode(kind, _count(settings["dim"], 1))
    if kind == "dim-range-node":
        descriptor = parse_descriptor(settings["input-node"])
        return name, NnetNode(kind, _count(settings["dim"], 1), descriptor, first_row=_count(settings["dim-offset"], 0))
    descriptor = parse_descriptor(settings["input"])
    if kind == "output-node":
        return name, NnetNode(kind, 0, descriptor)
    component = components.get(settings["component"].strip())
    if component is None:
        raise ValueError(f"{name}: component {settings['component']!r} is missing; expected one of the file")
    # A mask takes nothing, and is said to take itself.
    taken = None if component.kind == "DropoutMaskComponent" else descriptor
    return name, NnetNode(kind, component.out_rows, taken, settings["component"].strip())


def _checked(name: str, node: NnetNode, nodes: Mapping[str, NnetNode], components: Mapping[str, Component]) -> NnetNode:
    """Return a node, an output with its rows, if its rows fit those of its input.  Raises ValueError."""
    if node.input is None:
        return node
    in_rows = _rows(node.input, nodes)
    if node.kind == "output-node":
        return replace(node, rows=in_rows)
    if node.kind == "dim-range-node":
        if node.first_row + node.rows > in_rows:
            raise ValueError(f"{name}: rows up to {node.first_row + node.rows}; expected at most {in_rows}")
    elif components[node.component].in_rows != in_rows:
        expected = components[node.component].in_rows
        raise ValueError(f"{name}: {in_rows} rows; expected {expected}, as its component takes")
    return node


def _rows(descriptor: Descriptor, nodes: Mapping[str, NnetNode]) -> int:
    """Return the rows of a descriptor.  Raises ValueError for a node that is missing, and for unequal summands."""
    if descriptor.kind == "node":
        if descriptor.name not in nodes or nodes[descriptor.name].kind == "output-node":
            raise ValueError(f"node {descriptor.name!r} is missing; expected an input, a component or a range of rows")
        return nodes[descriptor.name].rows
    if descriptor.kind == "Const":
        return descriptor.dim
    rows = [_rows(operand, nodes) for operand in descriptor.operands]
    if descriptor.kind == "Append":
        return sum(rows)
    if len(set(rows)) > 1:
        raise ValueError(f"a Sum of {' and '.join(map(str, rows))} rows; expected equal numbers")
    return rows[0]


def _count(text: str, least: int) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 7 and least <= int(digits) <= MOST_ROWS):
        raise ValueError(f"{text!r} rows; expected {least} to {MOST_ROWS}")
    return int(digits)


def is_kaldi_model(path: str | Path) -> bool:
    """Return whether a file begins as Kaldi's `final.mdl`.  Raises OSError."""
    with Path(path).open("rb") as file:
        return file.read(len(BINARY) + len(MODEL)).removeprefix(BINARY).startswith(MODEL)


def summary(path: str) -> Figures:
    """Return the figures of a model for `argonaut info`."""
    objects = KaldiObjects(path)
    transitions = read_transition_model(objects)
    figures: Figures = [
        ("phones", len(transitions.topologies)),
        ("transition-ids", transitions.num_transition_ids),
        ("pdfs", transitions.num_pdfs),
    ]
    if objects.peek() == "<DIMENSION>":
        mixtures = read_gaussians(objects)
        count = sum(len(mixture.weights) for mixture in mixtures)
        size = f"{len(mixtures)} of {count} Gaussians of {mixtures[0].means.shape[1]} values"
        return [*figures, ("mixtures", size)]
    if objects.peek() != "<Nnet3>":
        return [*figures, ("scores", objects.peek().strip("<>"))]
    model = read_nnet_model(path)
    nodes = model.nnet.nodes
    kinds = Counter(component.kind.removesuffix("Component") for component in model.nnet.components.values())
    shapes = {kind: [f"{name} {node.rows}" for name, node in nodes.items() if node.kind == kind] for kind in _SETTINGS}
    return [
        *figures,
        ("scores", "nnet3"),
        ("inputs", ", ".join(shapes["input-node"])),
        ("outputs", ", ".join(shapes["output-node"])),
        ("context", f"{model.context[0]} frames before, {model.context[1]} after"),
        ("subsampling", f"{frame_subsampling(path)} frames"),
        ("components", ", ".join(f"{count} {kind}" for kind, count in kinds.items())),
    ]
