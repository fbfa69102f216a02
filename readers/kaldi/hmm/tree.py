"""Kaldi's decision trees (`tree`): the pdf of a phone in its context and of a pdf-class.

A node is a leaf (CE), a table with a child for each value of a key (TE), or a question whether the value of a key is in
a set (SE).  Keys are places of the context from 0, and -1 for the pdf-class.  Source: Kaldi's documentation, "Decision
tree internals", event-map.cc and context-dep.cc.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from readers.common.report import Figures
from readers.kaldi.objects import KaldiObjects
from readers.kaldi.transition_model import NO_PDF

PDF_CLASS = -1  # key
MOST_DEPTH = 200
MOST_WIDTH = 15  # phones of a context
Integers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Leaf:
    """A pdf."""

    pdf: int


@dataclass(frozen=True)
class Table:
    """A child for each value of a key; None where the tree has no answer."""

    key: int
    children: "tuple[Node | None, ...]"


@dataclass(frozen=True, eq=False)
class Split:
    """A child for the values of a key in a set, members (n,), and one for the others."""

    key: int
    members: Integers
    yes: "Node | None"
    no: "Node | None"


Node = Leaf | Table | Split


@dataclass(frozen=True)
class ContextTree:
    """A tree that gives phones in context their pdfs.

    Attributes
    ----------
    width : int
        Phones of a context.
    centre : int
        Place of the phone itself, from 0.
    root : Leaf, Table, Split or None
    """

    width: int
    centre: int
    root: Node | None

    def pdfs(self, contexts: npt.ArrayLike, pdf_classes: npt.ArrayLike) -> Integers:
        """Return the pdfs of phones in context.

        Parameters
        ----------
        contexts : (n, width) array of int
            Numbers of phones.
        pdf_classes : (n,) array of int

        Returns
        -------
        (n,) int32
            NO_PDF where the tree has no answer.
        """
        columns = np.column_stack([np.asarray(contexts), np.asarray(pdf_classes)])  # key -1 is the last one
        pdfs = np.full(len(columns), NO_PDF, np.int32)
        stack = [(self.root, np.arange(len(columns)))]
        while stack:
            node, rows = stack.pop()
            if node is None or not rows.size:
                continue
            if isinstance(node, Leaf):
                pdfs[rows] = node.pdf
                continue
            values = columns[rows, node.key]
            if isinstance(node, Split):
                is_member = np.isin(values, node.members)
                stack += [(node.yes, rows[is_member]), (node.no, rows[~is_member])]
                continue
            for value in np.unique(values).tolist():
                if 0 <= value < len(node.children):
                    stack.append((node.children[value], rows[values == value]))
        return pdfs


def read_tree(path: str | Path) -> ContextTree:
    """Read a tree, binary or text.

    Parameters
    ----------
    path : path

    Returns
    -------
    ContextTree

    Raises
    ------
    FormatError
        With file and position, for another file, keys out of range, and more than 200 levels.
    OSError
    """
    objects = KaldiObjects(path)
    objects.expect("ContextDependency")
    width = objects.integer(1, MOST_WIDTH)
    centre = objects.integer(0, width - 1)
    if objects.expect("ToPdf", "ToLength") == "ToLength":  # of early versions, and not used
        _read_node(objects, width, 0)
        objects.expect("ToPdf")
    root = _read_node(objects, width, 0)
    objects.expect("EndContextDependency")
    objects.end()
    return ContextTree(width, centre, root)


def summary(path: str) -> Figures:
    """Return the figures of a tree for `argonaut info`."""
    tree = read_tree(path)
    pdfs: set[int] = set()
    num_questions = 0
    nodes = [tree.root]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Leaf):
            pdfs.add(node.pdf)
        elif isinstance(node, Table):
            nodes += node.children
        elif node is not None:
            num_questions += 1
            nodes += [node.yes, node.no]
    context = f"{tree.centre} before, {tree.width - 1 - tree.centre} after the phone"
    return [("context", context), ("pdfs", len(pdfs)), ("questions", num_questions)]


def _read_node(objects: KaldiObjects, width: int, depth: int) -> Node | None:
    if depth > MOST_DEPTH:
        objects.refuse(f"a tree of more than {MOST_DEPTH} levels", "fewer")
    kind = objects.expect("NULL", "CE", "SE", "TE")
    if kind == "NULL":
        return None
    if kind == "CE":
        return Leaf(objects.integer(0))
    key = objects.integer(PDF_CLASS, width - 1)
    if kind == "SE":
        members = objects.integers()
        objects.expect("{")
        yes = _read_node(objects, width, depth + 1)
        no = _read_node(objects, width, depth + 1)
        objects.expect("}")
        return Split(key, members, yes, no)
    count = objects.unsigned(len(objects.data))
    objects.expect("(")
    children = tuple(_read_node(objects, width, depth + 1) for _ in range(count))
    objects.expect(")")
    return Table(key, children)
