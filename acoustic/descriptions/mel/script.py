"""Execution of model editing scripts. Files are written after the whole script has run: all of them, or none.

Source: CNTK book, section 4.2.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from acoustic.descriptions.kaldi_nnet import read_kaldi_network
from acoustic.descriptions.mel.names import EditedModel, Models
from acoustic.descriptions.mel.statements import Command, Description, MelScript, Snippet, Statement
from acoustic.descriptions.ndl.evaluate import Scope
from acoustic.descriptions.ndl.files import DescriptionFile, read_description
from acoustic.descriptions.ndl.macros import MacroTable
from acoustic.descriptions.ndl.parse import parse_ndl
from acoustic.descriptions.ndl.syntax import Name, NdlScript
from acoustic.network import editing
from acoustic.network.model_file import load_model, model_bytes
from acoustic.network.network import Network
from readers.common.files import atomic_write, require_writable
from readers.common.report import Log
from readers.config.config import Config
from readers.config.syntax import Source, Span
from readers.errors import ArgonautError, ConfigError, ModelError, ShapeError
from readers.kaldi.nnet3.nnet import is_kaldi_model

# Commands between lines of description that do not need the nodes of these lines.
_NEEDS_NO_NODES = ("CreateModel", "CreateModelWithName", "LoadModel", "LoadModelWithName")


class Editor:
    """The models of a running script, and the files that it will write.

    Parameters
    ----------
    macros : MacroTable
        The macros that descriptions may call.
    precision : str
        ``float`` or ``double``, of models that the script creates; a loaded model keeps its own.
    seed : int
        Of initial values.
    log : callable
        Receives warnings, one line each.
    config : Config, optional
        The block in which ``$name$`` of description files is looked up.
    """

    def __init__(
        self,
        macros: MacroTable,
        precision: str = "float",
        seed: int = 0,
        log: Log = lambda line: None,
        config: Config | None = None,
    ) -> None:
        self.macros = macros
        self.precision = precision
        self.seed = seed
        self.log = log
        self.config = config or Config()
        self.models = Models()
        self._scopes: list[Scope] = []
        self._lines: list[Span] = []  # of network description, not evaluated yet
        self._files: dict[str, tuple[Path, Network | Iterable[str]]] = {}  # by real path

    # Running

    def run(self, script: MelScript) -> list[Path]:
        """Run the statements in order, write the files that they save, and return their paths.

        Raises ArgonautError with file, line and command, before anything is written, and OSError if writing fails.
        """
        self._run_all(script)
        return self._write()

    def preview(self, script: MelScript) -> Network | None:
        """Run the statements, write nothing, and return the network that was saved last, None if none was."""
        self._run_all(script)
        saved = [content for _, content in self._files.values() if isinstance(content, Network)]
        return saved[-1] if saved else None

    def _run_all(self, script: MelScript) -> None:
        for section in script.macros:
            self.macros.load(parse_ndl(section))
        for statement in script.statements:
            self._run(statement)
        self._evaluate_lines()
        self._note_arguments()

    def _note_arguments(self) -> None:
        """Log the arguments of the descriptions that have no effect."""
        for note in dict.fromkeys(note for scope in self._scopes for note in scope.notes):
            self.log(f"note: {note}")

    def _run(self, statement: Statement) -> None:
        if isinstance(statement, Description):
            self._lines.append(statement.span)
            return
        if not (isinstance(statement, Command) and statement.spec.name in _NEEDS_NO_NODES):
            self._evaluate_lines()
        name = statement.name if isinstance(statement, Command) else f"snippet {statement.name}"
        try:
            if isinstance(statement, Snippet):
                self._describe(self._model(statement.name), statement.span)
            else:
                statement.spec.run(self, statement)
        except ArgonautError as fault:
            kind = next((kind for kind in (ShapeError, ModelError) if isinstance(fault, kind)), ConfigError)
            raise kind(_located(str(fault), statement.where, name)) from fault
        except OSError as fault:
            reason = f"{fault.filename or ''}: {fault.strerror or fault}".removeprefix(": ")
            expected = "" if "expected" in reason else "; expected a readable file"
            raise ModelError(f"{statement.where}: {name}: {reason}{expected}") from fault

    # What the commands do

    def create(self, name: str) -> EditedModel:
        """Create an empty model."""
        return self._add(name, Network(precision=self.precision, seed=self.seed))

    def load(self, name: str, path: str) -> EditedModel:
        """Load the model of a file, also of Kaldi's nnet3, or the network that the script has saved under that name."""
        file = file_path(path)
        _, saved = self._files.get(os.path.realpath(file), (file, None))
        if saved is not None and not isinstance(saved, Network):
            raise ModelError(f"{file}: the script writes text to this file; expected a model")
        if saved is not None:
            network = editing.clone(saved)
        elif is_kaldi_model(file):
            network = read_kaldi_network(file)
        else:
            network = load_model(file)
        network.seed = self.seed
        return self._add(name, network)

    def save(self, model: EditedModel, path: str) -> None:
        """Validate a model and write its present state when the script ends. Raises ModelError and ShapeError."""
        model.network.validate()
        self._keep(path, editing.clone(model.network))

    def write_text(self, path: str, lines: Iterable[str]) -> None:
        """Write lines to a file when the script ends."""
        self._keep(path, lines)

    def describe_from_file(self, name: str, path: str, section: str | None, where: str) -> None:
        """Add the description in a file to a model: a section, by default the one in its ``run=``, else the first.

        A file without sections is used as a whole.
        """
        file = read_description(file_path(path), where, self.config)
        for loaded in file.load:
            self.macros.load(file.section(loaded))
        names = [Name(section, True, where)] if section else [*file.run, *self._first(file)]
        script = file.script
        if names:
            script = file.section(names[0])
            self.macros.load(file.script)
        self._describe(self._model(name), script)

    @staticmethod
    def _first(file: DescriptionFile) -> list[Name]:
        return [Name(name, True, span.where) for name, span in list(file.sections.values())[:1]]

    # Descriptions

    def _add(self, name: str, network: Network) -> EditedModel:
        self._scopes.append(Scope(network, self.macros))
        return self.models.add(EditedModel(name, network, self._scopes[-1]))

    def _model(self, name: str) -> EditedModel:
        return self.models[name] if name in self.models else self.create(name)

    def _evaluate_lines(self) -> None:
        """Create the nodes of the waiting lines of description in the default model."""
        if not self._lines:
            return
        lines = self._lines
        self._lines = []
        try:
            model = self.models.default
        except ModelError as fault:
            raise ModelError(f"{lines[0].where}: {fault}") from fault
        pieces = (piece for span in lines for piece in span.lines())
        self._describe(model, Source(pieces).span, define_macros=False)

    def _describe(self, model: EditedModel, text: Span | NdlScript, define_macros: bool = True) -> None:
        editing.refresh_shapes(model.network)
        model.scope.evaluate(text, define_macros)

    # Files

    def _keep(self, path: str, content: Network | Iterable[str]) -> None:
        file = file_path(path)
        require_writable(file)
        self._files[os.path.realpath(file)] = (file, content)

    def _write(self) -> list[Path]:
        """Write all files under temporary names, then move them into place.

        A model file with the same content is not written again and keeps its time stamp, so that a training that
        continues from it is not outdated when a run of several commands is repeated.
        """
        with contextlib.ExitStack() as stack:
            for path, content in self._files.values():
                if isinstance(content, Network):
                    data = model_bytes(content)
                    if not (path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data):
                        stack.enter_context(atomic_write(path)).write(data)
                else:
                    lines = (line.encode("utf-8", "surrogateescape") for line in content)
                    stack.enter_context(atomic_write(path)).writelines(lines)
        return [path for path, _ in self._files.values()]


def file_path(text: str) -> Path:
    """Return a file name of a script as a path; backslashes separate directories, as in the book's examples."""
    if "\0" in text:
        raise ConfigError(f"file name {text!r}; expected one without a zero byte")
    return Path(text.replace("\\", "/"))


def _located(text: str, where: str, name: str) -> str:
    """Prefix a message with the script's line and the command, unless it begins with them."""
    return f"{where}: {name}: {text.removeprefix(f'{where}: ').removeprefix(f'{name}: ')}"
