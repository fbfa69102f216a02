"""The examples of all node types, from the tables beside this file; a new table gets a line here."""

from tests.acoustic import (
    node_examples_columns,
    node_examples_elements,
    node_examples_images,
    node_examples_matrices,
    node_examples_words,
)

TABLES = (
    node_examples_elements,
    node_examples_matrices,
    node_examples_columns,
    node_examples_images,
    node_examples_words,
)
EXAMPLES = [example for table in TABLES for example in table.EXAMPLES]
# (type, shapes of operands, options) that must be refused; None stands for a column per frame.
BAD_SHAPES = [bad for table in TABLES for bad in table.BAD_SHAPES]
ANY_SHAPE = {name for table in TABLES for name in table.ANY_SHAPE}  # types that no shape of operands is wrong for
