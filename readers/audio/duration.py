"""How long the audio of a file is, from its header."""

import os


def audio_seconds(path: str | os.PathLike) -> float | None:
    """Return the duration that the header of an audio file states.

    Parameters
    ----------
    path : path

    Returns
    -------
    float or None
        In seconds; None for a file that libsndfile does not know, such as an HTK waveform, which is never longer than
        its bytes.
    """
    import soundfile

    try:
        about = soundfile.info(os.fspath(path))
    except (soundfile.LibsndfileError, RuntimeError):
        return None
    return about.frames / about.samplerate
