"""Action export: a trained network as an ONNX model."""

from acoustic.actions.base import Action, CommonSettings
from acoustic.export.onnx_export import export_onnx, require_onnx
from acoustic.network.network import Network
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.errors import ModelError

FORMATS = ("onnx",)


class Export(Action):
    """Exports outputNodeNames of modelPath to outputPath, or outputFile (default modelPath with .onnx).

    The only format is onnx.
    """

    blocks = ()

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common, config.path("modelPath"))
        config.choice("format", FORMATS, FORMATS[0])
        self.names = config.array("outputNodeNames", [])
        beside = self.model_path.with_name(f"{self.model_path.name}.onnx")
        self.output_path = config.path("outputPath", config.path("outputFile", beside))
        require_onnx(config.where("action"))
        require_writable(self.output_path, [self.model_path])

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        names = self.roots(network)
        export_onnx(network, names, self.output_path)
        log(f"{self.output_path}: {', '.join(names)}, one row per frame")
        return RunReport("models", num_done=1)

    def roots(self, network: Network) -> list[str]:
        names = self.names or network.outputs
        if not names:
            raise ModelError(f"{self.model_path}: no output nodes; expected outputNodeNames=...")
        return [network[name].name for name in names]
