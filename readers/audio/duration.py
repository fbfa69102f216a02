"""How long the audio of a file is, from its header."""

from pathlib import Path

from readers.audio.sound import Sound
from readers.common.audio_format import HEAD_SIZE, audio_format
from readers.errors import FormatError


def audio_seconds(path: str | Path) -> float | None:
    """Return the duration that the header of an audio file states.

    Parameters
    ----------
    path : path

    Returns
    -------
    float or None
        In seconds; None if the header has no length, and for a file that libsndfile does not know, such as an HTK
        waveform, which is never longer than its bytes.
    """
    with Path(path).open("rb") as file:
        form = audio_format(file.read(HEAD_SIZE))
    try:
        with Sound(path, form or "") as sound:
            return None if sound.num_samples is None else sound.num_samples / sound.rate
    except FormatError:
        return None
