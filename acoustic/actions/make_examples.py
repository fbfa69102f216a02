"""Action makeExamples: the frames of a reader in random order, as archives that an ExampleReader reads in order."""

import contextlib
from pathlib import Path

from acoustic.actions.base import Action, CommonSettings, check_reader, reader_report
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options.names import at_least
from readers.errors import ConfigError
from readers.sources.examples.example_archive import ExampleArchive
from readers.sources.examples.example_reader import ExampleSet
from readers.sources.examples.example_writer import archive_path, write_examples

PIECE_FRAMES = 8192
MEGABYTE = 1 << 20


class MakeExamples(Action):
    """Writes the frames of the block reader to archives examplesPath.1, examplesPath.2, ...

    Parameters
    ----------
    compress : bool
        One byte per value (default true).
    numArchives : int
        At least so many archives (default 1); more if shuffleMemory requires them.
    shuffleMemory : int
        Megabytes (default 1024).
    makeMode : bool
        Do nothing if the archives exist (default true).
    """

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common, config.path("examplesPath"))
        self.compress = config.bool("compress", True)
        self.archives = at_least(config, "numArchives", config.int("numArchives", 1), 1)
        self.memory = at_least(config, "shuffleMemory", config.int("shuffleMemory", 1024), 1) * MEGABYTE
        self.make_mode = config.bool("makeMode", True)
        require_writable(archive_path(self.model_path, 1))
        check_reader(config, "reader")

    def network(self) -> None:
        """Return None: the action has no network."""

    def makes(self) -> list[Path]:
        return [archive_path(self.model_path, 1)]

    def run(self, log: Log, progress: Progress) -> RunReport:
        if self.make_mode and _is_complete(self.model_path):
            there = ExampleSet(self.model_path)
            there.close()
            log(f"{self.model_path}: {there.total} examples exist: nothing to do; makeMode=false creates them again.")
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
                compress=self.compress,
                archives=self.archives,
                seed=self.common.seed,
                memory=self.memory,
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
    with contextlib.closing(ExampleArchive(first)) as archive:
        return all(archive_path(path, number).exists() for number in range(1, archive.described.archives + 1))
