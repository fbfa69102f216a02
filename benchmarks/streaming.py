"""Streams against whole utterances on AN4: whether the words agree, their delay, and the memory for an hour of audio.

    python -m benchmarks.streaming [exp/an4] [--hour]

uses the output of `argonaut recipe an4 --out exp/an4`.  Every test utterance passes through features, network and
search in blocks of 100 ms on one thread.  --hour: the test set is repeated in a file of one hour and decoded by
`argon --stream`, which finds the utterances by their pauses.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import ONE_THREAD

PIECE = 0.1  # seconds
HOUR = 3600.0


def main(argv: list[str] | None = None) -> int:
    """Print one line per figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("exp/an4"))
    parser.add_argument("--hour", action="store_true", help="one hour in one file, too")
    arguments = parser.parse_args(argv)
    if not (arguments.directory / "stages" / "tune.done").exists():
        print(f"streaming: {arguments.directory}: not there; run argonaut recipe an4 first", file=sys.stderr)
        return 2
    os.environ.update(ONE_THREAD)
    task = Task(arguments.directory)
    task.compare()
    if arguments.hour:
        task.hour()
    return 0


class Task:
    """Model, graph, options and utterances of a recipe's directory."""

    def __init__(self, directory: Path):
        from acoustic.scoring.scorer import AcousticScorer
        from decoder.scoring.words import read_words
        from features import FeatureConfig
        from readers.config.hcopy import read_hcopy_config
        from readers.htk.scp import read_pairs, read_scp
        from recipes.an4.recipe import WINDOW
        from recipes.decoding import open_decoder, read_choice

        self.directory, self.window = directory, WINDOW
        self.options = read_choice(directory / "tune" / "trained.json")
        self.decoder = open_decoder(directory / "graph" / "trained", directory / "lm" / "trained.arpa")
        self.decoder = self.decoder.with_options(**self.options)
        self.scorer = AcousticScorer(directory / "model" / "an4.dnn", window=WINDOW)
        self.config = FeatureConfig.from_hcopy(read_hcopy_config(directory / "config" / "plain.hcopy"))
        audio = {Path(target).name: source for source, target in read_pairs(directory / "lists" / "plain.hcopy.list")}
        entries = read_scp(directory / "lists" / "test.scp")
        self.features = {entry.key: entry.path for entry in entries}
        self.audio = {entry.key: audio[Path(entry.path).name] for entry in entries}
        self.references = read_words(directory / "labels" / "test.words.mlf")

    def compare(self) -> None:
        """Words of each stream against those of the whole utterance, and their delays."""
        from readers.audio.audio_file import read_audio
        from readers.htk.parameter_file import read_htk

        whole, streamed, delays, work, same = {}, {}, [], [], 0
        seconds = 0.0
        self.stream(*read_audio(next(iter(self.audio.values()))))  # kernels are loaded when they are first called
        for key, path in self.audio.items():
            result = self.decoder.decode(self.scorer.score(read_htk(self.features[key]).frames))
            samples, rate = read_audio(path)
            seconds += len(samples) / rate
            final, times, chunk_seconds = self.stream(samples, rate)
            whole[key], streamed[key] = result.text, [word.text for word in final.words]
            same += [(w.text, w.start, w.end) for w in result.words] == [
                (w.text, round(w.start * 100), round(w.end * 100)) for w in final.words
            ]
            delays += times
            work += chunk_seconds
        kind = "running mean of the features" if self.config.has("Z") else "features without the mean"
        print(f"streaming, {kind}: {same} of {len(whole)} utterances with the same words at the same times")
        print(f"WER {self.wer(whole)} whole, {self.wer(streamed)} streamed")
        print(f"delay of the newest frame: {self.delay(rate):.0f} ms of audio")
        print(
            f"a word is shown {quantiles(d for d, _ in delays)} after its end, stable {quantiles(d for _, d in delays)}"
        )
        print(
            f"work for {1000 * PIECE:.0f} ms of audio: {1000 * sum(work) / len(work):.2f} ms on average, "
            f"{1000 * max(work):.1f} ms at most; real-time factor {sum(work) / seconds:.4f}"
        )

    def recognition(self, rate: int):
        from acoustic.scoring.score_stream import ScoreStream
        from decoder.results.live_recognition import Recognition
        from features.streaming import FeatureStream

        features, scores = FeatureStream(self.config, rate), ScoreStream(self.scorer)
        return Recognition(self.decoder, [features, scores], features.period)

    def delay(self, rate: int) -> float:
        """The largest delay in milliseconds from the end of a frame's window to its score."""
        from acoustic.scoring.score_stream import ScoreStream
        from features.streaming import FeatureStream

        features = FeatureStream(self.config, rate)
        return (features.delay + ScoreStream(self.scorer).delay) * features.period / 10_000

    def stream(self, samples, rate: int):
        """(last event, delay of each word as (shown, stable), seconds of work per block).

        A delay is in seconds of audio after the end of the word.
        """
        recognition, size = self.recognition(rate), round(PIECE * rate)
        shown, work, heard = [], [], 0.0
        for begin in range(0, len(samples), size):
            started = time.perf_counter()
            events = recognition.push(samples[begin : begin + size])
            work.append(time.perf_counter() - started)
            heard = min(begin + size, len(samples)) / rate
            shown += [(heard, event) for event in events]
        started = time.perf_counter()
        events = recognition.finish()
        work[-1] += time.perf_counter() - started
        shown += [(heard, event) for event in events]
        final, times = events[-1], []
        for i, word in enumerate(final.words):
            same = [len(e.words) > i and e.words[i].text == word.text for _, e in shown]
            first = len(same) - next((k for k, ok in enumerate(reversed(same)) if not ok), len(same))
            stable = next(at for at, event in shown if event.num_stable > i)
            times.append((shown[first][0] - word.end, stable - word.end))
        return final, times, work

    def wer(self, hypotheses: dict) -> str:
        from decoder.scoring.error_counts import score

        total = score(self.references, hypotheses).total
        return f"{total.word_error_rate:.2f}%"

    def hour(self) -> None:
        """Decode a file of one hour by the command line, and assign the words to the utterances in it."""
        import numpy as np

        from decoder.recognizer.jobs.decoding.options import DecodeSearchOptions
        from decoder.scoring.error_counts import score
        from readers.audio.audio_file import read_audio, write_wav
        from readers.results.timed_words import read_ctm

        with tempfile.TemporaryDirectory() as folder:
            parts, places, at, k = [], [], 0, 0
            keys = list(self.audio)
            while at < HOUR * 16000:
                samples, rate = read_audio(self.audio[keys[k % len(keys)]])
                parts.append(samples)
                places.append((keys[k % len(keys)], at / rate, (at + len(samples)) / rate))
                at, k = at + len(samples), k + 1
            write_wav(f"{folder}/hour.wav", np.concatenate(parts), rate)
            del parts
            flags = DecodeSearchOptions(**self.options).to_flags()
            graph = self.directory / "graph" / "trained"
            command = [
                *(
                    sys.executable,
                    "-m",
                    "recipes.cli.argon.command",
                    "-graph",
                    graph / "graph.dg",
                    "-cntkmap",
                    graph / "cntkmap",
                ),
                *("-lm", self.directory / "lm" / "trained.arpa", "-am", self.directory / "model" / "an4.dnn"),
                *(
                    "-dnn_window_size",
                    str(self.window),
                    "--features",
                    self.directory / "config" / "plain.hcopy",
                    *flags,
                ),
                *("--stream", f"{folder}/hour.wav", "--words", f"{folder}/words.ctm", "--json", "--pause", "0.4"),
            ]
            closing, megabytes, faults = run_and_watch(list(map(str, command)))
            words = read_ctm(f"{folder}/words.ctm")["hour"]
        references, hypotheses = {}, {}
        for n, (key, start, end) in enumerate(places):
            references[f"{n}"] = self.references[key]
            hypotheses[f"{n}"] = [word.text for word in words if start <= (word.start + word.end) / 2 < end]
        total = score(references, hypotheses).total
        print(
            f"an hour: {at / rate:.0f} s of audio, {len(places)} utterances, {closing['utterances']} found; "
            f"WER {total.word_error_rate:.2f}%; {megabytes:.0f} MB; "
            f"real-time factor {closing['real_time_factor']}{faults}"
        )


def run_and_watch(command: list[str]) -> tuple[dict, float, str]:
    """(the last object that `argon --json` prints, its largest memory in MB, its first error message)."""
    peak, last = 0.0, "{}"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for number, line in enumerate(process.stdout):
            last = line
            if number % 100 == 0:  # of this process alone; resource.getrusage includes others
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak = max([peak, *(float(size) / 1024 for size in re.findall(r"VmHWM:\s+(\d+) kB", status))])
        faults = process.stderr.read().splitlines()
    return json.loads(last), peak, f"; {faults[0]}" if faults else ""


def quantiles(values) -> str:
    ordered = sorted(values)
    return (
        f"{1000 * ordered[len(ordered) // 2]:.0f} ms (median), {1000 * ordered[len(ordered) * 9 // 10]:.0f} ms (90 %)"
    )


if __name__ == "__main__":
    sys.exit(main())
