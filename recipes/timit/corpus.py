"""The utterances of TIMIT (or of a corpus with the same layout) and the choice of sets.

The disc has {TRAIN,TEST}/DRn/SPEAKER/UTTERANCE.{WAV,PHN,WRD,TXT}; copies differ in the case of the names.  As usual,
the two dialect sentences (SA) that every speaker reads are left out; the training set is the rest of TRAIN (3,696
utterances), the development set has 50 speakers of TEST (400), the test set the 24 core speakers (192).
"""

from dataclasses import dataclass
from pathlib import Path

from readers.common.text import read_lines
from readers.errors import FormatError
from readers.tables.timit import read_segments

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Utterance:
    """An utterance.  name: lower case, the directories joined by hyphens, such as test-dr1-faks0-si943."""

    name: str
    speaker: str
    audio: Path
    phones: Path

    @property
    def dialect(self) -> str:
        """The dialect region, dr1 to dr8."""
        return self.name.split("-")[1]

    @property
    def words(self) -> list[str]:
        """The words of the .WRD file beside the audio."""
        return [word.name for word in read_segments(self.phones.with_suffix(beside(self.audio, ".WRD")))]


def find_sets(data: Path) -> dict[str, list[Utterance]]:
    """Return the utterances of "train", "dev" and "test", each sorted by name.

    In a corpus without the speakers of the disc, such as a synthesised one, every other speaker of TEST belongs to dev.
    Raises FormatError for a missing directory or .PHN file.
    """
    train, test = (_find(data, part) for part in ("train", "test"))
    core, dev = (read_speakers(DATA / f"{name}_speakers.txt") for name in ("core_test", "dev"))
    speakers = sorted({utterance.speaker for utterance in test})
    if not core & set(speakers):
        core = set(speakers[::2])
        dev = set(speakers[1::2])
    return {
        "train": train,
        "dev": [utterance for utterance in test if utterance.speaker in dev],
        "test": [utterance for utterance in test if utterance.speaker in core],
    }


def beside(audio: Path, suffix: str) -> str:
    """Return a suffix in the case of that of the audio."""
    return suffix if audio.suffix.isupper() else suffix.lower()


def read_speakers(path: Path) -> set[str]:
    """Return speaker names separated by blanks; lines that begin with # are comments."""
    return {name for line in read_lines(path) if not line.startswith("#") for name in line.split()}


def _find(data: Path, part: str) -> list[Utterance]:
    directories = [path for path in sorted(data.iterdir()) if path.name.lower() == part] if data.is_dir() else []
    if not directories:
        raise FormatError(f"{data}: no {part.upper()} directory; expected TIMIT's TRAIN and TEST")
    utterances = []
    for audio in sorted(directories[0].glob("*/*/*")):
        # Some copies have an additional RIFF file SA1.WAV.wav; the file with a single suffix is the original.
        if audio.suffix.lower() != ".wav" or "." in audio.stem or audio.stem.lower().startswith("sa"):
            continue
        phones = audio.with_suffix(beside(audio, ".PHN"))
        if not phones.is_file():
            raise FormatError(f"{phones}: missing; expected the phone labels of {audio.name} beside it")
        dialect, speaker = (name.lower() for name in audio.parts[-3:-1])
        utterances.append(Utterance(f"{part}-{dialect}-{speaker}-{audio.stem.lower()}", speaker, audio, phones))
    if not utterances:
        raise FormatError(f"{directories[0]}: no DRn/SPEAKER/*.WAV; expected TIMIT's utterances")
    return sorted(utterances, key=lambda utterance: utterance.name)
