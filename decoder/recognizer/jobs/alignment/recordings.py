"""The recordings of a corpus: audio files with their utterances, and where the results of each are written."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from readers.corpora.corpus import Corpus, Utterance
from readers.errors import ConfigError


@dataclass(frozen=True)
class Recording:
    """An audio file with its utterances.

    Parameters
    ----------
    name : str
        Where its results are, relative to the output directory and without extension, such as `speaker/recording`.
    audio : Path
    utterances : tuple of Utterance
        In the order of their beginnings.
    """

    name: str
    audio: Path
    utterances: tuple[Utterance, ...]


def recordings_of(corpus: Corpus, source: Path) -> list[Recording]:
    """Return the recordings of a corpus, in the order of their names.

    A recording has the name that its source gives it.  Without one, it is named after its audio file; the folders of
    these names are those of the files below `source` or, if some are elsewhere, below the deepest folder of all, with
    this folder if it has the name of their only speaker.  Raises ConfigError for files whose results would have the
    same name.
    """
    groups: dict[tuple[str, Path], list[Utterance]] = {}
    for utterance in corpus.utterances:
        audio = Path(os.path.abspath(utterance.audio))  # noqa: PTH100 (keeps links)
        groups.setdefault((utterance.recording, audio), []).append(utterance)
    files = {audio for recording, audio in groups if not recording}
    base = Path(os.path.abspath(source))  # noqa: PTH100
    base = base.parent if base in files else base
    if not all(audio.is_relative_to(base) for audio in files):
        base = Path(os.path.commonpath([audio.parent for audio in files]))
        base = base.parent if {utterance.speaker for utterance in corpus.utterances} == {base.name} else base
    recordings: dict[str, Recording] = {}
    for (recording, audio), utterances in groups.items():
        name = recording or audio.relative_to(base).with_suffix("").as_posix()
        if name in recordings:
            raise ConfigError(
                f"{audio}: the same name as {recordings[name].audio}, so that their results would lie in one file; "
                "expected different names of recordings: rename or remove one of them"
            )
        ordered = sorted(utterances, key=lambda utterance: (utterance.start, utterance.name))
        recordings[name] = Recording(name, utterances[0].audio, tuple(ordered))
    return [recordings[name] for name in sorted(recordings)]


def check_output(recordings: Iterable[Recording], out: Path) -> None:
    """Raise ConfigError for results that would lie beside their recordings, where TextGrids may be transcripts."""
    for recording in recordings:
        if (out / recording.name).parent.resolve() == recording.audio.parent.resolve():
            raise ConfigError(
                f"{out}: results would lie beside {recording.audio}, where TextGrids are transcripts; expected a "
                "directory without the recordings"
            )
