"""Action makeExamples: the frames of a reader in random order, as archives that an ExampleReader reads in order."""

from dataclasses import dataclass
from pathlib import Path

from acoustic.actions.base import Action, ActionOptions, CommonSettings, check_reader
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ConfigError
from readers.minibatches.base import reader_report
from readers.sources.examples.example_archive import ExampleArchive
from readers.sources.examples.example_reader import ExampleSet
from readers.sources.examples.example_writer import archive_path, write_examples

PIECE_FRAMES = 8192
MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class MakeExamplesOptions(ActionOptions):
    """Options of action makeExamples."""

    model_path: Path = option(help="the archives, without their numbers", cntk="examplesPath")
    compress: bool = option(True, "store one byte per value")
    archives: int = option(1, "archives at least; more if shuffleMemory requires them", least=1, cntk="numArchives")
    memory: int = option(1024, "memory of the shuffling", unit="megabytes", least=1, cntk="shuffleMemory")
    make_mode: bool = option(True, "do nothing if the archives exist")


class MakeExamples(Action):
    """Writes the frames of the block reader to archives examplesPath.1, examplesPath.2, ..."""

    options = MakeExamplesOptions
    model_path: Path

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        require_writable(archive_path(self.model_path, 1))
        check_reader(config, "reader")

    def makes(self) -> list[Path]:
        return [archive_path(self.model_path, 1)]

    def run(self, log: Log, progress: Progress) -> RunReport:
        if self.settings.make_mode and _is_complete(self.model_path):
            count = ExampleSet(self.model_path).total
            log(f"{self.model_path}: {count} examples exist: nothing to do; makeMode=false creates them again.")
            return RunReport("utterances")
        with self.open_reader("reader", log, progress, order="None") as reader:
            if reader.in_sequence:
                raise ConfigError(
                    f"{self.config.where('reader')}: reader gives sequences; expected independent frames, as with "
                    "frameMode=true"
                )
            written = write_examples(
                self.model_path,
                reader.minibatches(minibatch_size=PIECE_FRAMES),
                reader.num_frames,
                compress=self.settings.compress,
                archives=self.settings.archives,
                seed=self.common.seed,
                memory=self.settings.memory * MEGABYTE,
                progress=progress,
                features=reader.feature_records(),
            )
            size = sum(path.stat().st_size for path in written)
            log(f"{self.model_path}: {reader.num_frames} examples in {len(written)} archives, {size} bytes")
            return reader_report(reader)


def _is_complete(path: Path) -> bool:
    """Return whether all archives of a set exist; an interrupted run leaves only the first ones."""
    first = archive_path(path, 1)
    if not first.exists():
        return False
    archives = ExampleArchive(first).described.archives
    return all(archive_path(path, number).exists() for number in range(1, archives + 1))
