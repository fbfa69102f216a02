"""Finds AN4's utterances with their files, and chooses the sets.

The directory holds the corpus' own wav/ and etc/, the audio as FLAC, and align/: an HTK state alignment of the training
set, the list of its states and the dictionary of its phones.  The sets are those of the corpus, except that
a few training speakers form a development set (the corpus has none).
"""

from dataclasses import dataclass
from pathlib import Path

from readers.common.text import read_lines
from readers.errors import FormatError
from readers.results.trn import read_trn

DEV_SPEAKERS = Path(__file__).parent / "data" / "dev_speakers.txt"
DICTIONARY, STATES, ALIGNMENT = "align/an4.dict", "align/ci_states.list", "align/train.ci_states.mlf"
FLAT_LM = "etc/an4.lm"
NEEDED = (
    "etc/an4_train.fileids", "etc/an4_train.transcription", "etc/an4_test.fileids", "etc/an4_test.transcription",
    FLAT_LM, DICTIONARY, STATES, ALIGNMENT, "wav",
)  # fmt: skip


@dataclass(frozen=True)
class Utterance:
    """An utterance.  name: id in the corpus, such as an251-fash-b; words: its transcript."""

    name: str
    speaker: str
    audio: Path
    words: tuple[str, ...]


def find_sets(data: Path | None) -> dict[str, list[Utterance]]:
    """Return the utterances of "train", "dev" and "test", in the order of the corpus.

    Raises FormatError, listing all that is missing, if `data` is not this corpus.
    """
    if data is None:
        raise FormatError("recipe an4: no corpus; expected --data DIR with AN4's wav, etc and align")
    missing = [name for name in NEEDED if not (data / name).exists()]
    if missing:
        raise FormatError(f"{data}: no {', '.join(missing)}; expected AN4 with its HTK alignments")
    held_out = {name for line in read_lines(DEV_SPEAKERS) if not line.startswith("#") for name in line.split()}
    known = _read_set(data, "train")
    return {
        "train": [utterance for utterance in known if utterance.speaker not in held_out],
        "dev": [utterance for utterance in known if utterance.speaker in held_out],
        "test": _read_set(data, "test"),
    }


def _read_set(data: Path, name: str) -> list[Utterance]:
    """Return the utterances of a list of files, with their transcripts."""
    list_file, transcription = data / f"etc/an4_{name}.fileids", data / f"etc/an4_{name}.transcription"
    transcripts = read_trn(transcription)
    utterances = []
    for number, line in enumerate(read_lines(list_file), 1):
        if not line.strip():
            continue
        path = Path(line.strip())
        if path.name not in transcripts:
            raise FormatError(f"{list_file}:{number}: {path.name} is not in {transcription}; expected its transcript")
        audio = data / "wav" / path.with_name(path.name + ".flac")
        utterances.append(Utterance(path.name, path.parent.name, audio, tuple(transcripts[path.name])))
    if not utterances:
        raise FormatError(f"{list_file}: no utterances; expected one per line")
    return utterances
