"""Converts a model with CTC outputs of another toolkit: builds its graph of tokens."""

from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.report import Log
from recipes.foreign.conversion import Conversion, Converter

if TYPE_CHECKING:
    from recipes.packing import PackOptions


def convert(options: "PackOptions", directory: Path, log: Log) -> Conversion:
    """Build the graph of the tokens, the language model and perhaps a dictionary, which is of no use for alignment."""
    from decoder.grammars import GraphDictionary, GraphFiles, make_graph
    from decoder.graph import GraphOptions

    files = GraphFiles(
        tokens=options.parts.tokens,
        blank=options.parts.blank,
        dictionary=GraphDictionary(dict=options.parts.dict),
        lm=options.parts.lm,
        graph=GraphOptions(drop_missing=True),
        out=directory / "graph",
    )
    make_graph(files)
    return Conversion({"graph": directory / "graph" / "graph.dg", "dict": None})


CONVERTER = Converter("a model with tokens", lambda options: options.parts.tokens is not None, convert)
