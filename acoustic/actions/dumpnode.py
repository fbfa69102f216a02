"""Action dumpnode: the nodes of a model as readable text (CNTK book 3.5.8 and 7.1.9)."""

import re
from dataclasses import dataclass
from pathlib import Path

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.network.text_dump import dump_lines
from readers.common.files import atomic_write, require_writable
from readers.common.names import compile_expression
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ModelError


@dataclass(frozen=True, kw_only=True)
class DumpNodeOptions(ModelOptions):
    """Options of action dumpnode."""

    node: str = option("", "name of the node; empty: all", cntk="nodeName")
    regex: str = option("", "regular expression that selects several nodes", cntk="nodeNameRegex")
    values: bool = option(True, "write the values", cntk="printValues")
    metadata: bool = option(True, "write what describes the node", cntk="printMetadata")
    output: Path | None = option(None, "text file; by default MODEL.NODE.txt", cntk="outputFile")

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = self.values or self.metadata
        self.require("values", fine, "is false, and {metadata}, too; expected one of them")


class DumpNode(NetworkAction):
    """Writes nodes of modelPath to outputFile."""

    options = DumpNodeOptions
    model_path: Path
    blocks = ()
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        self.node = self.settings.node
        self.regex = self._regex()
        what = re.sub(r"[/\\]", "_", self.node) if self.node and self.regex is None else "__AllNodes__"
        self.output = self.settings.output or Path(f"{self.model_path}.{what}.txt")
        require_writable(self.output, [self.model_path])

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = load_model(self.model_path)
        names = self._names(network)
        with atomic_write(self.output) as file:
            for line in dump_lines(network, names, self.settings.values, self.settings.metadata):
                file.write(line.encode())
        log(f"Written: {self.output}")
        return RunReport("nodes", len(names))

    def _regex(self) -> re.Pattern[str] | None:
        text = self.settings.regex
        where = f"{self.config.where('nodeNameRegex')}: nodeNameRegex"
        return compile_expression(text, where) if text else None

    def _names(self, network: Network) -> list[str]:
        """Return the selected nodes. CNTK dumps all nodes if one does not exist; here that is an error."""
        if self.regex is not None:
            names = [name for name in network.nodes if self.regex.fullmatch(name)]
            if not names:
                raise ModelError(f"{self.model_path}: no node is named {self.regex.pattern}; expected one or more")
            return names
        if not self.node:
            return list(network.nodes)
        same = [name for name in network.nodes if name.lower() == self.node.lower()]
        return [network[self.node if self.node in same or len(same) != 1 else same[0]].name]
