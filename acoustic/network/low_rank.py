"""Low-rank approximation of weights by singular value decomposition (CNTK book 3.5.7).

``A = U S V'`` keeps its r largest singular values: NAME_U = U sqrt(S) (m x r) and NAME_V = sqrt(S) V' (r x n) replace
NAME (m x n). Where NAME multiplies data, ``P = Times(NAME, x)`` becomes ``P = Times(NAME_U, NAME_SVD)`` with
``NAME_SVD = Times(NAME_V, x)``: r (m + n) multiplications per frame instead of m n. All other users of NAME get
``NAME_SVD = Times(NAME_U, NAME_V)``. The other nodes keep their names and, as far as the rank permits, their values.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from acoustic.network import editing
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.properties import PRODUCT
from readers.common.names import compile_expression
from readers.errors import ModelError


@dataclass(frozen=True)
class Decomposition:
    """Result for one parameter: its name and shape, the rank, and the fraction of the sum of singular values kept."""

    name: str
    rows: int
    cols: int
    rank: int
    share: float

    def __str__(self) -> str:
        before = self.rows * self.cols
        after = self.rank * (self.rows + self.cols)
        return (
            f"{self.name}: {self.rows}x{self.cols} as rank {self.rank}, {100 * self.share:.1f}% of singular values, "
            f"{before} parameters become {after}"
        )


def decompose(network: Network, ratios: Mapping[str, float], aligned_size: int = 8) -> list[Decomposition]:
    """Replace every learnable matrix whose whole name matches a regular expression by two factors.

    Parameters
    ----------
    network : Network
        Changed in place.
    ratios : mapping of str to float
        Regular expression to the fraction of the sum of singular values to keep. The first match in sorted order
        counts. Vectors are not replaced.
    aligned_size : int
        Ranks are multiples of it, or full.

    Returns
    -------
    list of Decomposition

    Raises
    ------
    ConfigError
        For an invalid regular expression.
    ModelError
        When no matrix matches.
    """
    groups = [(compile_expression(text, "names of matrices"), ratio) for text, ratio in sorted(ratios.items())]
    matrices = [node for node in network.parameters() if min(node.value.shape) > 1]
    chosen = []
    for node in matrices:
        matching = [ratio for group, ratio in groups if group.fullmatch(node.name)]
        chosen += [(node, ratio) for ratio in matching[:1]]
    if not chosen:
        matrix_names = ", ".join(node.name for node in matrices) or "none"
        raise ModelError(f"no matrix is named {' or '.join(ratios)}; expected one of the network's: {matrix_names}")
    done = [_replace(network, node, ratio, aligned_size) for node, ratio in chosen]
    network.validate()
    return done


def rank_for(singular_values: np.ndarray, ratio: float, aligned_size: int) -> int:
    """Return the number of singular values to keep, given all of them in descending order.

    It is the smallest number whose sum exceeds `ratio` of the total, rounded up to a multiple of `aligned_size`. A
    ratio of 1 keeps all.
    """
    count = len(singular_values)
    sums = np.cumsum(singular_values)
    # searchsorted returns `count` if no sum exceeds the threshold, as for a ratio of 1 or a matrix of zeros.
    first = int(np.searchsorted(sums, ratio * sums[-1], side="right")) + 1
    return min(-(-min(first, count) // aligned_size) * aligned_size, count)


def _replace(network: Network, node: Node, ratio: float, aligned_size: int) -> Decomposition:
    matrix = network.backend.to_host(node.value).astype(np.float64)
    if not np.isfinite(matrix).all():
        raise ModelError(f"{node.where}: values that are not finite; expected a matrix of finite numbers")
    left_vectors, singular, right_vectors = np.linalg.svd(matrix, full_matrices=False)
    rank = rank_for(singular, ratio, aligned_size)
    root = np.sqrt(singular[:rank])
    u = _parameter(network, node, "U", left_vectors[:, :rank] * root)
    v = _parameter(network, node, "V", root[:, np.newaxis] * right_vectors[:rank])
    products: dict[str, Node] = {}  # by the node that V multiplies, "" for U V

    def product(of: Node | None) -> Node:
        key = of.name if of else ""
        if key not in products:
            operands = (v, of) if of else (u, v)
            products[key] = network.add("Times", _free_name(network, f"{node.name}_SVD"), *operands)
        return products[key]

    for user, k in editing.users(network, node):
        if user.has(PRODUCT) and k == 0 and user.operands[1] is not node:
            user.operands = [u, product(user.operands[1])]
        else:
            user.operands[k] = product(None)
    for listed in network.special().values():
        listed[:] = [product(None).name if name == node.name else name for name in listed]
    editing.remove(network, [node.name])
    total = singular.sum()
    rows, cols = matrix.shape
    return Decomposition(node.name, rows, cols, rank, singular[:rank].sum() / total if total else 1.0)


def _parameter(network: Network, node: Node, suffix: str, matrix: np.ndarray) -> Node:
    """Add a parameter with the learning options of `node`."""
    rows, cols = matrix.shape
    options = node.settings | {"rows": rows, "cols": cols, "init": "fixedValue", "value": 0.0, "initFromFilePath": ""}
    parameter = network.add(node.type_name, _free_name(network, f"{node.name}_{suffix}"), **options)
    network.set_value(parameter, np.asfortranarray(matrix))
    return parameter


def _free_name(network: Network, name: str) -> str:
    """Return `name`, followed by a number if it is taken: a matrix with several users has several products."""
    number = 1
    free = name
    while free in network.nodes:
        number += 1
        free = f"{name}{number}"
    return free
