"""Kaldi's configuration files, with an option `--name=value` on each line, and what they say of a model."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

from readers.common.text import is_count, read_lines, to_number
from readers.errors import ConfigError, FormatError

_OPTION = re.compile(r"--([A-Za-z0-9_.\-]+)(?:=(.*))?")
MOST_SUBSAMPLING = 100  # frames
MOST_FRAMES = 10_000  # of windows and contexts


def read_options(path: str | Path) -> dict[str, str]:
    """Read a configuration file such as `mfcc.conf`.

    Parameters
    ----------
    path : path
        File with lines ``--name=value``; ``#`` begins a comment, and an option without a value is true.

    Returns
    -------
    dict of str to str
        Values by name, with hyphens instead of underscores; the last value counts.

    Raises
    ------
    FormatError
        With file and line, for any other line.
    OSError
    """
    lines = ((number, line.partition("#")[0].strip()) for number, line in enumerate(read_lines(path), 1))
    return dict(_option(path, number, text) for number, text in lines if text)


def read_arguments(path: str | Path) -> dict[str, str]:
    """Read a file of options that scripts put on a command line, such as `cmvn_opts`, or a configuration file.

    Parameters
    ----------
    path : path
        File with ``--name=value``, separated by blanks; it may be empty or missing.  ``#`` begins a comment.

    Returns
    -------
    dict of str to str
        As of `read_options`.

    Raises
    ------
    FormatError
        With file and line, for anything else.
    OSError
    """
    lines = enumerate(read_lines(path) if Path(path).exists() else (), 1)
    return dict(_option(path, number, word) for number, line in lines for word in line.partition("#")[0].split())


def number_of(path: str | Path, name: str, text: str, most: float = 1e30) -> float:
    """Return the number that an option of a file has.

    Parameters
    ----------
    path : path
        For messages.
    name, text : str
        Of the option.
    most : float
        Largest absolute value.

    Returns
    -------
    float

    Raises
    ------
    ConfigError
        For another text, and for a number out of range.
    """
    try:
        number = to_number(text)
    except ValueError:
        number = math.nan
    if not abs(number) <= most:
        raise ConfigError(f"{path}: {name} is {text[:40]!r}; expected a number")
    return number


def numbers_of_frames(path: str | Path, options: Mapping[str, str], defaults: Mapping[str, int]) -> dict[str, int]:
    """Return numbers of frames among the options of a file.

    Parameters
    ----------
    path : path
        For messages.
    options : mapping of str to str
        As of `read_options`.
    defaults : mapping of str to int
        Those of the options that are sought.

    Returns
    -------
    dict of str to int

    Raises
    ------
    ConfigError
        For another value.
    """
    numbers = {}
    for name, default in defaults.items():
        text = options.get(name, f"{default}")
        if not is_count(text) or int(text) > MOST_FRAMES:
            raise ConfigError(f"{path}: {name} is {text[:40]!r}; expected a number from 0 to {MOST_FRAMES}")
        numbers[name] = int(text)
    return numbers


def read_numbers_of_frames(path: str | Path, defaults: Mapping[str, int]) -> dict[str, int]:
    """Read a file of numbers of frames alone, such as `splice_opts` and `delta_opts`.

    Parameters
    ----------
    path : path
        As of `read_arguments`; it may be missing.
    defaults : mapping of str to int
        Those of all options that the file may have.

    Returns
    -------
    dict of str to int

    Raises
    ------
    FormatError
        With file and line, for anything but options.
    ConfigError
        For another option or value.
    OSError
    """
    options = read_arguments(path)
    others = sorted(options.keys() - defaults.keys())
    if others:
        raise ConfigError(f"{path}: {others[0][:40]} is not supported; expected {' or '.join(defaults)}")
    return numbers_of_frames(path, options, defaults)


def _option(path: str | Path, number: int, text: str) -> tuple[str, str]:
    option = _OPTION.fullmatch(text)
    if option is None:
        raise FormatError(f"{path}:{number}: {text[:60]!r}; expected two hyphens, a name, = and a value")
    return option[1].replace("_", "-"), "true" if option[2] is None else option[2].strip()


def frame_subsampling(model: str | Path) -> int:
    """Return the frames for each column of scores of a model.

    Parameters
    ----------
    model : path
        A `final.mdl`.  The number is in `frame_subsampling_factor` beside it or, in directories of vosk, an option of
        `../conf/model.conf`.

    Returns
    -------
    int
        1 if no such file says more.

    Raises
    ------
    FormatError
        For a number out of range.
    OSError
    """
    factor = Path(model).parent / "frame_subsampling_factor"
    options = Path(model).parent.parent / "conf" / "model.conf"
    if factor.is_file():
        path = factor
        text = " ".join(line.strip() for line in read_lines(factor)).strip()
    elif options.is_file():
        path = options
        text = read_options(options).get("frame-subsampling-factor", "1")
    else:
        return 1
    if not is_count(text) or not 1 <= int(text) <= MOST_SUBSAMPLING:
        raise FormatError(f"{path}: frame subsampling by {text[:20]!r}; expected 1 to {MOST_SUBSAMPLING}")
    return int(text)
