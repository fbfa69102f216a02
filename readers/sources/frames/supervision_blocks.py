"""The blocks of a reader that name what sequence criteria need of whole utterances, such as lattices.

    lattices=[ denLatTocFile=lattices/lattices.toc ]        # or a pattern, such as lattices/*.toc
    hmms=[ phoneFile=phones; transPFile=transitions ]       # only for lattice files of HTK
    chain=[ denominator=chain/denominator; numerators=chain/numerators ]

Every usable utterance must have its supervision; the others are skipped, and the run ends before training if they are
too many (maxSkippedFraction).
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from readers.config.config import Config
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.minibatches.excerpts import ExcerptOptions
from readers.minibatches.supervision import LatticeSupervision, SupervisionSource
from readers.sources.chain.supervision_source import ChainSource
from readers.sources.frames.corpus import Corpus
from readers.sources.frames.htk_mlf_options import (
    SUPERVISIONS,
    ChainOptions,
    HmmOptions,
    LatticeOptions,
    ReaderOptions,
    supervision_role,
)
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels, describe, naming
from readers.sources.lattices.hmm_files import HmmTable, read_hmms
from readers.sources.lattices.lattice_contents import read_contents
from readers.sources.lattices.lattice_source import LatticeSource
from readers.sources.lattices.slf_lattices import SlfLattice


class CheckedSource(SupervisionSource, Protocol):
    """A source whose utterances are checked before training.

    Attributes
    ----------
    paths : list of str
        Its files.
    """

    paths: list[str]

    def check(self, key: str, num_frames: int, whole: bool = True) -> None:
        """Raise FormatError if an utterance of so many input frames, kept whole or not, has no supervision."""
        ...


def open_supervision(
    config: Config,
    options: ReaderOptions,
    features: CorpusFeatures,
    labels: Sequence[CorpusLabels],
    warn: Callable[[str], None],
) -> CheckedSource | None:
    """Open the source of a reader block; None if it has none.  warn: called with unknown names.

    Raises ConfigError for a reader of other sequences than the source needs, and the errors of the source.
    """
    supervisions = [(role, block) for _, block in config.blocks() if (role := supervision_role(block)) is not None]
    for role, block in supervisions:
        for unknown in block.unknown(SUPERVISIONS[role].option_keys()):
            warn(str(unknown))
    sources = [(role, block) for role, block in supervisions if role in OPENERS]
    for role, block in sources[1:]:
        raise ConfigError(f"{block.where(role)}: {block.full_name()} beside {sources[0][1].full_name()}; expected one")
    if not sources:
        return None
    hmms = next((block for role, block in supervisions if role == "phoneFile"), None)
    return OPENERS[sources[0][0]](sources[0][1], hmms, options, features, labels)


def _open_lattices(
    block: Config, hmms: Config | None, options: ReaderOptions, features: CorpusFeatures, labels: Sequence[CorpusLabels]
) -> LatticeSource:
    where = f"{block.where('denLatTocFile')}: {block.full_name()}: lattices are of whole utterances; expected"
    if options.frame_mode:
        raise ConfigError(f"{where} frameMode=false")
    if options.truncated:
        raise ConfigError(f"{where} truncated=false")
    if options.excerpts.subsampling > 1 or options.excerpts.num_columns:
        raise ConfigError(f"{where} neither frameSubsampling nor chunkFrames")
    lattices = LatticeOptions.from_block(block)
    denominators, numerators = map(_tables, (lattices.denominators, lattices.numerators))
    num_senones = labels[0].num_classes if len(labels) == 1 else None
    read_slf = None
    numbers = labels[0].state_ids if len(labels) == 1 else None
    if hmms is not None:
        table = _read_hmms(hmms, labels)

        def read_slf(path: str) -> SlfLattice:
            return SlfLattice(path, table, features.period)

    with naming(block, "denLatTocFile"):
        return LatticeSource(denominators, numerators, lattices.prefix, num_senones, read_slf, numbers)


def _tables(path: Path | None) -> list[Path]:
    """Return the tables of contents that a path names, perhaps by a pattern; none for None."""
    if path is None:
        return []
    return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) or [path]


def missing_supervision(config: Config) -> Iterator[ArgonautError]:
    """Yield a fault for each missing file of a reader's supervision, of the archives the first one of each table."""
    for _, block in config.blocks():
        role = supervision_role(block)
        options = None if role is None else SUPERVISIONS[role].from_block(block)
        for declared in options.declared() if options else ():
            path = getattr(options, declared.name)
            if not isinstance(path, Path):
                continue
            try:
                with naming(block, declared.key):
                    if isinstance(options, LatticeOptions):
                        for table in _tables(path):
                            _require_archives(table, options.prefix)
                    else:
                        path.open("rb").close()
            except ArgonautError as fault:
                yield fault


def _require_archives(table: Path, prefix: str) -> None:
    """Raise FormatError or OSError if a table of contents, or an archive of it, is missing."""
    for entry in {entry.path: entry for entry in read_contents(table, prefix).values()}.values():
        entry.require()


def _read_hmms(block: Config, labels: Sequence[CorpusLabels]) -> HmmTable:
    """Read the files of a block hmms, whose senones are the names of the labels."""
    senones = labels[0].state_ids if len(labels) == 1 else None
    if senones is None:
        raise ConfigError(f"{block.where('phoneFile')}: {block.full_name()}: expected labels with a labelMappingFile")
    options = HmmOptions.from_block(block)
    with naming(block, "phoneFile"):
        return read_hmms(options.phones, options.transitions, senones)


