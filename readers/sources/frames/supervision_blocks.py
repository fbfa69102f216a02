"""The blocks of a reader that name what sequence criteria need of whole utterances, such as lattices.

    lattices=[ denLatTocFile=lattices/lattices.toc ]
    hmms=[ phoneFile=phones; transPFile=transitions ]       # only for lattice files of HTK
    chain=[ denominator=chain/denominator; numerators=chain/numerators ]

Every usable utterance must have its supervision; the others are skipped, and the run ends before training if they are
too many (maxSkippedFraction).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from readers.config.config import Config
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.minibatches.supervision import SupervisionSource
from readers.sources.chain.supervision_source import ChainSource
from readers.sources.frames.corpus import Corpus
from readers.sources.frames.htk_mlf_options import SUPERVISIONS, ReaderOptions, supervision_role
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels, describe, naming
from readers.sources.lattices.hmm_files import HmmTable, read_hmms
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
    found = [(role, block) for _, block in config.blocks() if (role := supervision_role(block)) is not None]
    for role, block in found:
        for unknown in block.unknown(SUPERVISIONS[role]):
            warn(str(unknown))
    sources = [(role, block) for role, block in found if role in OPENERS]
    for role, block in sources[1:]:
        raise ConfigError(f"{block.where(role)}: {block.full_name()} beside {sources[0][1].full_name()}; expected one")
    if not sources:
        return None
    hmms = next((block for role, block in found if role == "phoneFile"), None)
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
    denominators = [block.path("denLatTocFile")]
    numerators = [block.path("numLatTocFile")] if block.has_own("numLatTocFile") else []
    num_senones, read_slf = labels[0].num_classes if len(labels) == 1 else None, None
    if hmms is not None:
        table = _read_hmms(hmms, labels)

        def read_slf(path: str) -> SlfLattice:
            return SlfLattice(path, table, features.period)

    with naming(block, "denLatTocFile"):
        return LatticeSource(denominators, numerators, block.text("prefixPathInToc", ""), num_senones, read_slf)


def _read_hmms(block: Config, labels: Sequence[CorpusLabels]) -> HmmTable:
    """Read the files of a block hmms, whose senones are the names of the labels."""
    senones = labels[0].state_ids if len(labels) == 1 else None
    if senones is None:
        raise ConfigError(f"{block.where('phoneFile')}: {block.full_name()}: expected labels with a labelMappingFile")
    transitions = block.path("transPFile") if block.has_own("transPFile") else None
    with naming(block, "phoneFile"):
        return read_hmms(block.path("phoneFile"), transitions, senones)


def _open_chain(
    block: Config, hmms: Config | None, options: ReaderOptions, features: CorpusFeatures, labels: Sequence[CorpusLabels]
) -> ChainSource:
    where = f"{block.where('denominator')}: {block.full_name()}: graphs are of utterances in order; expected"
    if options.frame_mode:
        raise ConfigError(f"{where} frameMode=false")
    if options.truncated:
        raise ConfigError(f"{where} truncated=false; chunkFrames cuts utterances")
    if not block.has_own("numerators"):
        raise ConfigError(f"{block.where()}: {block.full_name()} without numerators; expected a file")
    denominator, numerators = block.path("denominator"), block.path("numerators")
    try:
        source = ChainSource(denominator, numerators)
    except OSError as fault:
        with naming(block, "numerators" if fault.filename == str(numerators) else "denominator"):
            raise
    if source.subsampling != options.excerpts.subsampling:
        raise ConfigError(
            f"{block.where('numerators')}: {block.full_name('numerators')} have an output for every "
            f"{source.subsampling} frames; expected {options.excerpts.subsampling}, the reader's frameSubsampling"
        )
    return source


COMPARED_UTTERANCES, LEAST_COMPARED_FRAMES = 20, 500
LEAST_AGREEMENT = 0.1  # another model's alignment agrees in half of the frames or more; other outputs by chance only


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
    usable, whole = np.ones(len(corpus.lines), bool), not options.excerpts.num_columns
    for i, (line, num_frames) in enumerate(zip(corpus.lines.tolist(), corpus.num_frames.tolist())):
        entry = features.entries[line]
        try:
            source.check(entry.key, num_frames, whole)
        except (ArgonautError, OSError) as fault:
            usable[i] = False
            corpus.skipped.append((entry.key, f"{entry.where}: {describe(fault)}"))
    if isinstance(source, LatticeSource) and (unused := source.unused([entry.key for entry in features.entries])):
        warnings.append(
            f"{source.paths[0]}: {len(unused)} lattices of utterances that are not in {features.scp}, the first "
            f"'{unused[0]}'"
        )
    corpus = corpus if usable.all() else corpus.keep(usable)
    if isinstance(source, LatticeSource) and len(corpus.classes) == 1:
        _check_agreement(corpus, features, source)
    return corpus


def _check_agreement(corpus: Corpus, features: CorpusFeatures, source: LatticeSource) -> None:
    """Raise FormatError if the labels and the lattices' references number their senones in different ways."""
    num_equal = num_compared = 0
    for i, first in enumerate(corpus.first_frame[:-1][:COMPARED_UTTERANCES].tolist()):
        num_frames = int(corpus.num_frames[i])
        lattice = source.supervision(features.entries[corpus.lines[i]].key, 0, num_frames)
        num_equal += int((lattice.reference_senones == corpus.classes[0][first : first + num_frames]).sum())
        num_compared += num_frames
    if num_compared >= LEAST_COMPARED_FRAMES and num_equal < LEAST_AGREEMENT * num_compared:
        raise FormatError(
            f"{source.paths[0]}: the references of the lattices agree with the labels in {num_equal} of {num_compared} "
            "frames; expected lattices and a labelMappingFile of the same network"
        )
