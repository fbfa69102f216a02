"""Options of an HTKMLFReader block, and its blocks of features and labels.

Source: CNTK book 3.4.2; lookAheadFrames, specAugment and excerpts are extensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from readers.config.config import Config
from readers.config.options.names import at_least
from readers.config.values import Schedule, did_you_mean
from readers.errors import ConfigError
from readers.minibatches.excerpts import EXCERPT_NAMES, ExcerptOptions
from readers.minibatches.masks import MaskOptions
from readers.sources.frames.streams import FEATURE_NAMES, LABEL_NAMES, CorpusFeatures, CorpusLabels
from readers.sources.records.records import parse_randomize

METHODS = ("blockRandomize", "rollingWindow")
MAX_FRAMES_IN_MEMORY = 2_000_000
MAX_UTTERANCE_FRAMES = 65535  # CNTK's limit, only for blockRandomize
# Options of CNTK without effect here, and the reason.
WITHOUT_EFFECT = {
    "verbosity": "the program has one log for everything",
    "traceLevel": "the program has one log for everything",
    "precision": "the network converts what it reads",
    "useMersenneTwisterRand": "randomSeed determines the order",
    "unigram": "a language model of states is used only by sequence training",
}
READER_NAMES = (
    *("readerType", "readMethod", "randomize", "minibatchMode", "frameMode", "truncated", "nbruttsineachrecurrentiter"),
    *("pageFilePath", "readAhead", *WITHOUT_EFFECT),
    # Extensions.
    *EXCERPT_NAMES,
    *("lookAheadFrames", "maxFramesInMemory", "maxUtteranceFrames", "maxSkippedFraction", "ignoreFeatureMismatch"),
)
HTK_FEATURE_NAMES = (*FEATURE_NAMES, "specAugment")
ROLE_NAMES = ("scpFile", "mlfFile", "mlfFileList")
TABLE_NAMES = ("denLatTocFile", "numLatTocFile")
LATTICE_NAMES = (*TABLE_NAMES, "prefixPathInToc")
HMM_NAMES = ("phoneFile", "transPFile")
CHAIN_NAMES = ("denominator", "numerators")
SUPERVISIONS = {  # role -> names of such a block
    "denLatTocFile": LATTICE_NAMES,
    "phoneFile": HMM_NAMES,
    "denominator": CHAIN_NAMES,
}


@dataclass(frozen=True)
class ReaderOptions:
    """Options of a reader block.

    method: one of METHODS.
    shuffle: if False, frames are visited in SCP order.
    window: frames that are shuffled together, None for as many as memory permits.
    partial: whether training uses the last, short minibatch of an epoch.
    page_directory: directory of the page file, None for the system's directory of temporary files.
    read_ahead: whether chunks are loaded in the background.
    max_frames: frames in memory; max_frames_where: file:line of the setting, None if it is the default.
    max_utterance: longer utterances are skipped, None for no limit.
    max_skipped: fraction of utterances that may be skipped.
    frame_mode: independent frames, else utterances in order.
    parallel: number of parallel utterances, for each epoch.
    truncated: whether utterances are cut into pieces, which continue from one minibatch to the next.
    ahead: frames that follow each piece as context.
    excerpts: what part of an utterance is a sequence, and how many input frames are a column.
    """

    method: str
    shuffle: bool
    window: int | None
    partial: bool
    page_directory: Path | None
    read_ahead: bool
    max_frames: int
    max_frames_where: str | None
    max_utterance: int | None
    max_skipped: float
    frame_mode: bool
    parallel: Schedule
    truncated: bool
    ahead: int = 0
    excerpts: ExcerptOptions = field(default_factory=ExcerptOptions)

    @classmethod
    def from_config(cls, config: Config) -> "ReaderOptions":
        method = config.choice("readMethod", METHODS, METHODS[0])
        frame_mode, parallel, truncated = _parse_sequences(config)
        shuffle, window = parse_randomize(config)
        max_utterance = config.int("maxUtteranceFrames", MAX_UTTERANCE_FRAMES if method == METHODS[0] else None)
        if not frame_mode and config.has_own("maxUtteranceLength"):  # of Kaldi2Reader
            max_utterance = config.int("maxUtteranceLength")
        max_skipped = config.float("maxSkippedFraction", 0.5)
        max_frames = config.int("maxFramesInMemory", MAX_FRAMES_IN_MEMORY)
        at_least(config, "maxFramesInMemory", max_frames, 1)
        if max_utterance is not None:
            at_least(config, "maxUtteranceFrames", max_utterance, 1)
        if not 0 <= max_skipped <= 1:
            raise ConfigError(
                f"{config.where('maxSkippedFraction')}: {config.full_name('maxSkippedFraction')} is {max_skipped:g}; "
                "expected 0 to 1"
            )
        return cls(
            method=method,
            shuffle=shuffle,
            window=window,
            partial=config.choice("minibatchMode", ("partial", "full"), "partial") == "partial",
            page_directory=config.path("pageFilePath") if config.text("pageFilePath", "") else None,
            read_ahead=config.bool("readAhead", True),
            max_frames=max_frames,
            max_frames_where=config.where("maxFramesInMemory") if config.has("maxFramesInMemory") else None,
            max_utterance=max_utterance,
            max_skipped=max_skipped,
            frame_mode=frame_mode,
            parallel=parallel,
            truncated=truncated,
            ahead=_parse_ahead(config, truncated),
            excerpts=ExcerptOptions.from_config(config, frame_mode, truncated),
        )


def find_streams(config: Config, write: bool) -> tuple[list[CorpusFeatures], list[CorpusLabels], list[str]]:
    """Return (feature streams, label streams, warnings) of the blocks within a reader block, in their order.

    write: for action write; label blocks are ignored.
    Raises ConfigError for a block that is neither, and for streams that do not form training data.
    """
    features: list[CorpusFeatures] = []
    labels: list[CorpusLabels] = []
    warnings = [str(unknown) for unknown in config.unknown([*READER_NAMES, *(name for name, _ in config.blocks())])]
    for name, block in config.blocks():
        known = LABEL_NAMES
        if block.has_own("scpFile"):
            features.append(CorpusFeatures.from_config(name, block))
            features[-1].masks = read_masks(block, features[-1].expand)
            known = HTK_FEATURE_NAMES
        elif supervision_role(block) is not None:
            continue
        elif not (block.has_own("mlfFile") or block.has_own("mlfFileList")):
            refuse_block(block)
        elif write:
            warnings.append(
                f"{block.where()}: {block.full_name()} contains labels, which action write reads only "
                "for outputs that depend on them"
            )
        else:
            labels.append(CorpusLabels.from_config(name, block))
            warnings.extend(labels[-1].warnings)
        warnings.extend(map(str, block.unknown(known)))
    check_streams(config, features, labels, write)
    return features, labels, warnings


def read_masks(block: Config, expand: bool) -> MaskOptions | None:
    """Return the options of the block specAugment of a feature stream, None without one."""
    masks = MaskOptions.from_config(block)
    if masks is not None and expand:
        raise ConfigError(
            f"{masks.where}: {block.full_name('specAugment')}: {block.full_name()} repeats one frame; expected none"
        )
    return masks


def check_streams(config: Config, features: list[CorpusFeatures], labels: list[CorpusLabels], write: bool) -> None:
    """Raise ConfigError for streams that do not form training data or, with `write`, have no features."""
    if not features:
        raise ConfigError(f"{config.where()}: {config.full_name()} has no features; expected a block with scpFile=...")
    needs_no_labels = any(supervision_role(block) == "denominator" for _, block in config.blocks())
    if not write and not needs_no_labels and len(features) + len(labels) < 2:
        raise ConfigError(
            f"{config.where()}: {config.full_name()} has one stream, {features[0].name}; "
            "expected another for training or test: a block with mlfFile=... or with scpFile=..."
        )
    if features[0].expand:
        raise ConfigError(
            f"{features[0].where}: {features[0].name} repeats "
            f"{'its frames' if features[0].frames_per_vector else 'one frame'} and is the first stream; "
            "expected another feature stream before it"
        )


def _parse_sequences(config: Config) -> tuple[bool, Schedule, bool]:
    """Return (frame mode, number of parallel utterances for each epoch, truncated)."""
    frame_mode, truncated = config.bool("frameMode", "true"), config.bool("truncated", "false")
    if frame_mode and truncated:
        raise ConfigError(
            f"{config.where('truncated')}: {config.full_name('truncated')} is true; expected false in frameMode; "
            "frameMode=false keeps the frames of an utterance in order"
        )
    name = "nbruttsineachrecurrentiter"
    parallel = config.ints(name, "1")
    if any(count < 1 or (frame_mode and count != 1) for count in parallel):
        raise ConfigError(
            f"{config.where(name)}: {config.full_name(name)} is {':'.join(map(str, parallel))}; "
            f"expected {'1 in frameMode' if frame_mode else 'at least 1'}"
        )
    return frame_mode, parallel, truncated


def _parse_ahead(config: Config, truncated: bool) -> int:
    """Return the number of look-ahead frames after each piece of an utterance."""
    ahead = config.int("lookAheadFrames", 0)
    if ahead < 0 or (ahead and not truncated):
        expected = "0 or more" if ahead < 0 else "truncated=true with it: whole utterances need no look-ahead"
        where = config.where("lookAheadFrames")
        raise ConfigError(f"{where}: {config.full_name('lookAheadFrames')} is {ahead}; expected {expected}")
    return ahead


def supervision_role(block: Config) -> str | None:
    """Return the name that makes a block one of SUPERVISIONS; None for other blocks.

    Raises ConfigError for a block chain without its denominator.
    """
    found = next((role for role in SUPERVISIONS if block.has_own(role)), None)
    if found is None and block.has_own("numerators"):
        raise ConfigError(f"{block.where('numerators')}: {block.full_name()} without denominator; expected a file")
    return found


def refuse_block(block: Config, roles: Sequence[str] = ROLE_NAMES) -> None:
    """Raise ConfigError for a block without any of the names that define its role."""
    hints = [did_you_mean(name, roles) for name in block.names()]
    raise ConfigError(
        f"{block.where()}: block {block.full_name()} has none of {', '.join(roles)}; "
        f"expected one of them, for features or labels{max(hints, default='')}"
    )
