"""Converts a model with CTC outputs of another toolkit: builds its graph of tokens."""

from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.report import Log
from readers.errors import ConfigError
from recipes.foreign.conversion import Conversion, Converter, tell_dropped

if TYPE_CHECKING:
    from recipes.packing import PackOptions


def convert(options: "PackOptions", directory: Path, log: Log) -> Conversion:
    """Build the graph of the tokens, the language model and perhaps a dictionary; only an aligner uses that, too."""
    from acoustic.scoring.opening import open_scorer
    from decoder.grammars import GraphDictionary, GraphFiles, make_graph
    from decoder.graph import GraphOptions
    from readers.tables.ctc_tokens import read_ctc_tokens

    parts = options.parts
    assert parts.tokens is not None
    assert parts.model is not None
    tokens = read_ctc_tokens(parts.tokens, parts.blank)
    num_outputs = open_scorer(parts.model, parts.output_node, parts.window).num_outputs
    if not tokens.has_blank and len(tokens.names) != num_outputs:
        raise ConfigError(
            f"{parts.tokens}: {len(tokens.names) - 1} tokens without a blank, and {num_outputs} outputs of "
            f"{parts.model}; expected one output more than tokens, or the name of the blank"
        )
    files = GraphFiles(
        tokens=parts.tokens,
        blank=parts.blank,
        dictionary=GraphDictionary(dict=parts.dict),
        lm=parts.lm,
        graph=GraphOptions(drop_missing=True),
        out=directory / "graph",
    )
    graph = make_graph(files).graph
    assert graph is not None
    tell_dropped(graph, log)
    dictionary = parts.dict if parts.aligner is not None else None
    return Conversion({"graph": directory / "graph" / "graph.dg", "dict": dictionary})


CONVERTER = Converter("a model with tokens", lambda options: options.parts.tokens is not None, convert)
