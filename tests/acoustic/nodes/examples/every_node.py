"""The examples of all node types, from the tables beside this file; a new table gets a line here."""

from tests.acoustic.nodes.examples import columns, elements, images, matrices, words

TABLES = (
    elements,
    matrices,
    columns,
    images,
    words,
)
EXAMPLES = [example for table in TABLES for example in table.EXAMPLES]
# (type, shapes of operands, options) that must be refused; None stands for a column per frame.
BAD_SHAPES = [bad for table in TABLES for bad in table.BAD_SHAPES]
ANY_SHAPE = {name for table in TABLES for name in table.ANY_SHAPE}  # types that no shape of operands is wrong for
