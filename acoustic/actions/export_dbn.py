"""Action exportDBN: a fully connected network as a model file of dbn.exe."""

from dataclasses import dataclass
from pathlib import Path

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction
from acoustic.export.dbn_export import dbn_model
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ModelError
from readers.tables.dbn import write_dbn


@dataclass(frozen=True, kw_only=True)
class ExportDbnOptions(ModelOptions):
    """Options of action exportDBN."""

    dbn_path: Path = option(help="model file of dbn.exe", cntk="dbnModelPath")


class ExportDbn(NetworkAction):
    """Converts modelPath to dbnModelPath; action convertDBN converts it back."""

    options = ExportDbnOptions
    blocks = ()
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        self.dbn_path = self.settings.dbn_path
        require_writable(self.dbn_path, [self.model_path])

    def run(self, log: Log, progress: Progress) -> RunReport:
        try:
            model = dbn_model(self.network())
        except ModelError as fault:
            raise ModelError(f"{self.model_path}: {str(fault).removeprefix(f'{self.model_path}: ')}") from fault
        for number, layer in enumerate(model.layers):
            rows, cols = layer.weights.shape
            log(f"DBN: layer {number}: {layer.kind}, {rows} x {cols}")
        if model.prior is None:
            log("warning: the network has no mean of the labels; the file gets no priors")
        write_dbn(self.dbn_path, model)
        log(f"Written: {self.dbn_path}")
        return RunReport("models", 1)
