"""Which values of a layout are still in memory and up to date, and which must be computed again."""

from collections.abc import Hashable, Mapping

from acoustic.engine.planning.pass_plan import Graph, Layout, MatrixKey, value_of, work_of
from acoustic.nodes.base import Node

RUN = ("run",)  # key of the time at which training, dropout rate or seed last changed


class Placement:
    """The slabs of a layout's values, workspaces and gradients; several matrices share a slab, one after another.

    slab_of: index of the slab of each matrix that has one; owners_after_forward, owners_after_backward: the matrix in
    each slab after a whole pass; destroys: by node, the later nodes whose values or workspaces it overwrites.
    """

    def __init__(self, layout: Layout, graph: Graph):
        self.layout, self.graph = layout, graph
        self.slab_of = layout.plan.slab
        self._order = {node.name: position for position, node in enumerate(layout.forward)}
        placed = sorted(self.slab_of.items(), key=lambda item: layout.start[item[0]])
        self.owners_after_forward = {slab: key for key, slab in placed if key[0] != "gradient"}
        self.owners_after_backward = {slab: key for key, slab in placed if key[0] == "gradient"}
        self.destroys = {node.name: self._destroyed_later(node) for node in layout.forward}

    def writes(self, name: str) -> list[tuple[int, MatrixKey]]:
        """The matrices that a node writes, each with its slab."""
        return [(self.slab_of[key], key) for key in (value_of(name), work_of(name)) if key in self.slab_of]

    def holds(self, owner: Mapping[int, MatrixKey], name: str) -> bool:
        """Whether a node's value is still in its slab."""
        slab = self.slab_of.get(value_of(name))
        return name in self._order and (slab is None or owner.get(slab) == value_of(name))

    def intact(self, owner: Mapping[int, MatrixKey], name: str) -> bool:
        """Whether a computed value and its workspace are still in their slabs."""
        return all(owner.get(slab) == key for slab, key in self.writes(name))

    def due(self, time: Mapping[Hashable, int], owner: Mapping[int, MatrixKey]) -> list[str]:
        """The nodes to compute now: those that kept values need and that are outdated or overwritten."""
        outdated: set[str] = set()
        for node in self.layout.forward:
            depends: list[Hashable] = [operand.name for operand in self.graph.operands[node.name]]
            depends += [RUN] if node.reads_run else []
            mine = time.get(node.name, -1)
            if mine < 0 or node.is_socket or any(name in outdated or time.get(name, 0) > mine for name in depends):
                outdated.add(node.name)
        forced: set[str] = set()
        while True:
            due, needed = set(forced), set(self.layout.kept)
            for node in reversed(self.layout.forward):
                name = node.name
                if name in due or (name in needed and (name in outdated or not self.intact(owner, name))):
                    due.add(name)
                    needed.update(operand.name for operand in self.graph.operands[name])
            lost = {other for name in due for other in self.destroys[name] if other in needed and other not in due}
            if not lost:
                return [node.name for node in self.layout.forward if node.name in due]
            forced |= lost

    def _destroyed_later(self, node: Node) -> list[str]:
        """The nodes computed after this one whose values or workspaces it overwrites."""
        mine = [self.slab_of[key] for key in (value_of(node.name), work_of(node.name)) if key in self.slab_of]
        return [
            key[1]
            for key, slab in self.slab_of.items()
            if key[0] != "gradient" and slab in mine and self._order[key[1]] > self._order[node.name]
        ]
