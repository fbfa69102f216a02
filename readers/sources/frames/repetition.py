"""Streams whose frames are repeated: one for an utterance, or one for each block of frames, such as i-vectors."""

from readers.config.config import Config
from readers.config.feature_record import FeatureRecord
from readers.errors import ConfigError
from readers.minibatches.excerpts import ExcerptOptions

REPETITION_NAMES = ("expandToUtterance", "framesPerVector")


def vectors_fault(found: int, size: int, num_frames: int) -> str | None:
    """Return a message unless a stream has as many vectors as it needs for the frames of an utterance.

    size: frames for which a vector is repeated; 0 for the whole utterance.
    """
    if not size:
        return None if found == 1 else f"{found} frames; expected 1, to be repeated"
    expected = -(-num_frames // size)
    if found == expected:
        return None
    return f"{found} frames; expected {expected}, one for every {size} of {num_frames} frames"


def frames_per_vector_of(config: Config, context: tuple[int, int] | None) -> int:
    """Return the frames for which a stream repeats each of its own; 0 for a whole utterance, 1 if it does not."""
    whole, size = config.bool("expandToUtterance", False), config.int("framesPerVector", 1)
    if size < 1:
        raise ConfigError(
            f"{config.where('framesPerVector')}: {config.full_name('framesPerVector')} is {size}; expected at least 1"
        )
    if whole and size > 1:
        raise ConfigError(
            f"{config.where('framesPerVector')}: {config.full_name()} has framesPerVector and expandToUtterance; "
            "expected only one of them"
        )
    if (whole or size > 1) and context not in (None, (0, 0)):
        name, what = ("expandToUtterance", "one frame") if whole else ("framesPerVector", "its frames")
        raise ConfigError(
            f"{config.where(name)}: {config.full_name()} repeats {what} and has a context window; expected only one of "
            "them"
        )
    return 0 if whole else size


def recorded(record: FeatureRecord | None, repeated: bool, excerpts: ExcerptOptions) -> FeatureRecord | None:
    """Return what a model that is trained on a stream remembers of it; None for nothing.

    Of repeated frames only the model that estimated them counts: they have no period to compare.
    """
    if record is None or not repeated:
        return record and excerpts.recorded(record)
    return FeatureRecord(extractor=record.extractor) if record.extractor else None
