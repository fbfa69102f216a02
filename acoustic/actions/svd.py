"""Action SVD: replace weight matrices by products of two smaller ones (CNTK book 3.5.7)."""

from collections.abc import Mapping
from pathlib import Path

from acoustic.actions.base import Action, CommonSettings
from acoustic.network.low_rank import decompose
from acoustic.network.model_file import load_model, save_model
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.common.text import read_text
from readers.config.config import Config
from readers.config.syntax import Source
from readers.config.values import parse_float
from readers.errors import ConfigError


class Svd(Action):
    """Decomposes matrices of modelPath and writes outputModelPath.

    SVDConfig is a file with lines ``regular expression, blank, ratio``; alternatively NodeNameRegex and KeepRatio (0.4)
    give one such pair. AlignedSize (8) is the factor of ranks.
    """

    blocks = ()
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common, config.path("modelPath"))
        self.output_path = config.path("outputModelPath")
        require_writable(self.output_path)
        self.aligned_size = config.int("AlignedSize", 8)
        if self.aligned_size < 1:
            where = config.where("AlignedSize")
            raise ConfigError(f"{where}: AlignedSize is {self.aligned_size}; expected 1 or more")
        self.ratios = _ratios(config)

    def makes(self) -> list[Path]:
        return [self.output_path]

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = load_model(self.model_path)
        before = network.num_parameters()
        done = decompose(network, self.ratios, self.aligned_size)
        for one in done:
            log(str(one))
        log(f"{self.output_path}: {network.num_parameters()} parameters instead of {before}")
        save_model(network, self.output_path)
        return RunReport("matrices", len(done))


def _ratios(config: Config) -> dict[str, float]:
    if config.has("SVDConfig"):
        path, where = config.path("SVDConfig"), config.where("SVDConfig")
        try:
            return read_ratios(path)
        except OSError as fault:
            raise ConfigError(f"{where}: {path}: {fault.strerror}; expected a readable file") from fault
    ratio = config.float("KeepRatio", 0.4)
    return {config.text("NodeNameRegex"): _checked(ratio, config.where("KeepRatio"))}


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
        ratios[fields[0]] = _checked(parse_float(fields[1], where, "ratio"), where)
    if not ratios:
        raise ConfigError(f"{path}: no line; expected lines of a regular expression and a ratio")
    return ratios


def _checked(ratio: float, where: str) -> float:
    """Return the ratio if it is valid. CNTK keeps nothing for a ratio of 1 or more; here 1 keeps everything."""
    if not 0 < ratio <= 1:
        raise ConfigError(f"{where}: ratio is {ratio:g}; expected more than 0, at most 1")
    return ratio
