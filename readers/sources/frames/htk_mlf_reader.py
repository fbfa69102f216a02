"""HTKMLFReader: minibatches of frames from HTK feature files and master label files.

    reader = HTKMLFReader(config.block("TIMIT_Train").block("reader"), rng_seed=1)
    for minibatch in reader.minibatches(epoch=0, minibatch_size=256):
        minibatch.matrices["features"]          # (792, 256) float32, Fortran order
        minibatch.matrices["labels"]            # (183, 256) one-hot columns

Features are loaded in chunks; labels are kept in memory, two bytes per frame.
Source: CNTK book 3.4.2.
"""

from collections.abc import Iterator

from readers.config.config import Config
from readers.errors import ArgonautError
from readers.minibatches.base import reader_class
from readers.sources.frames.frame_reader import FrameReader
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels, naming
from readers.sources.frames.supervision_blocks import missing_supervision


class HTKMLFReader(FrameReader):
    """Reads frames from HTK feature files and labels from master label files.

    See FrameReader for parameters, attributes and errors, and the module's description for an example.
    """

    roles = {"scpFile": CorpusFeatures, "mlfFile": CorpusLabels, "mlfFileList": CorpusLabels}  # noqa: RUF012


def missing_files(config: Config) -> Iterator[ArgonautError]:
    """Yield a fault for each file that a reader block names and that is missing, if no action creates such files.

    These are lists, label files and what sequence criteria need.  Archives of Kaldi may come from an earlier command.
    """
    kind = reader_class(config)
    if issubclass(kind, HTKMLFReader):
        for _, block in config.blocks():
            for name in filter(block.has_own, HTKMLFReader.roles):
                try:
                    with naming(block, name):
                        block.path(name).open("rb").close()
                except ArgonautError as fault:
                    yield fault
    if issubclass(kind, FrameReader):
        yield from missing_supervision(config)
