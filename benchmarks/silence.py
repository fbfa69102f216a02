r"""Words before, between and after silence: what a mute, noise, a pause or another sentence in a file change.

    python -m benchmarks.silence exp/an4/an4.argo exp/an4/labels/test.words.mlf --list exp/an4/lists/plain.hcopy.list \
        [--every N] [--limit N] [--doors file,stream] [--room SECONDS]

Takes utterances with transcripts, as argonaut calibrate does, and prints for files and for streams
  the WER alone, and with zeros, room tone and faint noise of 0.3 to 10 s before, around and after;
  how many recordings without speech give words: zeros, room tone, white noise, tones, 2 to 60 s;
  the WER of pairs and triples joined with gaps of 0 to 3 s.
Room tone is the beginning of a recording (--room), mirrored.  Noise is white, on the scale of 16-bit integers.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

RATE = 16000
BLOCK = 1600  # samples that a stream is given at a time
SURROUNDED = [
    (kind, seconds, where)
    for kind in ("zeros", "room", "5", "30")
    for seconds, where in ((0.3, "before"), (1, "before"), (3, "around"), (10, "before"), (1.5, "after"), (3, "after"))
] + [("300", 1, "before")]
ALONE = [
    ("room", 2),
    ("zeros", 2),
    ("zeros", 60),
    ("5", 5),
    ("30", 5),
    ("100", 5),
    ("300", 5),
    ("300", 60),
    ("tone", 3),
]
GAPS = (0.0, 0.3, 1.0, 3.0)  # seconds
Hear = Callable[[np.ndarray], list[str]]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    from decoder import Recognizer

    parser = argparse.ArgumentParser(prog="python -m benchmarks.silence", description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("words", type=Path, metavar="MLF", help="words of the utterances")
    parser.add_argument("--list", type=Path, required=True, metavar="FILE", help="their audio: list of HCopy")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every N-th utterance (1)")
    parser.add_argument("--limit", type=int, default=65, metavar="N", help="utterances (65)")
    parser.add_argument("--room", type=float, default=0.15, metavar="X", help="seconds before speech begins (0.15)")
    parser.add_argument("--doors", default="file,stream", metavar="NAMES", help="file, stream or both")
    arguments = parser.parse_args(argv)
    utterances = read_utterances(arguments.words, arguments.list)[:: arguments.every][: arguments.limit]
    if not utterances:
        print(f"silence: {arguments.words}: no utterance of {arguments.list}; expected some", file=sys.stderr)
        return 2
    recognizer = Recognizer.load(arguments.bundle)
    doors: dict[str, Hear] = {"file": file_of(recognizer), "stream": stream_of(recognizer)}
    for door in arguments.doors.split(","):
        print(f"{door}, {len(utterances)} utterances, {sum(len(words) for _, words in utterances)} words")
        for line in report(doors[door], utterances, round(arguments.room * RATE)):
            print(f"  {line}", flush=True)
    return 0


def report(hear: Hear, utterances: list[tuple[np.ndarray, list[str]]], room: int) -> Iterator[str]:
    """Yield the lines of one door.  room: samples of a recording that are its room tone."""
    rng = np.random.default_rng(1)
    yield f"alone {error_rate(hear, utterances):.1f} %"
    for kind, seconds, where in SURROUNDED:
        padded = []
        for samples, words in utterances:
            silence = background(kind, round(seconds * RATE), samples[:room], rng)
            before = [silence] if where in ("before", "around") else []
            after = [silence] if where in ("after", "around") else []
            padded.append((np.concatenate([*before, samples, *after]), words))
        yield f"{kind} of {seconds} s {where} {error_rate(hear, padded):.1f} %"
    for kind, seconds in ALONE:
        some = utterances[:33] if seconds < 10 else utterances[:5]
        heard = sum(bool(hear(background(kind, seconds * RATE, samples[:room], rng))) for samples, _ in some)
        yield f"{kind} alone, {seconds} s: words in {heard} of {len(some)}"
    for number in (2, 3):
        for gap in GAPS:
            zeros = np.zeros(round(gap * RATE), np.int16)
            joined = []
            for begin in range(0, len(utterances) - number + 1, number):
                group = utterances[begin : begin + number]
                pieces = [piece for samples, _ in group for piece in (zeros, samples)][1:]
                joined.append((np.concatenate(pieces), [word for _, words in group for word in words]))
            yield f"{number} with gaps of {gap} s {error_rate(hear, joined):.1f} %"


def read_utterances(mlf: Path, audio: Path) -> list[tuple[np.ndarray, list[str]]]:
    """Return samples and words of the utterances in a list of HCopy that have words, in the order of the list."""
    import soundfile

    from readers.htk.mlf import read_mlf
    from readers.htk.scp import read_pairs

    labels, utterances = read_mlf(mlf), []
    for source, target in read_pairs(audio):
        entry = labels.lookup(f"{Path(target).stem}.lab")
        if entry is not None:
            utterances.append((soundfile.read(source, dtype="int16")[0], [label.name for label in entry]))
    return utterances


def background(kind: str, num_samples: int, room: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return samples without speech, int16.  kind: zeros, room (of the recording), tone, or the rms of white noise."""
    if kind == "zeros":
        return np.zeros(num_samples, np.int16)
    if kind == "room":
        return np.resize(np.concatenate([room, room[::-1]]), num_samples)
    if kind == "tone":
        frequency = rng.uniform(100, 3000)
        return np.rint(1000 * np.sin(2 * np.pi * frequency * np.arange(num_samples) / RATE)).astype(np.int16)
    return np.rint(float(kind) * rng.standard_normal(num_samples)).astype(np.int16)


def file_of(recognizer) -> Hear:
    """Return a function from the samples of a file to its words."""
    return lambda samples: recognizer.transcribe(samples, RATE).text.split()


def stream_of(recognizer) -> Hear:
    """Return a function from the samples of a stream to the words of all its utterances."""

    def hear(samples: np.ndarray) -> list[str]:
        stream = recognizer.stream(RATE)
        events = [event for i in range(0, len(samples), BLOCK) for event in stream.push(samples[i : i + BLOCK])]
        return [word.text for event in events + stream.finish() if event.is_final for word in event.words]

    return hear


def error_rate(hear: Hear, utterances: list[tuple[np.ndarray, list[str]]]) -> float:
    """Return the word error rate in percent."""
    from decoder.scoring.error_counts import score

    references = {str(i): words for i, (_, words) in enumerate(utterances)}
    hypotheses = {str(i): hear(samples) for i, (samples, _) in enumerate(utterances)}
    return score(references, hypotheses).total.word_error_rate


if __name__ == "__main__":
    sys.exit(main())
