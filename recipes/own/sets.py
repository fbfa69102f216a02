"""Divides a corpus into a training, a development and a test set: by speakers or, without them, by utterances.

The division depends on the names alone, not on their order or a seed, so that it stays when recordings are added.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from readers.common.text import read_lines
from readers.corpora.corpus import Utterance
from readers.errors import ConfigError, FormatError

SHARE, LARGEST_SHARE = 0.1, 0.2  # of the utterances: wanted and accepted in each of the two held-out sets


@dataclass(frozen=True)
class Sets:
    """A division of a corpus.

    train, dev, test: utterances in the order of their names.
    by: what was divided, in words, for the user.
    """

    train: tuple[Utterance, ...]
    dev: tuple[Utterance, ...]
    test: tuple[Utterance, ...]
    by: str

    def items(self) -> Iterable[tuple[str, tuple[Utterance, ...]]]:
        return (("train", self.train), ("dev", self.dev), ("test", self.test))


def read_names(text: str | None) -> list[str] | None:
    """Return the speakers that an option names: in a file, separated by blanks, or itself, separated by commas.

    Lines of the file that begin with # are comments.  Raises ConfigError if it names none.
    """
    if text is None:
        return None
    where = "command line"
    names = [name for name in text.split(",") if name]
    # Path.is_file raises OSError for more names than fit into the name of a file.
    if os.path.isfile(text):  # noqa: PTH113
        where = text
        names = [name for line in read_lines(text) if not line.startswith("#") for name in line.split()]
    if not names:
        raise ConfigError(f"{where}: no name of a speaker; expected some, or to leave out the option")
    return names


def divide(
    utterances: Sequence[Utterance], dev: Collection[str] | None = None, test: Collection[str] | None = None
) -> Sets:
    """Divide a corpus; dev and test: the speakers of these sets, None to choose a tenth of the utterances.

    Raises ConfigError for speakers that are not in the corpus or in both sets, FormatError if a set would be empty.
    """
    counts = Counter(utterance.speaker for utterance in utterances)
    speakers = sorted(counts)
    named = [*(dev or ()), *(test or ())]
    unknown = [name for name in named if name not in speakers]
    if unknown:
        shown = ", ".join(speakers[:5]) + (", ..." if len(speakers) > 5 else "")
        raise ConfigError(f"command line: speaker {unknown[0]!r} is not in the corpus; expected some of {shown}")
    twice = sorted(set(dev or ()) & set(test or ()))
    if twice:
        raise ConfigError(f"command line: speaker {twice[0]!r} in both sets; expected each in one")
    if test is None:
        test = _choose("test", counts, len(utterances), named, most=0.5 if dev is None else 1.0)
    if dev is None:
        dev = _choose("dev", counts, len(utterances), [*named, *test], most=1.0)
    if not test or not dev:
        if named:
            raise ConfigError(
                "command line: no other speaker has at most a fifth of the utterances, for a second set; expected both "
                "sets to be named"
            )
        return _by_utterance(utterances, len(speakers))
    if set(speakers) <= {*dev, *test}:
        raise ConfigError("command line: all speakers are held out; expected some for the training")
    of = dict.fromkeys(speakers, "train") | dict.fromkeys(dev, "dev") | dict.fromkeys(test, "test")
    by = f"{len(speakers) - len(set(dev)) - len(set(test))} speakers for training, {len(set(dev))} for development, "
    return _made({u.name: of[u.speaker] for u in utterances}, utterances, f"{by}{len(set(test))} for the test")


def _choose(which: str, counts: Mapping[str, int], total: int, exclude: Collection[str], most: float) -> list[str]:
    """Return speakers with about a tenth of the utterances, at most the part `most` of those that have few enough."""
    candidates = [name for name, count in counts.items() if name not in exclude and count <= LARGEST_SHARE * total]
    chosen: list[str] = []
    size = 0
    for name in sorted(candidates, key=lambda name: _order(which, name))[: int(most * len(candidates))]:
        if size >= SHARE * total:
            break
        if size + counts[name] <= LARGEST_SHARE * total:
            chosen.append(name)
            size += counts[name]
    return chosen


def _by_utterance(utterances: Sequence[Utterance], num_speakers: int) -> Sets:
    order = sorted(utterances, key=lambda utterance: _order("test", utterance.name))
    size = max(round(SHARE * len(order)), 1)
    set_names = ["test"] * size + ["dev"] * size
    of = {u.name: set_name for u, set_name in zip(order, [*set_names, *["train"] * len(order)])}
    source = "one speaker" if num_speakers == 1 else f"{num_speakers} speakers"
    return _made(
        of,
        utterances,
        f"only {source}: utterances are held out, and the word error rate is that of speakers known from the training",
    )


def _made(of: Mapping[str, str], utterances: Sequence[Utterance], by: str) -> Sets:
    sets = {name: tuple(u for u in utterances if of[u.name] == name) for name in ("train", "dev", "test")}
    for name, members in sets.items():
        if not members:
            raise FormatError(f"{len(utterances)} utterances: none for the {name} set; expected more of them")
    return Sets(**sets, by=by)


def _order(which: str, name: str) -> str:
    return hashlib.sha256(f"{which} {name}".encode()).hexdigest()
