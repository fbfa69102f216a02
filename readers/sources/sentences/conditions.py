"""Conditions of sentences: a vector for each line of a text, the same for all words of the sentence.

    binaryFeature=[ file=meanings.txt; dim=20 ]

Line n of the file has the `dim` values of the sentence in line n of the text.  It is the second input of conditional
language models (rnnType CLSTM of SimpleNetworkBuilder).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readers.common.text import read_lines
from readers.config.config import Config
from readers.config.options import Options, option
from readers.errors import FormatError
from readers.sources.frames.streams import naming
from readers.sources.sentences.sentences import WordStream


@dataclass(frozen=True, kw_only=True)
class ConditionOptions(Options):
    """A block with a condition of each sentence."""

    file: Path = option(help="vectors: a line for each line of the text", own=True)
    dim: int = option(help="values of a line", unit="values", least=1, own=True)


def read_condition(block: Config, lines: Sequence[int], lengths: Sequence[int]) -> WordStream:
    """Return the stream of a block.

    Parameters
    ----------
    block : Config
        Its name is that of the network's input.
    lines : sequence of int
        The line of each sentence in the text, from 1.
    lengths : sequence of int
        Words of each sentence.

    Raises
    ------
    ConfigError
        For a bad `dim`, and for a file that cannot be read.
    FormatError
        For lines that are missing or do not have `dim` finite numbers.
    """
    options = ConditionOptions.from_block(block)
    dim = options.dim
    path = options.file
    with naming(block, "file"):
        text = read_lines(path)
    if lines and max(lines) > len(text):
        raise FormatError(
            f"{path}: {len(text)} lines; expected a line for each line of the text, at least {max(lines)}"
        )
    vectors = np.empty((len(lines), dim), np.float32)
    for vector, line in zip(vectors, lines):
        values = text[line - 1].split()
        try:
            if len(values) != dim:
                raise ValueError
            with np.errstate(over="ignore"):
                vector[:] = [float(value) for value in values]
            if not np.isfinite(vector).all():
                raise ValueError
        except ValueError:
            problem = f"{len(values)} values" if len(values) != dim else repr(text[line - 1].strip()[:60])
            raise FormatError(f"{path}:{line}: {problem}; expected {dim} finite numbers") from None
    sentences = np.repeat(np.arange(len(lines), dtype=np.int32), lengths)
    return WordStream((block.name,), sentences[None], len(lines), block.where(), vectors.T, is_label=False)
