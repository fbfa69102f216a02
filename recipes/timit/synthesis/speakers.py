"""The speakers of a synthesised corpus and their sentences, determined only by size and seed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from readers.common.text import read_rows
from readers.errors import ConfigError, FormatError
from readers.language.grammars.expression import Expression
from recipes.timit.synthesis.sentences import make_sentence

NUM_DIALECTS = 8  # TIMIT's DR1 to DR8
NEW_YORK = 6  # DR6 is New York City, the only region for which eSpeak has an accent
NUM_COMPACT, NUM_DIVERSE = 5, 3  # SX and SI sentences per speaker, in addition to two SA sentences
FIRST_COMPACT, FIRST_DIVERSE = 3, 453  # TIMIT numbers its sentences SX3 to SX452 and SI453 to SI2342
COMPACT_POOL = {"TRAIN": 330, "TEST": 120}  # sentences of the two parts, each spoken by several speakers
TEST_VOICE_SHARE = 4  # every fourth voice speaks in TEST only


@dataclass(frozen=True)
class Size:
    """Numbers of speakers in the two parts."""

    train: int
    test: int


SIZES = {
    "tiny": Size(3, 2),  # for tests: 40 utterances, without SA sentences
    "demo": Size(40, 16),
    "full": Size(462, 48),  # TIMIT's training speakers, and as many for development and test as its core test set has
}


@dataclass(frozen=True)
class Speaker:
    """A speaker and the speaker's utterances.

    name: as in TIMIT: sex, three letters, a digit.
    rate: words per minute; pitch, pitch_range: 0 to 99.
    tract: factor on all frequencies, above 1 for a shorter vocal tract.
    snr: in dB; tilt: of the noise.
    sentences: (SA1 ..., text).
    """

    name: str
    part: str
    dialect: int
    voice: str
    rate: int
    pitch: int
    pitch_range: int
    tract: float
    snr: float
    tilt: float
    seed: int
    sentences: tuple[tuple[str, str], ...]

    @property
    def directory(self) -> str:
        return f"{self.part}/DR{self.dialect}/{self.name}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Speaker":
        return cls(**values | {"sentences": tuple(map(tuple, values["sentences"]))})


def read_voices(path: Path) -> list[tuple[str, str]]:
    """Return (variant, sex f or m) of every voice; raises FormatError, with file and line, for malformed lines."""
    voices = []
    for where, fields in read_rows(path, comment="#"):
        if len(fields) != 2 or fields[1] not in ("f", "m"):
            raise FormatError(f"{where}: {' '.join(fields)!r}; expected a voice and its sex, f or m")
        voices.append((fields[0], fields[1]))
    return voices


def plan_corpus(
    size: str, seed: int, voices: list[tuple[str, str]], grammar: Mapping[str, Expression]
) -> list[Speaker]:
    """Return all speakers of a corpus; the two parts share neither voices nor sentences, except SA1 and SA2."""
    if size not in SIZES:
        raise ConfigError(f"corpus size {size!r}: unknown; expected one of {', '.join(SIZES)}")
    rng = np.random.default_rng([seed, 0])
    shuffled = [voices[i] for i in rng.permutation(len(voices))]
    dialect_sentences = [("SA1", make_sentence(grammar, rng, "sa1")), ("SA2", make_sentence(grammar, rng, "sa2"))]
    names: set[str] = set()
    speakers: list[Speaker] = []
    first_compact = FIRST_COMPACT
    diverse = FIRST_DIVERSE
    for part, count in (("TRAIN", SIZES[size].train), ("TEST", SIZES[size].test)):
        compact = [make_sentence(grammar, rng) for _ in range(COMPACT_POOL[part])]
        for i in range(count):
            sex = "f" if i % 3 == 2 else "m"  # three in ten of TIMIT's speakers are women
            available = [name for j, (name, s) in enumerate(v for v in shuffled if v[1] == sex) if speaks_in(part, j)]
            chosen = [(NUM_COMPACT * i + j) % len(compact) for j in range(NUM_COMPACT)]
            sentences = [*dialect_sentences, *((f"SX{first_compact + j}", compact[j]) for j in chosen)]
            sentences += [(f"SI{diverse + j}", make_sentence(grammar, rng)) for j in range(NUM_DIVERSE)]
            diverse += NUM_DIVERSE
            dialect = 1 + i % NUM_DIALECTS
            speakers.append(
                Speaker(
                    name=new_name(sex, names, rng),
                    part=part,
                    dialect=dialect,
                    voice=("en-us-nyc+" if dialect == NEW_YORK else "en-us+") + available[(i // 3) % len(available)],
                    rate=int(rng.integers(140, 205)),
                    pitch=int(rng.integers(35, 66)),
                    pitch_range=int(rng.integers(30, 71)),
                    tract=round(float(rng.uniform(0.94, 1.06)), 4),
                    snr=round(float(rng.uniform(18, 38)), 2),
                    tilt=round(float(rng.uniform(0.0, 1.5)), 3),
                    seed=int(rng.integers(2**31)),
                    sentences=tuple(sentences),
                )
            )
        first_compact += len(compact)
    return speakers


def speaks_in(part: str, index: int) -> bool:
    """Whether the voice with this index belongs to the part."""
    return (index % TEST_VOICE_SHARE == 0) == (part == "TEST")


def new_name(sex: str, taken: set[str], rng: np.random.Generator) -> str:
    """Return an unused name such as FCJF0."""
    while True:
        name = sex.upper() + "".join(chr(ord("A") + int(letter)) for letter in rng.integers(26, size=3)) + "0"
        if name not in taken:
            taken.add(name)
            return name
