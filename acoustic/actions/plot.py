"""Action plot: a model's graph in Graphviz's language, and as a picture (CNTK book 3.6)."""

import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction
from acoustic.export.dot import dot_text
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from readers.common.files import require_writable, write_content
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ConfigError

# Formats of every build of Graphviz.
DOT_FORMATS = ("png", "svg", "pdf", "ps", "eps", "jpg", "jpeg", "gif", "svgz", "bmp", "json", "plain")
TIMEOUT = 600.0  # seconds for one picture


@dataclass(frozen=True, kw_only=True)
class PlotOptions(ModelOptions):
    """Options of action plot."""

    dot_file: Path | None = option(None, "file of the graph; by default MODEL.dot", cntk="outputDOTFile")
    picture: Path | None = option(None, "file of the picture", cntk="outputFile")
    command: str = option("", "command that draws the picture, with <IN> and <OUT> for the files", cntk="renderCmd")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            "command", not self.command or self.picture is not None, "is given without {picture}; expected both"
        )


class Plot(NetworkAction):
    """Writes the graph of modelPath to outputDOTFile and a picture to outputFile.

    renderCmd is the command that draws the picture, with <IN> and <OUT> for the two files. It is run without a shell,
    and only if the user permits commands of a configuration. Otherwise Graphviz's `dot` draws, or matplotlib if
    Graphviz is not installed.
    """

    options = PlotOptions
    model_path: Path
    blocks = ()
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        self.dot_file = self.settings.dot_file or Path(f"{self.model_path}.dot")
        self.picture = self.settings.picture
        self.command = _words(self.settings.command, config.where("renderCmd")) if self.settings.command else []
        self.refused = ""
        if self.command and not common.allows_commands:
            self.refused = f"{config.where('renderCmd')}: renderCmd is not run without --allow-commands"
            self.command = []
        for path in (self.dot_file, *([self.picture] if self.picture else [])):
            require_writable(path, [self.model_path])
        if self.picture is not None:
            self._check_format(config)

    def _check_format(self, config: Config) -> None:
        """Raise ConfigError for an extension that the drawing program does not support, unless it is the user's."""
        assert self.picture is not None
        kind = self.picture.suffix[1:].lower()
        where = config.where("outputFile")
        if _program(self.command[0] if self.command else "dot") is None:
            from acoustic.export.network_plot import picture_format

            try:
                picture_format(self.picture)
            except ConfigError as fault:
                raise ConfigError(f"{where}: {fault}") from None
        elif not self.command and kind and kind not in DOT_FORMATS:
            raise ConfigError(f"{where}: {self.picture}: extension {kind}; expected one of {', '.join(DOT_FORMATS)}")

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = load_model(self.model_path)
        write_content(self.dot_file, dot_text(network))
        log(f"Written: {self.dot_file}")
        if self.picture is not None:
            if self.refused:
                log(f"warning: {self.refused}")
            self._draw(network, log)
            log(f"Written: {self.picture}")
        return RunReport("nodes", len(network.nodes))

    def _draw(self, network: Network, log: Log) -> None:
        assert self.picture is not None
        command = self.command or ["dot", f"-T{self.picture.suffix[1:].lower() or 'png'}", "<IN>", "-o<OUT>"]
        program = _program(command[0])
        if program is None:
            from acoustic.export.network_plot import draw_network

            if self.command:
                log(f"warning: {command[0]} of renderCmd is not installed; matplotlib draws instead")
            draw_network(network, self.picture)
            return
        render([program, *command[1:]], self.dot_file, self.picture)


def render(command: list[str], source: Path, picture: Path) -> None:
    """Run a command with <IN> and <OUT> replaced; the picture is replaced only if it succeeds.

    Raises ConfigError if the command fails, takes more than ten minutes or writes no file.
    """
    picture.parent.mkdir(parents=True, exist_ok=True)
    draft = picture.with_name(f".draft.{picture.name}")  # keeps the extension, which the command may need
    names = {"IN": str(source), "OUT": str(draft)}
    words = [re.sub("<(IN|OUT)>", lambda match: names[match.group(1)], word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().split("\n")[-1]
            raise ConfigError(f"{command[0]}: exit status {done.returncode} ({said}); expected a picture at {picture}")
        if not draft.is_file():
            raise ConfigError(f"{command[0]}: wrote no file; expected renderCmd to write <OUT>")
        draft.replace(picture)
    except subprocess.TimeoutExpired as fault:
        raise ConfigError(f"{command[0]}: not finished after {TIMEOUT:g} seconds; expected a picture") from fault
    except OSError as fault:
        raise ConfigError(f"{command[0]}: {fault.strerror or fault}; expected a program") from fault
    finally:
        draft.unlink(missing_ok=True)


def _words(text: str, where: str) -> list[str]:
    """Return the words of renderCmd without quotes; backslashes separate directories, as in the book's example."""
    try:
        words = shlex.split(re.sub(r"<\s*(IN|OUT)\s*>", r"<\1>", text.replace("\\", "/")))
    except ValueError as fault:
        raise ConfigError(f"{where}: renderCmd is {text!r}: {fault}; expected a command") from fault
    if "<OUT>" not in " ".join(words[1:]):
        raise ConfigError(f"{where}: renderCmd is {text!r}; expected a command with <IN> and <OUT>")
    return words


def _program(name: str) -> str | None:
    """Return the path of a program, None if not found; `d:/Tools/dot.exe` is replaced by `dot` if it does not exist."""
    return shutil.which(name) or shutil.which(Path(name).name.lower().removesuffix(".exe"))
