"""Words before, between and after silence: what a mute, noise, a pause or another sentence in a file change.

    python -m benchmarks.silence exp/an4/an4.argo --data AN4 [--set train|test] [--limit N] [--doors file,stream]

Takes every second utterance of a set, in the layout of AN4, and prints for files and for streams
  the WER alone, and with zeros, room tone and faint noise of 0.3 to 10 s before, around and after;
  how many recordings without speech give words: zeros, room tone, white noise, tones, 2 to 60 s;
  the WER of pairs and triples joined with gaps of 0 to 3 s.
Room tone is the first 150 ms of a recording, mirrored.  Noise is white, on the scale of 16-bit integers.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

RATE = 16000
BLOCK = 1600  # samples that a stream is given at a time
ROOM = 2400  # samples of a recording that are its room tone
SURROUNDED = [
    (kind, seconds, where)
    for kind in ("zeros", "room", "3", "30")
    for seconds, where in ((0.3, "before"), (1, "before"), (3, "around"), (10, "before"), (3, "after"))
] + [("300", 1, "before")]
ALONE = [
    ("room", 2),
    ("zeros", 2),
    ("zeros", 60),
    ("3", 5),
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
    parser.add_argument("--data", type=Path, required=True, metavar="AN4", help="directory of the corpus")
    parser.add_argument("--set", choices=("train", "test"), default="test")
    parser.add_argument("--limit", type=int, default=65, metavar="N", help="utterances (65)")
    parser.add_argument("--doors", default="file,stream", metavar="NAMES", help="file, stream or both")
    arguments = parser.parse_args(argv)
    utterances = read_utterances(arguments.data, arguments.set)[::2][: arguments.limit]
    if not utterances:
        print(f"silence: {arguments.data}: no utterances; expected AN4", file=sys.stderr)
        return 2
    recognizer = Recognizer.load(arguments.bundle)
    doors: dict[str, Hear] = {"file": file_of(recognizer), "stream": stream_of(recognizer)}
    for door in arguments.doors.split(","):
        print(f"{door}, {len(utterances)} utterances, {sum(len(words) for _, words in utterances)} words")
        for line in report(doors[door], utterances):
            print(f"  {line}", flush=True)
    return 0


def report(hear: Hear, utterances: list[tuple[np.ndarray, list[str]]]) -> Iterator[str]:
    """Yield the lines of one door."""
    rng = np.random.default_rng(1)
    yield f"alone {error_rate(hear, utterances):.1f} %"
    for kind, seconds, where in SURROUNDED:
        padded = []
        for samples, words in utterances:
            silence = background(kind, round(seconds * RATE), samples, rng)
            before = [silence] if where in ("before", "around") else []
            after = [silence] if where in ("after", "around") else []
            padded.append((np.concatenate([*before, samples, *after]), words))
        yield f"{kind} of {seconds} s {where} {error_rate(hear, padded):.1f} %"
    for kind, seconds in ALONE:
        some = utterances[:33] if seconds < 10 else utterances[:5]
        heard = sum(bool(hear(background(kind, seconds * RATE, samples, rng))) for samples, _ in some)
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


def read_utterances(data: Path, name: str) -> list[tuple[np.ndarray, list[str]]]:
    """Return samples and words of the utterances of a set."""
    import soundfile

    audio = {path.stem: path for path in (data / "wav").rglob("*.*")}
    utterances = []
    for line in (data / "etc" / f"an4_{name}.transcription").read_text().splitlines():
        *words, utterance = line.split()
        samples = soundfile.read(audio[utterance.strip("()")], dtype="int16")[0]
        utterances.append((samples, [word for word in words if word not in ("<s>", "</s>")]))
    return utterances


def background(kind: str, num_samples: int, samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return samples without speech, int16.  kind: zeros, room (of the recording), tone, or the rms of white noise."""
    if kind == "zeros":
        return np.zeros(num_samples, np.int16)
    if kind == "room":
        period = np.concatenate([samples[:ROOM], samples[:ROOM][::-1]])
        return np.resize(period, num_samples)
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
