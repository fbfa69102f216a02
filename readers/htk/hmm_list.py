"""HTK HMM lists: lines `logical physical`, or a single name for a model that is both."""

from collections.abc import Mapping
from pathlib import Path

from readers.common.files import atomic_write
from readers.common.report import Figures
from readers.common.text import quote_name, read_lines, split_fields
from readers.errors import FormatError


def read_hmm_list(path: str | Path) -> dict[str, str]:
    """Read an HMM list.

    Parameters
    ----------
    path : path
        The list; a line with one name maps the model to itself.

    Returns
    -------
    dict of str to str
        Logical name -> name of the physical model, in file order.

    Raises
    ------
    FormatError
        With file and line, for a malformed line and a repeated name.

    References
    ----------
    HTK Book 3.4, section 7.4 (HMM sets).
    """
    names: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split() if "\\" not in line and '"' not in line and "'" not in line else None
        if fields is None:
            fields = [name for name, _ in split_fields(line, f"{path}:{number}")]
        if not fields:
            continue
        if len(fields) > 2:
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected a logical and a physical model name")
        if fields[0] in names:
            raise FormatError(f"{path}:{number}: {fields[0]!r} is repeated; expected each name once")
        names[fields[0]] = fields[-1]
    if not names:
        raise FormatError(f"{path}: no models; expected lines `logical physical`")
    return names


def write_hmm_list(path: str | Path, names: Mapping[str, str]) -> None:
    """Write an HMM list; see read_hmm_list.

    Parameters
    ----------
    path : path
        File to write.
    names : mapping of str to str
        Logical name -> name of the physical model.

    Raises
    ------
    FormatError
        For an empty name.
    """
    with atomic_write(path, "w") as file:
        for logical, physical in names.items():
            if not logical or not physical:
                raise FormatError(f"{path}: model {logical!r} {physical!r}; expected no empty names")
            file.write(quote_name(logical) + (f" {quote_name(physical)}" if physical != logical else "") + "\n")


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    models = read_hmm_list(path)
    return [("logical", len(models)), ("physical", len(set(models.values())))]
