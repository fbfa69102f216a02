"""How well a long recording is aligned with a damaged transcript, on AN4.

    python -m benchmarks.long_alignment an4.argo AN4 [--set train|held-out] [--minutes 30] [--seed 1]

an4.argo is a bundle of the recipe an4, AN4 the directory of the corpus.  Utterances are joined to one recording, and 10
percent of the transcript's words are edited: a word is left out, replaced by another one, or inserted.  True times are
those of the corpus' HTK alignment for the training set; for the held-out speakers (development and test set), of whom
the model has heard nothing, those of a forced alignment of each utterance with its true transcript.

Prints how many of the words that are both in the damaged transcript and in the recording were found within 100 ms at
both ends, how many of the edits lie in a reported stretch, and how many undamaged words are in such a stretch.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory

import numpy as np

from decoder.alignment.long_recordings import LongAlignment
from decoder.recognizer import ForcedAligner
from readers.audio.audio_file import read_audio, write_wav
from readers.htk.mlf import read_mlf
from recipes.an4.corpus import ALIGNMENT, find_sets

RATE = 16000
TICKS = 1e7
WITHIN = 0.1  # seconds


@dataclass
class TrueWord:
    """A spoken word; position: its index in the damaged transcript, -1 if it is not there."""

    text: str
    start: float
    end: float
    position: int = -1


@dataclass
class Edit:
    """An edit of the transcript.

    first, last: words of the damaged transcript; begin, end: the spoken words that are not there.
    """

    kind: str
    first: int
    last: int
    begin: int
    end: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="bundle of the recipe an4")
    parser.add_argument("data", type=Path, metavar="AN4", help="directory of the corpus")
    parser.add_argument("--set", choices=("train", "held-out"), default="train")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--damage", type=float, default=0.1, help="share of the words that are edited")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="list what went wrong")
    arguments = parser.parse_args()
    aligner = ForcedAligner.load(arguments.bundle)
    samples, spoken = recording(aligner, arguments.data, arguments.set, arguments.minutes)
    vocabulary = sorted({word.text for word in spoken})
    transcript, edits = damaged(spoken, vocabulary, arguments.damage, np.random.default_rng(arguments.seed))
    with TemporaryDirectory() as folder:
        audio = Path(folder) / "recording.wav"
        write_wav(audio, samples, RATE)
        begun, cpu = time.perf_counter(), time.process_time()
        found = aligner.align_long(audio, transcript, threads=arguments.threads)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    report(found, spoken, transcript, edits, arguments.list)
    minutes = len(samples) / RATE / 60
    print(f"recording        {minutes:.1f} minutes, {len(spoken)} words; {len(transcript)} in the transcript")
    print(f"time             {seconds:.1f} s, {seconds / minutes / 60:.4f} x real time; {cpu:.1f} s of processor time")
    print(f"memory           {getrusage(RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def recording(aligner: ForcedAligner, data: Path, which: str, minutes: float) -> tuple[np.ndarray, list[TrueWord]]:
    """Return joined audio and its words with their true times."""
    sets = find_sets(data)
    if which == "train":
        known = {Path(name).name: labels for name, labels in read_mlf(data / ALIGNMENT).items()}
        utterances = [*sets["train"], *sets["dev"]]
    else:
        utterances = [*sets["dev"], *sets["test"]]
    parts, words, offset = [], [], 0.0
    for utterance in utterances:
        if offset >= 60 * minutes:
            break
        audio = read_audio(utterance.audio)[0]
        if which == "train":
            found = timed(known[utterance.name])
        else:
            aligned = aligner.align(utterance.audio, list(utterance.words)).words
            found = [(word.text, word.start, word.end) for word in aligned]
        words += [TrueWord(text, start + offset, end + offset) for text, start, end in found]
        parts.append(audio)
        offset += len(audio) / RATE
    return np.concatenate(parts), words


def timed(labels) -> list[tuple[str, float, float]]:
    """(word, start, end) in seconds of the words of a state alignment, without silence."""
    words = []
    inside = False
    for label in labels:
        phone = bool(label.aux) and label.aux[0][0]
        if len(label.aux) > 1:
            inside = label.aux[1][0] not in ("<s>", "</s>")
            if inside:
                words.append([label.aux[1][0], label.start / TICKS, label.end / TICKS])
        elif phone in ("sil", "sp"):
            inside = False
        if inside and not label.name.startswith(("sil", "sp[")):
            words[-1][2] = label.end / TICKS
    return [tuple(word) for word in words]


def damaged(spoken: list[TrueWord], vocabulary: list[str], share: float, rng) -> tuple[list[str], list[Edit]]:
    """Return a transcript with edits, and sets the positions of the true words."""
    transcript: list[str] = []
    edits: list[Edit] = []
    for number, word in enumerate(spoken):
        if rng.random() >= share:
            word.position = len(transcript)
            transcript.append(word.text)
            continue
        kind = ("deleted", "inserted", "replaced")[rng.integers(3)]
        first = len(transcript)
        if kind == "deleted":
            edits.append(Edit(kind, first, first, number, number + 1))
            continue
        other = word.text
        while other == word.text:
            other = vocabulary[rng.integers(len(vocabulary))]
        transcript.append(other)
        if kind == "inserted":
            edits.append(Edit(kind, first, first + 1, number, number))
            word.position = len(transcript)
            transcript.append(word.text)
        else:
            edits.append(Edit(kind, first, first + 1, number, number + 1))
    return transcript, edits


def widened(edit: Edit, edits: list[Edit], spoken: list[TrueWord], transcript: list[str]) -> Edit:
    """Return a deletion or insertion with all places where it gives the same transcript, as in `TWO TWO`.

    Adjacent edits of the kind count together: without EIGHT SIX, `EIGHT SIX EIGHT` is `EIGHT` in two ways.
    """
    if edit.kind == "replaced":
        return edit
    deleted = edit.kind == "deleted"
    names = [word.text for word in spoken] if deleted else transcript
    low, high = (edit.begin, edit.end) if deleted else (edit.first, edit.last)
    same = {one.begin if deleted else one.first for one in edits if one.kind == edit.kind}
    while low - 1 in same:
        low -= 1
    while high in same:
        high += 1
    size, first, last = high - low, low, high
    while first and names[first - 1] == names[first - 1 + size]:
        first -= 1
    while last < len(names) and names[last] == names[last - size]:
        last += 1
    if first == low and last == high:
        return edit
    return Edit(edit.kind, edit.first, edit.last, first, last) if deleted else Edit(edit.kind, first, last, 0, 0)


def report(found: LongAlignment, spoken: list[TrueWord], transcript: list[str], edits: list[Edit], show: bool) -> None:
    """Print the figures."""
    second = found.period / TICKS
    times = {word.position: word for word in found.words}
    true = [word for word in spoken if word.position >= 0]
    near = both = starts = ends = 0
    for word in true:
        got = times.get(word.position)
        if got is None:
            continue
        near += 1
        start, end = (abs(a * second - b) <= WITHIN + 1e-9 for a, b in ((got.start, word.start), (got.end, word.end)))
        starts, ends, both = starts + start, ends + end, both + (start and end)
        if show and not (start and end):
            print(f"late: {word} {got.start * second:.2f} {got.end * second:.2f}")
    named = 0
    for edit in (widened(one, edits, spoken, transcript) for one in edits):
        begin, end = spoken[edit.begin].start, spoken[max(edit.begin, edit.end - 1)].end
        inside = [
            one
            for one in found.damage
            if (
                edit.first <= one.first < one.last <= edit.last or one.first <= edit.first < edit.last <= one.last
                if edit.kind != "deleted"
                else one.recognised and one.start * second < end and one.end * second > begin
            )
        ]
        named += bool(inside)
        if show and not inside:
            print(f"not named: {edit} {begin:.2f}-{end:.2f} s {transcript[edit.first - 2 : edit.last + 2]}")
    wrong = {position for edit in edits for position in range(edit.first, edit.last)}
    blamed = {position for one in found.damage for position in range(one.first, one.last)}
    alarms = blamed - wrong
    if show:
        for one in found.damage:
            if not any(e.first - 1 <= one.last and one.first <= e.last + 1 for e in edits):
                print(f"alarm: {one}")
    print(f"true words       {len(true)}; found {near / len(true):.2%}")
    print(
        f"within 100 ms    {both / len(true):.2%} at both ends; "
        f"start {starts / len(true):.2%}, end {ends / len(true):.2%}"
    )
    print(f"damage           {len(edits)} edits, {named} named, {len(found.damage)} stretches reported")
    print(f"false alarms     {len(alarms)} of {len(true)} undamaged words are in a reported stretch")


if __name__ == "__main__":
    main()
