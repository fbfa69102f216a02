"""Lists of hotwords: phrases that a recogniser should prefer, one per line, as sherpa-onnx reads them.

    NEW YORK :2.5
    ROSENCRANTZ

The score is a bonus for each word of the phrase; phrases without one get a default.  Empty lines and lines that begin
with # are ignored.
"""

from pathlib import Path

from readers.common.text import is_number, read_lines
from readers.errors import FormatError

MAX_SCORE = 1000.0


def read_hotwords(path: str | Path, score: float) -> dict[str, float]:
    """Read a list of hotwords.

    Parameters
    ----------
    path : path
        File with lines `PHRASE` or `PHRASE :score`.
    score : float
        Of phrases without one.

    Returns
    -------
    dict of str to float
        Phrase, with one blank between its words -> score, in file order.

    Raises
    ------
    FormatError
        With file and line, for a score that is no number from -1000 to 1000, a line without words, and a phrase with
        two scores; and for a file without phrases.
    """
    return {phrase: phrase_score for phrase, (phrase_score, _) in read_hotword_lines(path, score).items()}


def read_hotword_lines(path: str | Path, score: float) -> dict[str, tuple[float, int]]:
    """Read a list of hotwords like `read_hotwords`; return phrase -> (score, number of its first line)."""
    hotwords: dict[str, tuple[float, int]] = {}
    for number, line in enumerate(read_lines(path), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        phrase_score = score
        if words[-1] == ":":
            raise FormatError(
                f"{path}:{number}: {line.strip()[:60]!r} has no score after the colon; expected `PHRASE :score`"
            )
        if words[-1].startswith(":") and len(words[-1]) > 1:
            text = words.pop()[1:]
            phrase_score = float(text) if is_number(text) else float("nan")
            if not abs(phrase_score) <= MAX_SCORE:
                raise FormatError(
                    f"{path}:{number}: score {text[:20]!r}; expected a number from {-MAX_SCORE:g} to {MAX_SCORE:g}"
                )
        if not words:
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected `PHRASE` or `PHRASE :score`")
        phrase = " ".join(words)
        first_score, first_number = hotwords.setdefault(phrase, (phrase_score, number))
        if first_number != number and first_score != phrase_score:
            raise FormatError(
                f"{path}:{number}: {phrase[:60]!r} with score {phrase_score:g}, and {first_score:g} in line "
                f"{first_number}; expected one score"
            )
    if not hotwords:
        raise FormatError(f"{path}: no phrases; expected one per line, with its score or without")
    return hotwords
