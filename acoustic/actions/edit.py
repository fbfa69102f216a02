"""Action edit: run a script of the model editing language on model files (CNTK book 3.5.6 and 4.2)."""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from acoustic.actions.base import Action, ActionOptions, CommonSettings
from acoustic.descriptions.mel.parse import parse_script
from acoustic.descriptions.mel.script import Editor, file_path
from acoustic.descriptions.mel.statements import Command
from acoustic.descriptions.ndl.files import MacroOptions, read_macros
from acoustic.network.network import Network
from readers.common.report import Log, Progress, RunReport
from readers.common.text import read_text
from readers.config.config import Config
from readers.config.options import option
from readers.config.syntax import Source
from readers.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class EditOptions(ActionOptions, MacroOptions):
    """Options of action edit."""

    model_path: Path = option(help="script of the model editing language", cntk="editPath")


class Edit(Action):
    """Runs the script in editPath, in which ``$name$`` are parameters of the block."""

    options = EditOptions
    blocks = ()
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        path = self.settings.model_path
        try:
            text = read_text(path, exact=True)
        except OSError as fault:
            raise ConfigError(f"{config.where('editPath')}: {path}: {fault.strerror}; expected a script") from fault
        self.script = parse_script(config.substitute(Source.from_text(text, str(path))))
        if not self.script.statements:
            raise ConfigError(f"{path}: no commands; expected at least one, such as LoadModel(...) and SaveModel(...)")
        read_macros(config)  # reports their faults; each run reads them again, as it defines further macros

    def run(self, log: Log, progress: Progress) -> RunReport:
        written = self._editor(log).run(self.script)
        for path in written:
            log(f"Written: {path}")
        if not written:
            log(f"warning: {self.model_path}: nothing is saved or dumped; expected SaveModel(...)")
        return RunReport("files", len(written))

    def network(self) -> Network | None:
        """Return the network that the script saves last, without writing it; None if it saves none.

        Raises FileNotFoundError for a missing model, which an earlier command may have to create.
        """
        created = {os.path.realpath(path) for path in self.makes()}
        for path in self._files_of("LoadModel", "LoadModelWithName"):
            if not path.exists() and os.path.realpath(path) not in created:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return self._editor(lambda line: None).preview(self.script)

    def makes(self) -> list[Path]:
        return list(self._files_of("SaveModel", "SaveDefaultModel"))

    def _files_of(self, *commands: str) -> Iterator[Path]:
        """Yield the files that some commands of the script name, which are their last arguments."""
        for statement in self.script.statements:
            if isinstance(statement, Command) and statement.spec.name in commands:
                yield file_path(statement.arguments[-1])

    def _editor(self, log: Log) -> Editor:
        common = self.common
        return Editor(read_macros(self.config), common.precision, common.seed, log, self.config)
