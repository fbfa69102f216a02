"""Streams whose frames are repeated: one for an utterance, or one for each block of frames, such as i-vectors."""

from readers.config.feature_record import FeatureRecord
from readers.minibatches.excerpts import ExcerptOptions


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


def recorded(record: FeatureRecord | None, repeated: bool, excerpts: ExcerptOptions) -> FeatureRecord | None:
    """Return what a model that is trained on a stream remembers of it; None for nothing.

    Of repeated frames only the model that estimated them counts: they have no period to compare.
    """
    if record is None or not repeated:
        return record and excerpts.recorded(record)
    return FeatureRecord(extractor=record.extractor) if record.extractor else None
