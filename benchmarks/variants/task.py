"""What the variants need to know of a corpus."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.variants.lists import Item
from recipes.tuning import Grid


@dataclass(frozen=True)
class Decoding:
    """Inputs for decoding a set.  graph: directory of `argonaut graph`; lm: ARPA file; references: MLF of words."""

    graph: Path
    lm: Path
    references: Path


@dataclass(frozen=True)
class Task:
    """A corpus for the variants.

    config: file in config/.
    sets: function that returns the utterances of train, dev and test after the data stage.
    states: the state list.
    decoding: for dev and test.
    unit: WER or PER.
    data_stage: the stage of the recipe after which labels exist.
    fold: as in Development.
    fbank: feature files of the recipe, by utterance.
    """

    config: Path
    sets: Callable[[], Mapping[str, Sequence[Item]]]
    states: Path
    decoding: Mapping[str, Decoding]
    grid: Grid
    unit: str
    data_stage: str
    fold: Mapping[str, str | None] | None = None
    fbank: Callable[[str], Path] | None = None
