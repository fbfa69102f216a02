"""The steps of a loop: their columns, and delays from step to step."""

from typing import Any

from acoustic.nodes.base import PassContext
from acoustic.nodes.sequence_state import Sequences


def steps_of(sequences: Sequences) -> list[slice]:
    """The columns of each step, as slices."""
    slots = sequences.num_slots
    return [slice(t * slots, (t + 1) * slots) for t in range(sequences.num_steps)]


class DelayReader:
    """A delay of an interpreted loop during one pass.

    source, member: the members of the delayed node and of the delay, with `value` and `gradient` of all steps.
    """

    def __init__(self, source: Any, member: Any, sequences: Sequences, context: PassContext) -> None:
        self.xp = context.xp
        self.sequences = sequences
        self.member = member
        self.node = member.node
        self.source = source
        self.delay = member.node.delay
        self.columns = steps_of(sequences)
        self.usable = sequences.usable(self.delay)
        self.all, self.any = (flags.tolist() for flags in (self.usable.all(axis=1), self.usable.any(axis=1)))
        self.default = member.node.settings["defaultHiddenActivity"]
        rows = member.shape.rows
        self.before: Any = None
        if self.delay > 0:
            self.before = sequences.held(self.node.name, rows, self.delay, member.value)

    def read(self, t: int) -> None:
        """Compute the delay's value of step t."""
        out = self.member.value[:, self.columns[t]]
        if not self.any[t]:
            out.fill(self.default)
            return
        past = t - self.delay
        values = self.source.value[:, self.columns[past]] if past >= 0 else self.before[:, self.columns[t]]
        self.xp.copyto(out, values)
        if not self.all[t]:
            self.xp.copyto(out, self.default, where=~self.usable[t])

    def hold(self) -> None:
        """Keep the last values for the next minibatch."""
        if self.delay > 0:
            self.sequences.hold(self.node.name, self.delay, self.before, self.source.value)

    def add_gradient(self, t: int) -> None:
        """Add the gradient of the delay's value of step t to that of the step that it was read from."""
        past = t - self.delay
        if past < 0 or not self.any[t]:
            return
        gradient = self.member.gradient[:, self.columns[t]]
        target = self.source.gradient[:, self.columns[past]]
        if not self.all[t]:
            gradient = gradient * self.usable[t]
        self.xp.add(target, gradient, out=target)
