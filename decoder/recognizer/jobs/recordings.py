"""The recordings that a job is given: files, folders of them, and standard input."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from readers.common.audio_format import AUDIO_SUFFIXES, UNREADABLE_SUFFIXES
from readers.errors import ConfigError

STANDARD_INPUT, STDIN_NAME = "-", "stdin"
RAW_SUFFIXES = (".raw", ".pcm")  # in folders, if the format of raw samples is given


class RecordingFile(NamedTuple):
    """A recording to recognise.

    Attributes
    ----------
    name : str
        Of the file without extension, and without directories except those below a given folder.
    path : str
    """

    name: str
    path: str

    @property
    def where(self) -> str:
        """What it is called in messages."""
        return "standard input" if self.path == STANDARD_INPUT else self.path


def find_recordings(paths: Iterable[str], raw: bool = False) -> tuple[list[RecordingFile], list[str]]:
    """Find the recordings that some paths name.

    Parameters
    ----------
    paths : iterable of str
        Files, `-` for standard input, and folders, which are searched for audio files; hidden files are ignored.
    raw : bool
        Whether files of raw samples in folders count.

    Returns
    -------
    recordings : list of RecordingFile
    unread : list of str
        Files in folders that are audio of formats that cannot be read.

    Raises
    ------
    ConfigError
        For a folder without audio.
    """
    suffixes = (*AUDIO_SUFFIXES, *(RAW_SUFFIXES if raw else ()))
    recordings = []
    unread = []
    for path_text in paths:
        if not Path(path_text).is_dir():
            recordings.append(
                RecordingFile(STDIN_NAME if path_text == STANDARD_INPUT else Path(path_text).stem, path_text)
            )
            continue
        paths_below = [
            path for path in sorted(Path(path_text).rglob("*")) if not _is_hidden(path.relative_to(path_text))
        ]
        files = [path for path in paths_below if path.suffix.lower() in suffixes and path.is_file()]
        recordings += [
            RecordingFile(path.relative_to(path_text).with_suffix("").as_posix(), str(path)) for path in files
        ]
        unreadable = [
            str(path) for path in paths_below if path.suffix.lower() in UNREADABLE_SUFFIXES and path.is_file()
        ]
        if not files and not unreadable:
            raise ConfigError(f"{path_text}: no audio files; expected names that end in {', '.join(suffixes)}")
        unread += unreadable
    return recordings, unread


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def by_name(recordings: Iterable[RecordingFile]) -> dict[str, str]:
    """Return name -> path.  Raises ConfigError for two recordings of one name."""
    paths: dict[str, str] = {}
    for name, path in recordings:
        if name in paths:
            raise ConfigError(f"{path}: the same name as {paths[name]}; expected different names")
        paths[name] = path
    return paths
