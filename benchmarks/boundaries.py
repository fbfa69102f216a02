"""How far the boundaries of alignments are from the exact times of a synthesiser, with and without fine times.

    python -m benchmarks.boundaries exp/demo [--voices 20] [--sentences 27] [--seed 0] [--out DIR]

exp/demo is what `argonaut recipe timit --out exp/demo --size demo` made.  Its network aligns new sentences of the
voices that the recipe keeps from the training, both as eSpeak NG speaks them and with noise 20 dB below.  Dictionary
and transcripts are of words; phones that the dictionary pronounces in another way than the synthesiser are missed
boundaries.  --model takes another bundle, or a directory of `argonaut flatstart`, with the dictionary --dict.

Prints for phones and words what `argonaut score --boundaries` does: of times on HTK's grid of frames; of these, moved
by half of window minus frame period; and of times between frames.  Intervals are by a bootstrap over speakers.
"""

import argparse
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from decoder.alignment import boundary_figures, compare_boundaries
from decoder.recognizer import ForcedAligner
from readers.dictionaries.phone_classes import is_pause
from readers.errors import ArgonautError
from readers.htk.mlf import Label
from readers.htk.units import TICKS_PER_SECOND
from readers.tables.timit import Segment, read_segments
from recipes.timit.prepare import TICKS_PER_SAMPLE
from recipes.timit.synthesis import DATA
from recipes.timit.synthesis.espeak import load_wheel
from recipes.timit.synthesis.sentences import make_sentence, read_grammar, words_of
from recipes.timit.synthesis.speakers import Speaker, plan_corpus, read_voices
from recipes.timit.synthesise import speak_batch

SNRS = {"clean": 80.0, "20 dB": 20.0}
WAYS = ("frames", "moved", "fine")
FIRST_SENTENCE = 9000  # above TIMIT's numbers


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boundaries", description=__doc__)
    parser.add_argument("recipe", type=Path, metavar="DIR", help="output of `argonaut recipe timit`, synthesised")
    parser.add_argument("--voices", type=int, default=20, help="voices that are not in the training (20)")
    parser.add_argument("--sentences", type=int, default=27, help="sentences of each voice; 27 are 1.5 minutes (27)")
    parser.add_argument("--seed", type=int, default=0, help="that of the recipe, which chooses the voices (0)")
    parser.add_argument("--model", type=Path, help="another bundle or flat start")
    parser.add_argument("--dict", type=Path, help="another dictionary")
    parser.add_argument("--out", type=Path, help="keep the speech here (default: a temporary directory)")
    arguments = parser.parse_args(argv)
    dictionary = arguments.dict or arguments.recipe / "words" / "words.dict"
    aligner = ForcedAligner.load(arguments.model or arguments.recipe / "timit.argo", dictionary)
    load_wheel()
    speakers = test_speakers(arguments.voices, arguments.sentences, arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        for name, snr in SNRS.items():
            out = (arguments.out or Path(temporary)) / name.replace(" ", "")
            for utterance, reason in speak_batch(out, [replace(speaker, snr=snr) for speaker in speakers]).items():
                if reason:
                    print(f"{utterance}: {reason}")
            measure(name, out, speakers, aligner)


def test_speakers(num_voices: int, num_sentences: int, seed: int) -> list[Speaker]:
    """Return a speaker of each voice that the training does not have, with new sentences."""
    grammar = read_grammar(DATA / "sentences.jsgf")
    rng = np.random.default_rng([seed, 1])
    of_voice: dict[str, Speaker] = {}
    for speaker in plan_corpus("full", seed, read_voices(DATA / "voices.txt"), grammar):
        if speaker.part == "TEST":
            of_voice.setdefault(speaker.voice.partition("+")[2], speaker)
    if len(of_voice) < num_voices:
        raise SystemExit(f"{num_voices} voices; expected at most {len(of_voice)}")
    numbers = range(FIRST_SENTENCE, FIRST_SENTENCE + num_sentences)
    return [
        replace(speaker, sentences=tuple((f"SI{number}", make_sentence(grammar, rng)) for number in numbers))
        for speaker in list(of_voice.values())[:num_voices]
    ]


def measure(name: str, out: Path, speakers: list[Speaker], aligner: ForcedAligner) -> None:
    """Align the speech of some speakers and print the figures of each way."""
    truth: dict[str, dict[str, list[Label]]] = defaultdict(dict)
    found: dict[tuple[str, str], dict[str, list[Label]]] = defaultdict(dict)
    seconds = 0.0
    num_lost = 0
    for speaker in speakers:
        for sentence, text in speaker.sentences:
            stem = out / speaker.directory / sentence
            key = f"{speaker.name}-{sentence}"
            try:
                for way in ("fine", "frames"):
                    aligner.times = way
                    aligned = aligner.align(stem.with_suffix(".WAV"), words_of(text))
                    found["phones", way][key] = labels_of(aligned.phones)
                    found["words", way][key] = labels_of(aligned.words)
            except (ArgonautError, FileNotFoundError) as fault:  # eSpeak NG cannot divide every sentence into words
                print(f"{key}: {fault}")
                num_lost += 1
                continue
            seconds += aligned.seconds
            for tier, suffix in (("phones", ".PHN"), ("words", ".WRD")):
                truth[tier][key] = labels_of(read_segments(stem.with_suffix(suffix)))
    delay = round(aligner.front_end.times(aligner.front_end.expected.rates[0]).delay)
    for tier in truth:
        found[tier, "moved"] = {
            key: [label._replace(start=label.start + delay, end=label.end + delay) for label in labels]
            for key, labels in found[tier, "frames"].items()
        }
    print(f"{name}: {len(speakers)} voices, {seconds / 60:.1f} minutes, {num_lost} utterances lost")
    print(f"{'':16}  mean          median    90 %   shift   20 ms      F1             missed")
    for tier in truth:
        for way in WAYS:
            comparison = compare_boundaries(truth[tier], found[tier, way], ignore={""}, rename=name_of)
            figures = boundary_figures(comparison, lambda key: key.partition("-")[0], unit=tier)
            part = figures.deviations
            low, high = figures.intervals["mean"]
            f1_low, f1_high = figures.intervals["f1"]
            print(
                f"{tier:8}{way:8}{part.mean:6.2f} [{low:.2f}, {high:.2f}] {part.median:6.2f} {part.percentile_90:6.1f} "
                f"{part.shift:+6.2f} {part.within[20]:6.1f}%  {figures.detection.f1:.3f} [{f1_low:.3f}, {f1_high:.3f}]"
                f" {part.num_missed}/{part.num_boundaries}",
                flush=True,
            )


def labels_of(parts) -> list[Label]:
    """Return segments in samples, or words in seconds, as labels."""
    if isinstance(parts[0], Segment):
        return [Label(part.start * TICKS_PER_SAMPLE, part.end * TICKS_PER_SAMPLE, part.name) for part in parts]
    times = [(round(part.start * TICKS_PER_SECOND), round(part.end * TICKS_PER_SECOND)) for part in parts]
    return [Label(*span, part.text.lower()) for span, part in zip(times, parts)]


def name_of(label: str) -> str:
    return "" if is_pause(label) else label.replace("ax-h", "axh")


if __name__ == "__main__":
    main()
