"""Action dumpnode: the nodes of a model as readable text (CNTK book 3.5.8 and 7.1.9)."""

import re
from pathlib import Path

from acoustic.actions.base import Action, CommonSettings
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.network.text_dump import dump_lines
from readers.common.files import atomic_write, require_writable
from readers.common.names import compile_expression
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.errors import ConfigError, ModelError


class DumpNode(Action):
    """Writes nodes of modelPath to outputFile (default MODEL.NODE.txt).

    nodeName is one node (default all); nodeNameRegex selects several. printValues and printMetadata (true) select the
    content.
    """

    blocks = ()
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common, config.path("modelPath"))
        self.node = config.text("nodeName", "")
        self.regex = self._regex()
        self.values, self.metadata = config.bool("printValues", True), config.bool("printMetadata", True)
        if not self.values and not self.metadata:
            raise ConfigError(f"{config.where('printValues')}: neither printValues nor printMetadata; expected one")
        what = re.sub(r"[/\\]", "_", self.node) if self.node and self.regex is None else "__AllNodes__"
        self.output = config.path("outputFile", Path(f"{self.model_path}.{what}.txt"))
        require_writable(self.output, [self.model_path])

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = load_model(self.model_path)
        names = self._names(network)
        with atomic_write(self.output) as file:
            for line in dump_lines(network, names, self.values, self.metadata):
                file.write(line.encode())
        log(f"Written: {self.output}")
        return RunReport("nodes", len(names))

    def _regex(self) -> re.Pattern | None:
        text = self.config.text("nodeNameRegex", "")
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
