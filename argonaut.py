"""Argonaut from Python: recognise, align, train and score, every job by its name.

    import argonaut

    recognizer = argonaut.load("en.argo")
    print(recognizer.transcribe("call.wav"))

    options = argonaut.TieOptions(alignment="states.mlf", features="train.scp", out="hmms",
                                  files=argonaut.StateFiles(state_list="states.list"))
    argonaut.tie(options).num_senones

Each command of the shell has a job here, a function that takes its options and returns what it made; the options have
the names, the defaults and the checks of the command's flags.  A name is imported when it is used first, so that
`import argonaut` costs nothing.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "decoder.recognizer": [
        "Bundle", "ForcedAligner", "Grammar", "Recognizer", "Transcript", "Word", "pack",
    ],
    "decoder.recognizer.jobs": [
        "CalibrateOptions", "CalibrateResult", "LiveResult", "TranscribeOptions", "TranscribeResult",
        "TranscribedFile", "calibrate", "transcribe", "transcribe_live",
    ],
    "decoder.results": ["RecognitionEvent"],
    "decoder.search": ["GuessedHotwordOptions", "HotwordOptions"],
    "decoder.tying": ["StateFiles", "TieOptions", "TieResult", "TreeOptions", "tie"],
    "features": ["FeatureConfig", "hcopy"],
    "readers.audio": ["AudioFileOptions", "read_audio"],
    "readers.config.options": ["OptionFault", "Options"],
    "readers.errors": ["ArgonautError"],
    "recipes.packing": ["AboutOptions", "PackOptions", "PartOptions", "make_bundle"],
    "recipes.pictures.job": [
        "AlignmentPictureOptions", "LatticePictureOptions", "TuningPictureOptions", "plot",
    ],
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "load"])


def load(path: str, verify: bool = True) -> Any:
    """Return the recogniser of a bundle.

    Parameters
    ----------
    path : path
        A bundle, such as ``en.argo``.
    verify : bool
        Whether the checksums of its parts are compared.

    Returns
    -------
    decoder.Recognizer

    Raises
    ------
    ArgonautError
        For a file that is no bundle, or is damaged.
    """
    from decoder.recognizer import Recognizer

    return Recognizer.load(path, verify)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'argonaut' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
