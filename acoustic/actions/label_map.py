"""Action createLabelMap: the label mapping files of a UCIFastReader block, from its data (CNTK book 3.5.10)."""

from dataclasses import dataclass
from typing import ClassVar

from acoustic.actions.base import Action, ActionOptions, CommonSettings
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import option
from readers.config.syntax import Source
from readers.errors import ConfigError
from readers.minibatches.base import reader_class
from readers.sources.records.uci_reader import UCIFastReader, create_label_maps


@dataclass(frozen=True, kw_only=True)
class LabelMapOptions(ActionOptions):
    """Options of action createLabelMap."""

    section: str = option(help="block, such as a train command, with a reader block that has labelMappingFile")


class CreateLabelMap(Action):
    """Creates the label mapping files that the reader of a block names; existing files are not changed."""

    options = LabelMapOptions

    blocks = ()
    keeps_report = False
    without_effect: ClassVar[dict[str, str]] = {"minibatchSize": "the size of the pieces is fixed"}

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        section = self.settings.section
        self.reader = config.block(section).block("reader")
        self.model_path = self.reader.path("file", "labels")
        kind = reader_class(self.reader)
        if not issubclass(kind, UCIFastReader):
            raise ConfigError(
                f"{self.reader.where('readerType')}: createLabelMap does not work with {kind.__name__}; "
                f"expected a section with readerType=UCIFastReader, not {section}"
            )

    def run(self, log: Log, progress: Progress) -> RunReport:
        self.reader.merge(Source.from_text("allowMapCreation=true", "set by createLabelMap"))
        report = RunReport("label maps")
        for label_map, is_new in create_label_maps(self.reader, progress):
            if is_new:
                log(f"CreateLabelMap: {label_map.path}: {len(label_map.names)} labels")
            else:
                log(f"CreateLabelMap: {label_map.path} exists already: nothing to do.")
            report.done()
        return report
