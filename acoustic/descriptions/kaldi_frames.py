"""The frames of nodes of an nnet3 network on which a frame of its output depends.

A step is the distance of two frames of the output.  A node at a frame is a key, its name and the frame's phase among
the frames of a step, so that a recurrent network has few keys, too.
"""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, NoReturn

from readers.errors import ModelError
from readers.kaldi.nnet3.descriptors import Descriptor
from readers.kaldi.nnet3.nnet import Nnet

FEATURES = "input"  # Kaldi's name of the features; other inputs are i-vectors
Key = tuple[str, int]
ALWAYS = (float("-inf"), float("-inf"))  # context of what does not depend on frames


class Reference(NamedTuple):
    """A node that another one takes.

    name : str
    frame : int
        Relative to the first frame of the step.
    optional : bool
        Whether zeros stand for it where it cannot be computed.
    """

    name: str
    frame: int
    optional: bool


class FrameGraph:
    """The keys below a node at phase 0.

    Parameters
    ----------
    nnet : Nnet
    step : int
        Frames.
    root : str

    Attributes
    ----------
    order : list of (str, int)
        The keys, each after those that it takes from its own step and those that it always takes.
    has_optional : bool
        Whether zeros may stand for values.
    context : dict of (str, int) to (float, float)
        Frames of the features before and after the frame of a key without which it cannot be computed.

    Raises
    ------
    ModelError
        For a loop within a step, and for descriptors that depend on frames in another way.
    """

    def __init__(self, nnet: Nnet, step: int, root: str) -> None:
        self.nnet = nnet
        self.step = step
        references: dict[Key, list[Reference]] = {}
        waiting: list[Key] = [(root, 0)]
        while waiting:
            key = waiting.pop()
            if key not in references:
                references[key] = list(self._references(*key))
                waiting += [self.key(reference) for reference in references[key]]
        before = {
            key: {self.key(each) for each in taken if not (each.optional and self.steps(each))}
            for key, taken in references.items()
        }
        try:
            self.order = list(TopologicalSorter(before).static_order())
        except CycleError as fault:
            self.refuse(f"a loop of {' <- '.join(name for name, _ in fault.args[1])}"[:120], "a delay in each loop")
        self.has_optional = any(each.optional for taken in references.values() for each in taken)
        self.context: dict[Key, tuple[float, float]] = {}
        for key in self.order:
            self.context[key] = self._context(key, references[key])

    def refuse(self, found: str, expected: str) -> NoReturn:
        """Raise ModelError."""
        raise ModelError(f"{self.nnet.source}: {found}; expected {expected}")

    def key(self, reference: Reference) -> Key:
        """Return the key of what is taken."""
        return reference.name, reference.frame % self.step

    def steps(self, reference: Reference) -> int:
        """Return how many steps later it is taken."""
        return reference.frame // self.step

    def is_ivector(self, name: str) -> bool:
        return name != FEATURES and self.nnet.nodes[name].kind == "input-node"

    def moved(self, descriptor: Descriptor, frame: int, owner: str) -> int:
        """Return the frame at which a descriptor takes its operands."""
        kind = descriptor.kind
        if kind == "Offset":
            return frame + int(descriptor.value)
        if kind not in ("Round", "ReplaceIndex") or all(map(self.is_ivector, descriptor.nodes())):
            return frame
        if kind == "Round" and self.step % int(descriptor.value) == 0:
            return frame - frame % int(descriptor.value)
        self.refuse(f"node {owner!r} has a {kind} of frames", f"one of an input other than {FEATURES!r}")

    def _references(self, name: str, phase: int) -> Iterator[Reference]:
        node = self.nnet.nodes[name]
        if node.input is None:
            return
        offsets = required = [0]
        if node.component:
            component = self.nnet.components[node.component]
            offsets, required = component.offsets, component.required_offsets
        for offset in offsets:
            yield from self._described(node.input, phase + offset, name, offset not in required)

    def _described(self, descriptor: Descriptor, frame: int, owner: str, optional: bool) -> Iterator[Reference]:
        if descriptor.kind == "node":
            yield Reference(descriptor.name, 0 if self.is_ivector(descriptor.name) else frame, optional)
            return
        frame = self.moved(descriptor, frame, owner)
        for operand in descriptor.operands:
            yield from self._described(operand, frame, owner, optional or descriptor.kind == "IfDefined")

    def _context(self, key: Key, references: list[Reference]) -> tuple[float, float]:
        name, phase = key
        if name == FEATURES:
            return 0.0, 0.0
        before, after = ALWAYS
        for reference in references:
            if not reference.optional:
                needed_before, needed_after = self.context[self.key(reference)]
                before = max(before, needed_before - (reference.frame - phase))
                after = max(after, needed_after + (reference.frame - phase))
        return before, after
