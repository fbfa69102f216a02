"""Action SVD: replace weight matrices by products of two smaller ones (CNTK book 3.5.7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction
from acoustic.network.low_rank import decompose
from acoustic.network.model_file import load_model, save_model
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.common.text import read_text
from readers.config.config import Config
from readers.config.options import option
from readers.config.syntax import Source
from readers.config.values import parse_float
from readers.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class SvdOptions(ModelOptions):
    """Options of action SVD."""

    output_path: Path = option(help="the model with smaller matrices", cntk="outputModelPath")
    ratios: Path | None = option(
        None, "file with lines of a regular expression, a blank and a ratio; replaces the next two", cntk="SVDConfig"
    )
    pattern: str = option("", "regular expression of the matrices", cntk="NodeNameRegex")
    ratio: float = option(0.4, "part of the singular values that is kept", above=0, most=1, cntk="KeepRatio")
    aligned_size: int = option(8, "factor of ranks", least=1, cntk="AlignedSize")

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = bool(self.pattern) or self.ratios is not None
        self.require("pattern", fine, "is missing; expected it, or {ratios} with several")


class Svd(NetworkAction):
    """Decomposes matrices of modelPath and writes outputModelPath."""

    options = SvdOptions
    model_path: Path
    blocks = ()
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        require_writable(self.settings.output_path, [self.model_path])
        self.ratios = self._ratios()

    def makes(self) -> list[Path]:
        return [self.settings.output_path]

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = load_model(self.model_path)
        before = network.num_parameters()
        done = decompose(network, self.ratios, self.settings.aligned_size)
        for decomposition in done:
            log(str(decomposition))
        log(f"{self.settings.output_path}: {network.num_parameters()} parameters instead of {before}")
        save_model(network, self.settings.output_path)
        return RunReport("matrices", len(done))

    def _ratios(self) -> Mapping[str, float]:
        """Return the ratio of each regular expression. Raises ConfigError."""
        path = self.settings.ratios
        if path is None:
            return {self.settings.pattern: self.settings.ratio}
        try:
            return read_ratios(path)
        except OSError as fault:
            where = self.config.where("SVDConfig")
            raise ConfigError(f"{where}: {path}: {fault.strerror}; expected a readable file") from fault


def read_ratios(path: str | Path) -> Mapping[str, float]:
    """Return the ratio of each regular expression in a file of two columns; empty lines and comments are ignored.

    Raises ConfigError with file and line, and OSError.
    """
    ratios: dict[str, float] = {}
    for line, where in Source.from_text(read_text(path, exact=True), str(path)).span.lines():
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2:
            raise ConfigError(f"{where}: {len(fields)} columns; expected a regular expression and a ratio")
        if fields[0] in ratios:
            raise ConfigError(f"{where}: {fields[0]} occurs twice; expected it once")
        ratio = parse_float(fields[1], where, "ratio")
        if not 0 < ratio <= 1:  # CNTK keeps nothing for a ratio of 1 or more; here 1 keeps everything
            raise ConfigError(f"{where}: ratio is {ratio:g}; expected more than 0, at most 1")
        ratios[fields[0]] = ratio
    if not ratios:
        raise ConfigError(f"{path}: no line; expected lines of a regular expression and a ratio")
    return ratios
