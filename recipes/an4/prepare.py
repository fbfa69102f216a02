"""AN4's lists and labels in the formats of the commands."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from decoder.graph.transitions import estimate_transitions
from readers.common.files import write_content, write_lines
from readers.common.text import read_bytes
from readers.dictionaries.forms import read_any_dictionary
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation, read_dictionary, write_dictionary
from readers.htk.frame_labels import read_state_list
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.tables.hmm_tables import write_transitions
from recipes.an4.corpus import Alignment, Utterance

WARPS = (1.0, 0.92, 0.96, 1.04, 1.08)  # of the frequency axis; the training set is used with each of them


class Spoken(Protocol):
    """An utterance of any corpus."""

    @property
    def name(self) -> str: ...

    @property
    def words(self) -> Sequence[str] | None: ...


def warp_name(warp: float) -> str:
    """Return the feature directory of one warp, with which the names of its utterances begin."""
    return "plain" if warp == 1.0 else f"warp{round(100 * warp)}"


def write_warped_config(base: Path, warp: float, path: Path) -> None:
    write_content(path, base.read_text(encoding="utf-8") + ("" if warp == 1.0 else f"WARPFREQ = {warp}\n"))


def write_states(given: Alignment, train: list[Utterance], dev: list[Utterance], labels: Path, power: float) -> None:
    """Write states.list, states.mlf (the alignment, only states) and transitions.

    An entry `*/NAME.lab` also applies to the warped copies, whose names are NAME below a directory.
    power: exponent of the transition probabilities, which are counted in the training set; 0 makes them equal.
    Raises FormatError if an utterance has no alignment.
    """
    alignment = {key.rsplit("/", 1)[-1]: entry for key, entry in read_mlf(given.labels).items()}
    missing = [utterance.name for utterance in (*train, *dev) if utterance.name not in alignment]
    if missing:
        raise FormatError(
            f"{given.labels}: no {missing[0]} ({len(missing)} are missing); expected every training utterance"
        )
    states = read_state_list(given.states)
    write_lines(labels / "states.list", states)
    plain = {
        utterance.name: [Label(label.start, label.end, label.name) for label in alignment[utterance.name]]
        for utterance in (*train, *dev)
    }
    write_mlf(labels / "states.mlf", ((f"*/{name}.lab", entry) for name, entry in plain.items()))
    estimate = estimate_transitions({utterance.name: plain[utterance.name] for utterance in train}, states)
    flattened = {state: flatten(pair, power) for state, pair in estimate.transitions.items()}
    write_transitions(labels / "transitions", flattened)


def flatten(pair: tuple[float, float], power: float) -> tuple[float, float]:
    """Return ln of p^power and q^power, normalised to sum to 1, given ln p and ln q."""
    stay, go = (power * value for value in pair)
    total = math.log(math.exp(stay) + math.exp(go))
    return stay - total, go - total


def write_pronunciations(given: Alignment, path: Path) -> None:
    """Write the dictionary in HTK's format; phones of Sphinx in lower case, as in the questions of trees."""
    if given.is_given:
        write_content(path, read_bytes(given.dictionary))
        return
    entries = read_any_dictionary(given.dictionary, "cmu")
    lower = [entry._replace(phones=tuple(phone.lower() for phone in entry.phones)) for entry in entries]
    write_dictionary(path, [*lower, *(Pronunciation(mark, "", None, ("sil",)) for mark in ("<s>", "</s>"))])


def count_flat_states(dictionary: Path, utterances: list[Utterance]) -> int:
    """Return the number of states of a flat start: three of each phone of the words, and of silence."""
    spoken = {word for utterance in utterances for word in utterance.words}
    entries = read_any_dictionary(dictionary, "cmu")
    return 3 * (1 + len({phone for entry in entries if entry.word in spoken for phone in entry.phones}))


def write_words(utterances: Iterable[Spoken], path: Path) -> None:
    """Write the transcripts as an MLF without times, the reference for scoring."""
    write_mlf(path, ((f"*/{u.name}.lab", [Label(None, None, word) for word in u.words or ()]) for u in utterances))


def write_text(utterances: list[Utterance], path: Path) -> None:
    """Write the transcripts with one sentence per line, to train a language model."""
    write_lines(path, (" ".join(utterance.words) for utterance in utterances))


def write_all_words(dictionary: Path, path: Path) -> None:
    """Write one sentence with each word of a dictionary once: the text of a flat unigram."""
    words = dict.fromkeys(entry.word for entry in read_dictionary(dictionary))
    write_lines(path, [" ".join(word for word in words if word not in ("<s>", "</s>"))])