def _open_chain(
    block: Config, hmms: Config | None, options: ReaderOptions, features: CorpusFeatures, labels: Sequence[CorpusLabels]
) -> ChainSource:
    where = f"{block.where('denominator')}: {block.full_name()}: graphs are of utterances in order; expected"
    if options.frame_mode:
        raise ConfigError(f"{where} frameMode=false")
    if options.truncated:
        raise ConfigError(f"{where} truncated=false; chunkFrames cuts utterances")
    chain = ChainOptions.from_block(block)
    if chain.numerators is None:
        raise ConfigError(f"{block.where()}: {block.full_name()} without numerators; expected a file")
    try:
        source = ChainSource(chain.denominator, chain.numerators)
    except OSError as fault:
        with naming(block, "numerators" if fault.filename == str(chain.numerators) else "denominator"):
            raise
    if source.subsampling != options.excerpts.subsampling:
        raise ConfigError(
            f"{block.where('numerators')}: {block.full_name('numerators')} have an output for every "
            f"{source.subsampling} frames; expected {options.excerpts.subsampling}, the reader's frameSubsampling"
        )
    for stream in labels:
        _check_order(stream, source.outputs, str(chain.denominator))
    return source


def _check_order(labels: CorpusLabels, outputs: Sequence[str], where: str) -> None:
    """Raise FormatError if labels number as many outputs in another order than a denominator graph."""
    numbers = labels.state_ids or {}
    for number, name in enumerate(outputs):
        if len(numbers) == len(outputs) and numbers.get(name, number) != number:
            raise FormatError(
                f"{where}: '{name}' is output {number}; expected {numbers[name]}, its place in the labelMappingFile of "
                f"{labels.name}; use the senones.list that argonaut chain wrote beside the denominator"
            )


Opener = Callable[[Config, Config | None, ReaderOptions, CorpusFeatures, Sequence[CorpusLabels]], CheckedSource]
OPENERS: dict[str, Opener] = {"denLatTocFile": _open_lattices, "denominator": _open_chain}


def supervised(
    corpus: Corpus, features: CorpusFeatures, source: CheckedSource | None, options: ReaderOptions, warnings: list[str]
) -> Corpus:
    """Return the corpus without the utterances that lack their supervision, which are skipped with the reason.

    A warning names lattices that no utterance uses.  Raises FormatError for lattices of a network with other outputs
    than the labels.
    """
    if source is None:
        return corpus
    usable = np.ones(len(corpus.lines), bool)
    check = SupervisionCheck(source, options.excerpts)
    firsts = corpus.first_frame.tolist()
    labels = corpus.classes[0] if len(corpus.classes) == 1 else None
    for i, (line, num_frames) in enumerate(zip(corpus.lines.tolist(), corpus.num_frames.tolist())):
        entry = features.entries[line]
        try:
            check.utterance(entry.key, num_frames, None if labels is None else labels[firsts[i] : firsts[i + 1]])
        except (ArgonautError, OSError) as fault:
            usable[i] = False
            corpus.skipped.append((entry.key, f"{entry.where}: {describe(fault)}"))
    if isinstance(source, LatticeSource) and (unused := source.unused([entry.key for entry in features.entries])):
        warnings.append(
            f"{source.paths[0]}: {len(unused)} lattices of utterances that are not in {features.scp}, the first "
            f"'{unused[0]}'"
        )
    check.agreement()
    return corpus if usable.all() else corpus.keep(usable)


COMPARED_UTTERANCES, LEAST_COMPARED_FRAMES = 20, 500
LEAST_AGREEMENT = 0.1  # another model's alignment agrees in half of the frames or more; other outputs by chance only


class SupervisionCheck:
    """Checks that utterances have their supervision, and that lattices number the senones as the labels do.

    source: None for a reader without supervision.
    thorough: whether the whole supervision of every utterance is read, not only its length.
    """

    def __init__(self, source: CheckedSource | None, excerpts: ExcerptOptions, thorough: bool = False):
        self.source = source
        self._excerpts = excerpts
        self._thorough = thorough
        self._num_utterances = self._num_equal = self._num_frames = 0

    def utterance(self, key: str, num_frames: int, classes: np.ndarray | None) -> None:
        """Check an utterance of so many input frames; classes: those of its only labels, None without.

        Raises FormatError or OSError.
        """
        if self.source is None:
            return
        self.source.check(key, num_frames, not self._excerpts.num_columns)
        has_senones = isinstance(self.source, LatticeSource) and classes is not None
        compared = has_senones and self._num_utterances < COMPARED_UTTERANCES
        if not compared and not self._thorough:
            return
        supervision = self.source.supervision(key, 0, self._excerpts.num_columns_of(num_frames))
        if compared and isinstance(supervision, LatticeSupervision):
            self._num_utterances += 1
            self._num_frames += num_frames
            self._num_equal += int((supervision.reference_senones == classes).sum())

    def agreement(self) -> None:
        """Raise FormatError if the labels and the references of the first lattices number senones in different ways."""
        agree = self._num_frames < LEAST_COMPARED_FRAMES or self._num_equal >= LEAST_AGREEMENT * self._num_frames
        if self.source is not None and not agree:
            raise FormatError(
                f"{self.source.paths[0]}: the references of the lattices agree with the labels in {self._num_equal} of "
                f"{self._num_frames} frames; expected lattices and a labelMappingFile of the same network"
            )
