"""Finds AN4's utterances with their files, and chooses the sets.

The directory is as CMU publishes it: wav/, with SPHERE files, and etc/.  The audio may also be FLAC or WAV, and there
may be align/: an HTK state alignment of the training set, the list of its states and the dictionary of its phones.
The sets are those of the corpus, except that a few training speakers form a development set (the corpus has none).
"""

from dataclasses import dataclass
from pathlib import Path

from readers.common.text import filled_lines, read_lines
from readers.errors import FormatError
from readers.results.trn import read_trn

DEV_SPEAKERS = Path(__file__).parent / "data" / "dev_speakers.txt"
DICTIONARY, STATES, ALIGNMENT = "align/an4.dict", "align/ci_states.list", "align/train.ci_states.mlf"
FLAT_LM = "etc/an4.lm"
FLAT_LMS = (FLAT_LM, "etc/an4.ug.lm")  # names in different packages of the corpus, some of which have none
SPHINX_DICTIONARY = "etc/an4.dic"  # in another phone set than the alignments
NEEDED = (
    "etc/an4_train.fileids", "etc/an4_train.transcription", "etc/an4_test.fileids", "etc/an4_test.transcription", "wav",
)  # fmt: skip
AUDIO = (".flac", ".sph", ".wav")


@dataclass(frozen=True)
class Utterance:
    """An utterance.  name: id in the corpus, such as an251-fash-b; words: its transcript."""

    name: str
    speaker: str
    audio: Path
    words: tuple[str, ...]


@dataclass(frozen=True)
class Alignment:
    """An alignment.  labels: MLF of states; states: list of their names; dictionary: of the corpus.

    is_given: whether it belongs to the corpus; else a flat start has to make it, and the dictionary is Sphinx's.
    """

    labels: Path
    states: Path
    dictionary: Path
    is_given: bool

    @classmethod
    def of(cls, data: Path, flat: Path) -> "Alignment":
        """Return the alignment of a corpus, or, if it has none, that of a flat start in the directory `flat`."""
        if (data / "align").exists():
            return cls(data / ALIGNMENT, data / STATES, data / DICTIONARY, True)
        return cls(flat / "states.mlf", flat / "states.list", data / SPHINX_DICTIONARY, False)


def corpus_of(data: Path | None) -> Path:
    """Return the directory of the corpus.  Raises FormatError for None."""
    if data is None:
        raise FormatError("recipe an4: no corpus; expected --data DIR with AN4's wav and etc")
    return data


def find_sets(data: Path) -> dict[str, list[Utterance]]:
    """Return the utterances of "train", "dev" and "test", in the order of the corpus.

    Raises FormatError, listing all that is missing, if `data` is not this corpus.
    """
    tables = (DICTIONARY, STATES, ALIGNMENT) if (data / "align").exists() else (SPHINX_DICTIONARY,)
    missing = [name for name in (*NEEDED, *tables) if not (data / name).exists()]
    if missing:
        raise FormatError(
            f"{data}: no {', '.join(missing)}; expected AN4 as CMU publishes it, with wav and etc; for another corpus "
            "run argonaut recipe own"
        )
    held_out = {name for line in read_lines(DEV_SPEAKERS) if not line.startswith("#") for name in line.split()}
    train_and_dev = _read_set(data, "train")
    return {
        "train": [utterance for utterance in train_and_dev if utterance.speaker not in held_out],
        "dev": [utterance for utterance in train_and_dev if utterance.speaker in held_out],
        "test": _read_set(data, "test"),
    }


def _read_set(data: Path, name: str) -> list[Utterance]:
    """Return the utterances of a list of files, with their transcripts."""
    list_file = data / f"etc/an4_{name}.fileids"
    transcription = data / f"etc/an4_{name}.transcription"
    transcripts = read_trn(transcription)
    utterances = []
    for where, name_of_file in filled_lines(list_file):
        path = Path(name_of_file)
        if path.name not in transcripts:
            raise FormatError(f"{where}: {path.name} is not in {transcription}; expected its transcript")
        places = [data / "wav" / path.with_name(path.name + extension) for extension in AUDIO]
        audio = next((candidate for candidate in places if candidate.exists()), places[0])
        utterances.append(Utterance(path.name, path.parent.name, audio, tuple(transcripts[path.name])))
    if not utterances:
        raise FormatError(f"{list_file}: no utterances; expected one per line")
    return utterances
