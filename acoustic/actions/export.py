"""Action export: a trained network as an ONNX model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction
from acoustic.export.onnx_export import export_onnx, require_package
from acoustic.network.network import Network
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ModelError


@dataclass(frozen=True, kw_only=True)
class ExportOptions(ModelOptions):
    """Options of action export."""

    format: Literal["onnx"] = option("onnx", "format of the exported model")
    names: tuple[str, ...] = option((), "output nodes; by default those of the model", cntk="outputNodeNames")
    output_path: Path | None = option(
        None, "exported model; by default modelPath with .onnx", cntk="outputPath outputFile"
    )


class Export(NetworkAction):
    """Exports outputNodeNames of modelPath to outputPath."""

    options = ExportOptions
    model_path: Path
    blocks = ()

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        beside = self.model_path.with_name(f"{self.model_path.name}.onnx")
        self.output_path = self.settings.output_path or beside
        require_package("onnx", config.where("action"))
        require_writable(self.output_path, [self.model_path])

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        names = self.roots(network)
        export_onnx(network, names, self.output_path)
        log(f"{self.output_path}: {', '.join(names)}, one row per frame")
        return RunReport("models", num_done=1)

    def roots(self, network: Network) -> list[str]:
        names = self.settings.names or network.outputs
        if not names:
            raise ModelError(f"{self.model_path}: no output nodes; expected outputNodeNames=...")
        return [network[name].name for name in names]
