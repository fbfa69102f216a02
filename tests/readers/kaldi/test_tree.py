"""Kaldi's decision trees: what was written is read, and every context gets the pdf of a plain walk."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import FormatError
from readers.kaldi.hmm.tree import MOST_DEPTH, read_tree
from recipes.file_kinds import describe_file
from tests.readers.kaldi.models import Writer, answer, put_tree

WIDTH = 3
keys = st.integers(-1, WIDTH - 1)
leaves = st.none() | st.integers(0, 50)
nodes = st.recursive(
    leaves,
    lambda children: (
        st.tuples(keys, st.lists(children, max_size=4))
        | st.tuples(keys, st.frozensets(st.integers(0, 3), max_size=3), children, children)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(root=nodes, binary=st.booleans())
def test_every_context_gets_its_pdf(tmp_path_factory, root, binary):
    path = tmp_path_factory.getbasetemp() / "tree"
    path.write_bytes(put_tree(Writer(binary), WIDTH, 1, root).content)
    tree = read_tree(path)
    assert (tree.width, tree.centre) == (WIDTH, 1)
    events = list(itertools.product(range(4), repeat=WIDTH + 1))
    expected = [answer(root, {**dict(enumerate(event[:WIDTH])), -1: event[WIDTH]}) for event in events]
    assert tree.pdfs([event[:WIDTH] for event in events], [event[WIDTH] for event in events]).tolist() == expected


def deep(levels):
    root = 0
    for _ in range(levels):
        root = (1, {1}, root, None)
    return root


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (put_tree(Writer(True), 3, 3, 0).content, r"tree:\d+: 3; expected 0 to 2"),
        (put_tree(Writer(True), 3, 1, (3, [0])).content, r"tree:\d+: 3; expected -1 to 2"),
        (put_tree(Writer(False), 3, 1, (0, [0])).content.replace(b"CE", b"XE"), r"'XE'; expected NULL or CE"),
        (put_tree(Writer(True), 3, 1, deep(MOST_DEPTH + 1)).content, r"a tree of more than 200 levels; expected fewer"),
        (put_tree(Writer(True), 3, 1, 0).content[:-3], r"expected a token"),
        (put_tree(Writer(True), 3, 1, 0).content + b"x", r"expected the end of the file"),
        (Writer(True).token("ContextDependency").integer(3, 1).token("ToPdf", "TE").integer(0).unsigned(2**31).content,
         r"tree:\d+: 2147483648; expected 0 to"),
        (Writer(True).token("ContextDependency").integer(3, 1).token("ToPdf", "TE").integer(0, 2).content,
         r"expected an unsigned integer of 4 bytes"),
        (b"<Nnet3> ", r"'<Nnet3>'; expected ContextDependency"),
    ],
)  # fmt: skip
def test_damage_is_refused(tmp_path, content, message):
    (tmp_path / "tree").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read_tree(tmp_path / "tree")


@pytest.mark.parametrize("binary", [True, False])
def test_info_tells_the_context_and_the_sizes(tmp_path, binary):
    root = (1, [None, 0, (-1, [1, (0, {1, 2}, 3, (2, {3}, None, 1))])])
    (tmp_path / "tree").write_bytes(put_tree(Writer(binary), 3, 1, root).content)
    figures = [("context", "1 before, 1 after the phone"), ("pdfs", 3), ("questions", 2)]
    assert describe_file(tmp_path / "tree") == ("Kaldi decision tree", figures)


def test_trees_of_early_versions_are_read(tmp_path):
    writer = Writer(True).token("ContextDependency").integer(1, 0).token("ToLength", "CE").integer(3)
    writer.token("ToPdf", "CE").integer(7).token("EndContextDependency")
    (tmp_path / "tree").write_bytes(writer.content)
    assert read_tree(tmp_path / "tree").pdfs([[1]], [0]).tolist() == [7]
