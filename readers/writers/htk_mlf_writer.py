"""HTKMLFWriter: writes node outputs as HTK parameter files of kind USER, one for each line of the reader's SCP.

Source: CNTK book 7.1.9.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from readers.config.config import Config
from readers.config.options import Options, option
from readers.errors import FormatError, ShapeError
from readers.htk.parameter_file import USER, write_htk
from readers.htk.scp import read_list
from readers.minibatches.base import Utterance, Writer, WriterBlock
from readers.sources.frames.streams import naming
from readers.writers.node_files import check_node, count_odd, node_blocks

_FRAMES = re.compile(r"\[\d+,\d+\]$")  # a frame range, as in the SCP of a reader
MAX_DIM = 65535 // 4  # the header stores the bytes per frame in 16 bits


@dataclass(frozen=True, kw_only=True)
class HTKNodeOptions(Options):
    """The block of a node of HTKMLFWriter."""

    dim: int = option(help="rows of the node", least=1, most=MAX_DIM)
    list_file: Path = option(help="list of the files to write, one for each utterance", cntk="scpFile file")
    type: Literal["real"] = option("real", "what the files contain", own=True)


@dataclass(frozen=True)
class NodeOutput:
    """Output files of one node: dim rows, one path for each utterance."""

    name: str
    dim: int
    paths: list[str]
    list_file: str


class HTKMLFWriter(Writer):
    """Writes HTK parameter files, to the paths in the lists that the writer block names.

    Parameters
    ----------
    config : Config
        The writer block; each sub-block is named after a node and sets dim and scpFile.

    Attributes
    ----------
    outputs : dict of str to NodeOutput
        By name of the node.
    warnings : list of str
        Unknown names in the configuration.

    Raises
    ------
    ConfigError, FormatError
        For lists that cannot be used.

    References
    ----------
    CNTK book 7.1.9.
    """

    shares_files = False

    def __init__(self, config: Config):
        super().__init__()
        blocks = node_blocks(config, "dim and scpFile")
        self.outputs = {name: _open_output(name, block) for name, block in blocks.items()}
        self.warnings = [str(unknown) for unknown in config.unknown([*WriterBlock.option_keys(), *blocks])]
        for block in blocks.values():
            self.warnings.extend(map(str, block.unknown(HTKNodeOptions.option_keys())))
        self._refuse_same_paths()

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes that are written."""
        return list(self.outputs)

    def output_files(self) -> list[str]:
        return [path for output in self.outputs.values() for path in output.paths]

    def check(self, dims: dict[str, int], num_utterances: int) -> None:
        """Check before the work starts that the nodes, of `dims` rows, can be written.

        Raises ShapeError or ConfigError naming the node.
        """
        for name, output in self.outputs.items():
            check_node(name, dims, output.list_file, output.dim, f"its dim, {output.dim}")
            if len(output.paths) < num_utterances:
                raise FormatError(
                    f"{output.list_file}: {len(output.paths)} paths for {num_utterances} utterances; "
                    "expected one path for each line of the reader's SCP"
                )

    def write(self, utterance: Utterance, values: dict[str, np.ndarray]) -> dict[str, int]:
        """Write values[node] (dim, T) of any float type to the path on the utterance's line of the node's list.

        Every file appears completely or not at all.
        Returns the number of infinite or NaN values of each node that has any; they are written unchanged.
        Raises ShapeError for a matrix of another shape.
        """
        for name, output in self.outputs.items():
            matrix = values[name]
            path = output.paths[utterance.line]
            if matrix.ndim != 2 or matrix.shape[0] != output.dim:
                raise ShapeError(f"{path}: node {name} gave shape {matrix.shape}; expected ({output.dim}, frames)")
            write_htk(path, matrix, USER, utterance.period)
        return count_odd({name: values[name] for name in self.outputs})

    def _refuse_same_paths(self) -> None:
        entry_of: dict[Path, str] = {}
        for output in self.outputs.values():
            for number, path in enumerate(output.paths, 1):
                entry = f"{output.list_file}, entry {number}"
                key = Path(path).absolute()
                if key in entry_of:
                    raise FormatError(f"{entry}: {path} is also {entry_of[key]}; expected a file for each output")
                entry_of[key] = entry


def _open_output(name: str, block: Config) -> NodeOutput:
    options = HTKNodeOptions.from_block(block)
    list_file = options.list_file
    with naming(block, options.declaration("list_file").set_by(block)):
        paths = [path.replace("\\", "/") for path in read_list(list_file)]
    for number, path in enumerate(paths, 1):
        if _FRAMES.search(path):
            raise FormatError(
                f"{list_file}, entry {number}: {path!r} has a frame range; expected the path of a file to write"
            )
    return NodeOutput(name, options.dim, paths, str(list_file))
