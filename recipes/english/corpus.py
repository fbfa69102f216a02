"""One corpus of two: speechocean762 and AN4, as a Kaldi data directory, with the speakers of each set."""

from dataclasses import dataclass
from pathlib import Path

from readers.common.files import write_lines
from readers.common.text import read_lines
from recipes.an4.corpus import find_sets
from recipes.speechocean.corpus import LISTS, Speechocean

NUM_DEV = 6  # of the 13 speakers of speechocean762's development set; the others are training speakers
OCEAN, AN4 = "so", "an4"  # begin the names of speakers and utterances
LICENCE = "Apache-2.0 and BSD-2-Clause, see NOTICE"
WEAKNESSES = (
    "few hours of speech: expect many errors in free speech, above all of native speakers",
    "words outside of its vocabulary; names",
    "several voices at once; music that is louder than the speech",
)


@dataclass(frozen=True)
class JoinedCorpus:
    """What was joined.

    dev, test: names of the speakers of these sets; all others are training speakers.
    num_speakers: of the training.
    data: a line for each corpus.
    ocean, ocean_dev: the part of speechocean762, and its speakers in the development set, as they are called there.
    """

    dev: tuple[str, ...]
    test: tuple[str, ...]
    num_speakers: int
    data: tuple[str, ...]
    ocean: Speechocean
    ocean_dev: tuple[str, ...]


def join_corpora(ocean: Path, an4: Path, out: Path) -> JoinedCorpus:
    """Write text, utt2spk and wav.scp of both corpora to a directory.

    AN4's test speakers are the test set, its development speakers and some of speechocean762 the development set.
    Of speechocean762 only the train half is used, if there are two.

    Raises FormatError, if one is not that corpus, and OSError.
    """
    corpus = Speechocean.find(ocean)
    half = Speechocean(corpus.root, corpus.train, None)
    tables = {name: half.table(name) for name in ("text", "utt2spk", "wav.scp")}
    rows = [
        (f"{OCEAN}-{name}", f"{OCEAN}-{tables['utt2spk'][name]}", half.root.resolve() / tables["wav.scp"][name], text)
        for name, text in tables["text"].items()
    ]
    ocean_speakers = {speaker for _, speaker, _, _ in rows}
    ocean_dev = tuple(read_lines(LISTS / "dev_speakers.txt")[:NUM_DEV])
    dev = [f"{OCEAN}-{speaker}" for speaker in ocean_dev]
    sets = find_sets(an4)
    speakers = {name: sorted({f"{AN4}-{each.speaker}" for each in sets[name]}) for name in sets}
    rows += [
        (f"{AN4}-{each.name}", f"{AN4}-{each.speaker}", each.audio.resolve(), " ".join(each.words))
        for name in sets
        for each in sets[name]
    ]
    rows.sort()
    write_lines(out / "text", (f"{name} {text}" for name, _, _, text in rows))
    write_lines(out / "utt2spk", (f"{name} {speaker}" for name, speaker, _, _ in rows))
    write_lines(out / "wav.scp", (f"{name} {audio}" for name, _, audio, _ in rows))
    num_ocean = len(ocean_speakers - set(dev))
    data = (
        f"speechocean762, train half: {num_ocean} speakers (Apache-2.0)",
        f"AN4, training set: {len(speakers['train'])} speakers (BSD-2-Clause)",
    )
    held_out = (*sorted(ocean_speakers & set(dev)), *speakers["dev"])
    num_speakers = num_ocean + len(speakers["train"])
    return JoinedCorpus(held_out, tuple(speakers["test"]), num_speakers, data, half, ocean_dev)
