"""Positions of the nodes of a graph in layers, operands below users, with few crossings (Sugiyama's method).

Layers follow the longest paths; an edge across several layers gets a bend in each; orders within layers follow repeated
barycentres; horizontal positions are then as near to those of the neighbours as order and widths permit.
Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures", 1981.
"""

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Bend = tuple[str, str, int]  # operand, user, layer: where an edge over several layers passes one
Point = str | Bend  # a node by its name, or a bend
Near = dict[Point, list[Point]]  # the points that edges lead to
SWEEPS = 12  # over all layers, up and down; more changed none of the pictures tried


@dataclass
class Placement:
    """Positions of nodes and bends.

    Attributes
    ----------
    places : dict
        Name to (x, layer), x at the middle of the node, in the unit of the widths.
    bends : dict
        Edge to the positions of its bends.
    """

    places: dict[str, tuple[float, int]]
    bends: dict[tuple[str, str], list[tuple[float, int]]] = field(default_factory=dict)

    @property
    def num_layers(self) -> int:
        return 1 + max((layer for _, layer in self.places.values()), default=-1)


def place_nodes(operands: Mapping[str, Sequence[str]], widths: Mapping[str, float], gap: float) -> Placement:
    """Return positions for the nodes of a graph without loops.

    Parameters
    ----------
    operands : mapping of str to sequence of str
        The operands of each node; nodes come after their operands.
    widths : mapping of str to float
    gap : float
        The smallest distance between two nodes of a layer.
    """
    layers_of = _layers(operands)
    links: list[tuple[Point, Point]] = []  # from a layer to the next
    chains: dict[tuple[str, str], list[Bend]] = {}
    layer_of: dict[Point, int] = {name: layer for name, layer in layers_of.items()}  # noqa: C416
    for user, operand_names in operands.items():
        for operand in dict.fromkeys(operand_names):
            chain = [(operand, user, layer) for layer in range(layers_of[operand] + 1, layers_of[user])]
            layer_of.update((point, point[2]) for point in chain)
            chains[operand, user] = chain
            points: list[Point] = [operand, *chain, user]
            links += pairwise(points)
    rows: list[list[Point]] = [[] for _ in range(1 + max(layer_of.values(), default=-1))]
    for point, layer in layer_of.items():
        rows[layer].append(point)
    lower, upper = _neighbours(layer_of, links)
    _order(rows, lower, upper)
    sizes = {point: widths.get(point, 0.0) if isinstance(point, str) else 0.0 for point in layer_of}
    x = _coordinates(rows, lower, upper, sizes, gap)
    return Placement(
        {name: (x[name], layers_of[name]) for name in operands},
        {edge: [(x[point], point[2]) for point in chain] for edge, chain in chains.items()},
    )


def _layers(operands: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return layers by longest paths; nodes then move up to their lowest user where this shortens edges in total."""
    layers: dict[str, int] = {}
    users: dict[str, list[str]] = {name: [] for name in operands}
    for name, operand_names in operands.items():
        layers[name] = 1 + max((layers[operand] for operand in operand_names), default=-1)
        for operand in dict.fromkeys(operand_names):
            users[operand].append(name)
    for name in reversed(list(operands)):
        if users[name] and len(users[name]) >= len(set(operands[name])):
            layers[name] = min(layers[user] for user in users[name]) - 1
    lowest = min(layers.values(), default=0)
    return {name: layer - lowest for name, layer in layers.items()}


def _neighbours(points: Iterable[Point], links: list[tuple[Point, Point]]) -> tuple[Near, Near]:
    lower: Near = {point: [] for point in points}
    upper: Near = {point: [] for point in lower}
    for operand, user in links:
        lower[user].append(operand)
        upper[operand].append(user)
    return lower, upper


def _order(rows: list[list[Point]], lower: Near, upper: Near) -> None:
    """Sort each row to reduce crossings of edges."""
    best = [list(row) for row in rows]
    fewest = _crossings(rows, upper)
    for sweep in range(SWEEPS):
        upwards = sweep % 2 == 0
        for index in range(1, len(rows)) if upwards else range(len(rows) - 2, -1, -1):
            neighbour_rank = {point: k for k, point in enumerate(rows[index - 1 if upwards else index + 1])}
            near = lower if upwards else upper
            own_rank = {point: k for k, point in enumerate(rows[index])}
            middle = {
                point: sum(neighbour_rank[neighbour] for neighbour in near[point]) / len(near[point])
                if near[point]
                else own_rank[point]
                for point in rows[index]
            }
            rows[index].sort(key=lambda point: middle[point])
        crossings = _crossings(rows, upper)
        if crossings < fewest:
            best = [list(row) for row in rows]
            fewest = crossings
    rows[:] = best


def _crossings(rows: list[list[Point]], upper: Near) -> int:
    """Return the number of crossings of edges between neighbouring rows."""
    total = 0
    for row, above in pairwise(rows):
        rank = {point: k for k, point in enumerate(above)}
        passed_ends: list[int] = []
        for point in row:
            ends = sorted(rank[neighbour] for neighbour in upper[point])
            total += sum(len(passed_ends) - bisect.bisect_right(passed_ends, end) for end in ends)
            for end in ends:
                bisect.insort(passed_ends, end)
    return total


def _coordinates(
    rows: list[list[Point]], lower: Near, upper: Near, sizes: dict[Point, float], gap: float
) -> dict[Point, float]:
    """Return the middle of each point: near its neighbours, in order, with at least `gap` between two."""
    x: dict[Point, float] = {}
    for row in rows:
        right = 0.0
        for point in row:
            x[point] = right + sizes[point] / 2
            right += sizes[point] + gap
    for sweep in range(2 * SWEEPS):
        near = (lower, upper)[sweep % 2]
        for row in rows if sweep % 2 == 0 else reversed(rows):
            targets = [sum(x[neighbour] for neighbour in near[p]) / len(near[p]) if near[p] else x[p] for p in row]
            # Bends have a larger weight, which straightens long edges.
            weights = [4.0 if sizes[p] == 0 else 1.0 if near[p] else 0.1 for p in row]
            distances = [(sizes[a] + sizes[b]) / 2 + gap for a, b in pairwise(row)]
            x.update(zip(row, _apart(targets, weights, distances)))
    left_edge = min((x[point] - sizes[point] / 2 for point in x), default=0.0)
    return {point: position - left_edge for point, position in x.items()}


def _apart(wanted: Sequence[float], weights: Sequence[float], distances: Sequence[float]) -> list[float]:
    """Return the positions nearest to the wanted ones, by weighted least squares, that keep order and distances.

    After the distances are subtracted this is isotonic regression, solved by pooling adjacent violators.
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, number of points
    for position, weight, offset in zip(wanted, weights, offsets):
        mean = position - offset
        total = weight
        count = 1
        while blocks and blocks[-1][0] > mean:
            pooled_mean, more, number = blocks.pop()
            mean = (mean * total + pooled_mean * more) / (total + more)
            total = total + more
            count = count + number
        blocks.append((mean, total, count))
    flat = [mean for mean, _, count in blocks for _ in range(count)]
    return [position + offset for position, offset in zip(flat, offsets)]
