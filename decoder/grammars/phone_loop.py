"""The phone loop that stands for `[unk]`: any sequence of phones, whatever their context.

With triphones, every senone of a phone's first state may be followed by every senone of its second state, and so on.
So the loop matches each sequence of triphones at least as well as their own models, with only as many arcs as senones.
"""

from collections.abc import Sequence


def loop_arcs(
    phones: Sequence[Sequence[Sequence[int]]],
    nodes: tuple[int, int, int, int],
    word: int,
    cost: float,
    first_free: int,
) -> tuple[list[tuple[int, int, int, float]], int]:
    """Return arcs (source, target, label, cost) of one or more phones, and the next free node.

    phones: labels of the states of each place; nodes: (entry, loop, before the last phone, exit); word: label before
    the last phone; cost: of each phone.
    """
    entry, loop, last, exit = nodes
    arcs = [(entry, loop, 0, 0.0), (loop, last, word, 0.0)]
    for places in phones:
        for begin, end in ((loop, loop), (last, exit)):
            node = begin
            for i, labels in enumerate(places):
                after = end if i == len(places) - 1 else first_free
                first_free += after != end
                arcs.extend((node, after, label, cost if i == 0 else 0.0) for label in labels)
                node = after
    return arcs, first_free
