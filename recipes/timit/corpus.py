"""Finding TIMIT's utterances on the disc (or in a corpus of the same layout) and choosing the sets.

The disc holds {TRAIN,TEST}/DRn/SPEAKER/UTTERANCE.{WAV,PHN,WRD,TXT}; copies differ in the case of the names.  As in the
usual setup the two dialect sentences (SA) that every speaker reads are left out, training is the rest of TRAIN (3,696
utterances), the development set 50 speakers of TEST (400) and the test set the 24 core speakers (192).
"""

from dataclasses import dataclass
from pathlib import Path

from readers.common.text import read_lines
from readers.errors import FormatError

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Utterance:
    """name: lower case, the directories joined by hyphens, e.g. test-dr1-faks0-si943."""

    name: str
    speaker: str
    audio: Path
    phones: Path

    @property
    def dialect(self) -> str:
        """The dialect region, dr1 to dr8."""
        return self.name.split("-")[1]


def find_sets(data: Path) -> dict[str, list[Utterance]]:
    """The utterances of "train", "dev" and "test", each in the order of their names.

    A corpus without the disc's speakers, such as a synthesised one, gives every other speaker of TEST to dev.
    Raises FormatError when a directory or a .PHN file is missing.
    """
    train, test = (_find(data, part) for part in ("train", "test"))
    core, dev = (read_speakers(DATA / f"{name}_speakers.txt") for name in ("core_test", "dev"))
    speakers = sorted({utterance.speaker for utterance in test})
    if not core & set(speakers):
        core, dev = set(speakers[::2]), set(speakers[1::2])
    return {
        "train": train,
        "dev": [utterance for utterance in test if utterance.speaker in dev],
        "test": [utterance for utterance in test if utterance.speaker in core],
    }


def read_speakers(path: Path) -> set[str]:
    """Speaker names separated by blanks; lines that begin with # are comments."""
    return {name for line in read_lines(path) if not line.startswith("#") for name in line.split()}


def _find(data: Path, part: str) -> list[Utterance]:
    directories = [path for path in sorted(data.iterdir()) if path.name.lower() == part] if data.is_dir() else []
    if not directories:
        raise FormatError(f"{data}: no {part.upper()} directory; expected TIMIT's TRAIN and TEST")
    utterances = []
    for audio in sorted(directories[0].glob("*/*/*")):
        # Some copies add a RIFF twin named SA1.WAV.wav; the one with a single suffix is the disc's own.
        if audio.suffix.lower() != ".wav" or "." in audio.stem or audio.stem.lower().startswith("sa"):
            continue
        phones = audio.with_suffix(".PHN" if audio.suffix.isupper() else ".phn")
        if not phones.is_file():
            raise FormatError(f"{phones}: missing; expected the phone labels of {audio.name} beside it")
        dialect, speaker = (name.lower() for name in audio.parts[-3:-1])
        utterances.append(Utterance(f"{part}-{dialect}-{speaker}-{audio.stem.lower()}", speaker, audio, phones))
    if not utterances:
        raise FormatError(f"{directories[0]}: no DRn/SPEAKER/*.WAV; expected TIMIT's utterances")
    return sorted(utterances, key=lambda utterance: utterance.name)
