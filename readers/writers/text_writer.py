r"""Node outputs as text: action write with outputPath, in the layout of its `format` block.

    format=[ type=category; labelMappingFile=states; sequencePrologue="%k\t"; sampleSeparator=" " ]

Each node is written to outputPath + "." + its name.  A sequence is an utterance, or a single record if the reader has
no utterances.  Source: CNTK book 3.5.5, and the `format` block of later versions of CNTK.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np

from readers.common.files import atomic_write, require_writable
from readers.config.config import Config
from readers.config.options import Options, given, option
from readers.errors import ShapeError
from readers.htk.frame_labels import read_state_list
from readers.minibatches.base import Utterance
from readers.sources.frames.streams import naming
from readers.writers.node_files import NodeFilesWriter

_ESCAPES = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\s": " "}
_PRECISION = "0123456789.+-"


def _unescape(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text


def _is_precision(text: str) -> bool:
    try:
        return not set(text) - set(_PRECISION) and len(text) <= 6 and len(f"%{text}f" % 1.0) <= 200
    except ValueError:
        return False


def _piece(default: str, help: str) -> Any:
    """Declare a text before, after or between values."""
    return option(default, help, own=True, parse=_unescape)


@dataclass(frozen=True, kw_only=True)
class TextFormat(Options):
    """Text layout of values: the block format of action write.

    Notes
    -----
    In the texts before, after and between values `%s` is replaced by the name of the node; in those of sequences, `%n`
    by the number of the utterance, from 1, `%d` by that of the sequence, from 0, `%k` by the key of the utterance and
    `%x` by the shape, `rows frames`.

    References
    ----------
    CNTK book 3.5.5.
    """

    # The top level may have a type, and readers have a labelMappingFile.
    type: Literal["real", "category", "sparse"] = option(
        "real",
        "all values (real), the row of the largest value of each frame or its label (category), or row:value for all "
        "values that are not zero (sparse)",
        own=True,
    )
    label_file: Path | None = option(
        None, "names of the rows, one on each line, with {type}=category", cntk="labelMappingFile", own=True
    )
    labels: tuple[str, ...] = given((), "names of the rows")
    transpose: bool = option(True, "write a frame on each line, not a row of the node")
    precision: str = option(
        "", "printf format of a value, between % and f", cntk="precisionFormat", own=True, check=_is_precision,
        expected="the part between % and f of a printf format, such as .4",
    )  # fmt: skip
    prologue: str = _piece("", "text at the beginning of a file")
    epilogue: str = _piece("", "text at the end of a file")
    sequence_separator: str = _piece("", "text between sequences")
    sequence_prologue: str = _piece("", "text before a sequence")
    sequence_epilogue: str = _piece("\n", "text after a sequence")
    element_separator: str = _piece(" ", "text between the values of a line")
    sample_separator: str = _piece("\n", "text between the lines of a sequence")

    def __post_init__(self) -> None:
        super().__post_init__()
        fits = self.label_file is None or self.type == "category"
        self.require("label_file", fits, f"goes with {{type}}=category; expected that type, not {self.type}")

    @classmethod
    def from_config(cls, config: Config) -> "TextFormat":
        """Read a format block with its list of labels.  Raises ConfigError, also for unknown names."""
        config.refuse_unknown(cls.option_keys())
        options = cls.from_block(config)
        if options.label_file is None:
            return options
        with naming(config, "labelMappingFile"):
            return replace(options, labels=tuple(read_state_list(options.label_file)))

    @property
    def number(self) -> str:
        """printf format of a value."""
        return f"%{self.precision}f"

    def sequence(self, node: str, values: np.ndarray, key: str, minibatch: int, number: int) -> str:
        """Return the text of one sequence, values (rows, T), with its prologue and epilogue."""
        shape = f"{values.shape[0]} {values.shape[1]}"

        def filled(text: str) -> str:
            if "%" not in text:
                return text
            for mark, value in (("%n", str(minibatch)), ("%d", str(number)), ("%x", shape), ("%s", node), ("%k", key)):
                text = text.replace(mark, value)
            return text

        between = filled(self.element_separator)
        samples = filled(self.sample_separator)
        return filled(self.sequence_prologue) + self._body(values, between, samples) + filled(self.sequence_epilogue)

    def _body(self, values: np.ndarray, between: str, samples: str) -> str:
        if self.type == "category":
            best = values.argmax(axis=0).tolist()
            texts = [self.labels[row] for row in best] if self.labels else [str(row) for row in best]
            return (samples if self.transpose else between).join(texts)
        table = values.T if self.transpose else values
        if self.type == "sparse":
            item = f"%d:{self.number}"
            rows = [between.join(item % (k, row[k]) for k in np.flatnonzero(row).tolist()) for row in table]
            return samples.join(rows)
        line = between.replace("%", "%%").join([self.number] * table.shape[1])
        return samples.join(line % tuple(row) for row in table.tolist())

    def around(self, node: str) -> tuple[str, str]:
        """Return (prologue, epilogue) of the file of a node."""
        return self.prologue.replace("%s", node), self.epilogue.replace("%s", node)


class TextWriter(NodeFilesWriter[TextIO]):
    """Writes text to PATH.NODE for each node that is passed to `check`; PATH `-` is standard output.

    Parameters
    ----------
    path : str
        outputPath.
    text_format : TextFormat
    stdout : file object, optional
        File that `-` stands for.
    """

    def __init__(self, path: str, text_format: TextFormat, stdout: TextIO | None = None):
        super().__init__()
        self._path = path
        self._format = text_format
        self._stdout = stdout if path == "-" else None
        self._num_sequences: dict[str, int] = {}
        if self._stdout is None:
            require_writable(f"{path}.x")

    @property
    def nodes(self) -> list[str]:
        return list(self._num_sequences)

    def output_files(self) -> list[str]:
        return [] if self._stdout is not None else [str(self._path_of(node)) for node in self._num_sequences]

    def _path_of(self, node: str) -> Path:
        return Path(f"{self._path}.{node}")

    def check(self, dims: dict[str, int], num_utterances: int) -> None:
        """Open the files.  Raises ShapeError for a node with more rows than labels."""
        labels = self._format.labels
        for node, rows in dims.items():
            if labels and rows > len(labels):
                raise ShapeError(f"labelMappingFile: {len(labels)} labels; expected {rows}, one for each row of {node}")
        for node in dims:
            self._num_sequences[node] = 0
            self.file(node)

    @contextlib.contextmanager
    def open_file(self, node: str) -> Iterator[TextIO]:
        """Open the file and write prologue and epilogue around its content."""
        prologue, epilogue = self._format.around(node)
        standard_output = None if self._stdout is None else contextlib.nullcontext(self._stdout)
        with standard_output or atomic_write(self._path_of(node), "w") as file:
            file.write(prologue)
            yield file
            file.write(epilogue)

    def add(self, node: str, matrix: np.ndarray, utterance: Utterance) -> None:
        sequences = np.hsplit(matrix, matrix.shape[1]) if utterance.records else [matrix]
        first = self._num_sequences[node]
        texts = [
            self._format.sequence(node, sequence, utterance.key, utterance.line + 1, first + index)
            for index, sequence in enumerate(sequences)
        ]
        separator = self._format.sequence_separator
        self.file(node).write((separator if first else "") + separator.join(texts))
        self._num_sequences[node] = first + len(texts)
