r"""Node outputs as text: action write with outputPath, in the layout of its `format` block.

    format=[ type=category; labelMappingFile=states; sequencePrologue="%k\t"; sampleSeparator=" " ]

Each node is written to outputPath + "." + its name.  A sequence is an utterance, or a single record if the reader has
no utterances.  Source: CNTK book 3.5.5, and the `format` block of later versions of CNTK.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from readers.common.files import atomic_write, require_writable
from readers.config.config import Config
from readers.errors import ConfigError, ShapeError
from readers.htk.frame_labels import read_state_list
from readers.minibatches.base import Utterance
from readers.sources.frames.streams import naming
from readers.writers.node_files import NodeFilesWriter

TYPES = ("real", "category", "sparse")
PIECES = ("prologue", "epilogue", "sequenceSeparator", "sequencePrologue", "sequenceEpilogue", "elementSeparator",
          "sampleSeparator")  # fmt: skip
NAMES = ("type", "labelMappingFile", "transpose", "precisionFormat", *PIECES)
_ESCAPES = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\s": " "}
_PRECISION = "0123456789.+-"


@dataclass(frozen=True)
class TextFormat:
    """Text layout of values.

    Attributes
    ----------
    type : {"real", "category", "sparse"}
        All values; the row of the largest value of each frame, or its label; or `row:value` for all non-zero values.
    labels : list of str or None
        Names of the rows, for category.
    transpose : bool
        Whether a line of text is a frame, instead of a row of the node.
    number : str
        printf format of a value.

    Notes
    -----
    The other attributes are texts before, after and between values.  In all of them `%s` is replaced by the name of the
    node; in those of sequences, `%n` by the number of the utterance, from 1, `%d` by that of the sequence, from 0, `%k`
    by the key of the utterance and `%x` by the shape, `rows frames`.

    References
    ----------
    CNTK book 3.5.5.
    """

    type: str = "real"
    labels: tuple[str, ...] = ()
    transpose: bool = True
    number: str = "%f"
    prologue: str = ""
    epilogue: str = ""
    sequence_separator: str = ""
    sequence_prologue: str = ""
    sequence_epilogue: str = "\n"
    element_separator: str = " "
    sample_separator: str = "\n"

    @classmethod
    def from_config(cls, config: Config) -> "TextFormat":
        """Read a format block.  Raises ConfigError, also for unknown names."""
        config.refuse_unknown(NAMES)
        kind = config.choice("type", TYPES) if config.has_own("type") else "real"  # the top level may have a type
        labels: tuple[str, ...] = ()
        if config.has_own("labelMappingFile"):
            if kind != "category":
                raise ConfigError(
                    f"{config.where('labelMappingFile')}: {config.full_name('labelMappingFile')} goes with "
                    f"type=category; expected that type, not {kind}"
                )
            with naming(config, "labelMappingFile"):
                labels = tuple(read_state_list(config.path("labelMappingFile")))
        precision = config.text("precisionFormat", "") if config.has_own("precisionFormat") else ""
        number = f"%{precision}f"
        try:
            if set(precision) - set(_PRECISION) or len(precision) > 6 or len(number % 1.0) > 200:
                raise ValueError(precision)
        except ValueError as fault:
            raise ConfigError(
                f"{config.where('precisionFormat')}: {config.full_name('precisionFormat')} is {precision!r}; "
                "expected the part between % and f of a printf format, such as .4"
            ) from fault
        pieces = {}
        for name in PIECES:
            if config.has_own(name):
                pieces[_snake(name)] = _unescape(config.text(name, ""))
        return cls(kind, labels, config.bool("transpose", True), number, **pieces)

    def sequence(self, node: str, values: np.ndarray, key: str, minibatch: int, number: int) -> str:
        """Return the text of one sequence, values (rows, T), with its prologue and epilogue."""
        shape = f"{values.shape[0]} {values.shape[1]}"

        def filled(text: str) -> str:
            if "%" not in text:
                return text
            for mark, value in (("%n", str(minibatch)), ("%d", str(number)), ("%x", shape), ("%s", node), ("%k", key)):
                text = text.replace(mark, value)
            return text

        between, samples = filled(self.element_separator), filled(self.sample_separator)
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


class TextWriter(NodeFilesWriter):
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
        self._path, self._format, self._stdout = path, text_format, stdout
        self._num_sequences: dict[str, int] = {}
        if not self._to_stdout:
            require_writable(f"{path}.x")

    @property
    def _to_stdout(self) -> bool:
        return self._path == "-" and self._stdout is not None

    @property
    def nodes(self) -> list[str]:
        return list(self._num_sequences)

    def output_files(self) -> list[str]:
        return [] if self._to_stdout else [str(self._path_of(node)) for node in self._num_sequences]

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
        to_stdout = contextlib.nullcontext(self._stdout)
        with to_stdout if self._to_stdout else atomic_write(self._path_of(node), "w") as file:
            file.write(prologue)
            yield file
            file.write(epilogue)

    def add(self, node: str, matrix: np.ndarray, utterance: Utterance) -> None:
        sequences = np.hsplit(matrix, matrix.shape[1]) if utterance.records else [matrix]
        first = self._num_sequences[node]
        texts = [
            self._format.sequence(node, one, utterance.key, utterance.line + 1, first + index)
            for index, one in enumerate(sequences)
        ]
        separator = self._format.sequence_separator
        self.file(node).write((separator if first else "") + separator.join(texts))
        self._num_sequences[node] = first + len(texts)


def _snake(name: str) -> str:
    return "".join(f"_{one.lower()}" if one.isupper() else one for one in name)


def _unescape(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text
