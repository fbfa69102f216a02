"""Tiers of any file that has some: Praat's TextGrids and ELAN's annotation files."""

from pathlib import Path

from readers.results.elan.document import read_elan
from readers.results.textgrid import read_textgrid
from readers.results.tiers import Tier

EAF, TEXTGRID = ".eaf", ".textgrid"


def read_tiers(path: str | Path) -> tuple[Tier, ...]:
    """Read the tiers of a TextGrid or, from a name that ends in .eaf, of an ELAN file.

    Parameters
    ----------
    path : path

    Returns
    -------
    tuple of Tier

    Raises
    ------
    FormatError
        With file and line, as `read_textgrid` and `read_elan`.
    OSError
    """
    return read_elan(path).tiers if Path(path).suffix.lower() == EAF else read_textgrid(path)
