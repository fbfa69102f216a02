"""The map from an aligned utterance to the scores of its phones, words and sentence, in one file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from decoder.recognizer.jobs.pronunciation.measures import (
    NUM_SENTENCE,
    NUM_WORD,
    Measures,
    num_phone_features,
    phone_features,
    sentence_features,
    word_features,
)
from decoder.recognizer.jobs.pronunciation.score_map import ScoreMap
from readers.common.file_part import FilePart
from readers.errors import ModelError
from readers.results.expert_scores import MOST, MOST_OF_PHONES
from readers.tables.tensor_file import load_tensors, tensor_bytes

FORMAT, VERSION = "argonaut-pronunciation", 2  # 1: other scales of the posteriors of lattice-free networks
PHONES, WORDS, SENTENCE = "phones", "words", "sentence"
AGAIN = "fit it again with `argonaut pronounce --train`"


class Scores(NamedTuple):
    """The scores of an utterance.

    Attributes
    ----------
    phones : (n,) float64
        From 0 to 2.
    words : (N,) float64
        From 0 to 10.
    sentence : float
        From 0 to 10.
    """

    phones: np.ndarray
    words: np.ndarray
    sentence: float


@dataclass(frozen=True, eq=False)
class PronunciationModel:
    """Gives the scores that experts would give.

    Attributes
    ----------
    inventory : tuple of str
        The phones of the network, in the order of the posteriors.
    phones, words, sentence : ScoreMap
        From features, see measures.py; that of words takes the scores of their phones, that of the sentence both.
    about : dict
        What it was fitted to, and how well it does, for people.
    """

    inventory: tuple[str, ...]
    phones: ScoreMap
    words: ScoreMap
    sentence: ScoreMap
    about: dict[str, Any]

    def __call__(self, measures: Measures) -> Scores:
        """Return the scores of an utterance."""
        phones = self.phones(phone_features(measures))
        words = self.words(word_features(measures, phones))
        sentence = self.sentence(sentence_features(measures, phones, words))
        return Scores(
            np.clip(phones, 0.0, MOST_OF_PHONES), np.clip(words, 0.0, MOST), float(np.clip(sentence[0], 0.0, MOST))
        )

    def check(self, inventory: Sequence[str], where: str) -> None:
        """Raise ModelError for the phones of another network."""
        if tuple(inventory) != self.inventory:
            unshared = sorted(set(inventory) ^ set(self.inventory))
            differ = f", which differ in {', '.join(unshared[:5])}" if unshared else " in another order"
            raise ModelError(
                f"{where}: the map of pronunciation scores is for {len(self.inventory)} phones{differ}; expected the "
                f"{len(inventory)} of the acoustic model; {AGAIN}"
            )

    def as_bytes(self) -> bytes:
        """Return the content of the file."""
        metadata = {"format": FORMAT, "version": VERSION, "inventory": list(self.inventory), "about": self.about}
        maps = {PHONES: self.phones, WORDS: self.words, SENTENCE: self.sentence}
        return tensor_bytes({key: array for name in maps for key, array in maps[name].arrays(name).items()}, metadata)

    @classmethod
    def load(cls, path: str | Path | FilePart) -> Self:
        """Read a model.

        Parameters
        ----------
        path : str, Path or FilePart

        Returns
        -------
        PronunciationModel

        Raises
        ------
        ModelError
            For a damaged or foreign file.
        OSError
        """
        arrays, metadata = load_tensors(path)
        try:
            if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
                raise ModelError(f"format {metadata.get('format')!r} version {metadata.get('version')!r}")
            inventory = metadata.get("inventory")
            about = metadata.get("about")
            if not isinstance(inventory, list) or not all(isinstance(phone, str) for phone in inventory):
                raise ModelError(f"inventory {str(inventory)[:40]}")
            if not isinstance(about, dict) or len(json.dumps(about)) > 1 << 16:
                raise ModelError(f"about {str(about)[:40]}")
            sizes = {PHONES: num_phone_features(len(inventory)), WORDS: NUM_WORD, SENTENCE: NUM_SENTENCE}
            phones, words, sentence = (ScoreMap.of_arrays(arrays, name, size) for name, size in sizes.items())
        except ModelError as fault:
            raise ModelError(f"{path}: {fault}; expected a map of pronunciation scores; {AGAIN}") from fault
        return cls(tuple(inventory), phones, words, sentence, about)
