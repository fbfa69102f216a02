"""Word error rates of a bundle on AN4's test set, as it is and as the world makes it.

    python -m benchmarks.conditions en AN4

AN4 is the directory of the corpus.  Each recording is recognised as it is, with 3 s of silence around it, with pink
noise 20 dB below its speech, at 8 kHz, and with all three; with the language model of the bundle, and with a grammar of
letters, numbers, dates and commands, which was written for AN4's training transcripts.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.rejection import LETTERS, NUMBERS
from decoder import Recognizer
from decoder.scoring import score
from features.augmentation.noises import coloured
from readers.audio.audio_file import read_audio
from readers.audio.resampling import resample
from recipes.an4.corpus import find_sets
from recipes.cli.console import run_guarded

SILENCE = 3.0  # seconds
NOISE = 20.0  # dB below the speech
GRAMMAR = f"""#JSGF V1.0;
grammar an4;
<letter> = {LETTERS};
<number> = {NUMBERS} | HUNDRED | THOUSAND | AND;
<month> = JANUARY | FEBRUARY | MARCH | APRIL | MAY | JUNE | JULY | AUGUST | SEPTEMBER | OCTOBER | NOVEMBER | DECEMBER;
<ordinal> = FIRST | SECOND | THIRD | FOURTH | FIFTH | SIXTH | SEVENTH | EIGHTH | NINTH | TENTH | ELEVENTH | TWELFTH |
    THIRTEENTH | FOURTEENTH | FIFTEENTH | SIXTEENTH | SEVENTEENTH | EIGHTEENTH | NINETEENTH | TWENTIETH | THIRTIETH;
<date> = <month> [TWENTY | THIRTY] (<ordinal> | <number>) <number>+;
<command> = YES | NO | GO | STOP | START | HELP | REPEAT | ENTER <number>+ | (ERASE | RUBOUT) <letter>+ <number>+;
public <sentence> = <letter>+ | <number>+ | <letter>+ <number>+ | <number>+ <letter>+ <number>* | <date> | <command>;
"""


def quiet(samples: np.ndarray, rate: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Add silence at both ends, with noise of one bit, as of a converter."""
    ends = rng.integers(-1, 2, (2, round(SILENCE * rate)))
    return np.concatenate([ends[0], samples, ends[1]]), rate


def noisy(samples: np.ndarray, rate: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Add pink noise."""
    pink = coloured(len(samples), 1.0, rng)
    ratio = np.mean(np.square(samples.astype(float))) / np.mean(np.square(pink))
    return samples + pink * np.sqrt(ratio * 10 ** (-NOISE / 10)), rate


def narrow(samples: np.ndarray, rate: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Resample to 8 kHz."""
    return resample(samples, rate, 8000), 8000


def all_three(samples: np.ndarray, rate: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    return narrow(*noisy(*quiet(samples, rate, rng), rng), rng)


Change = Callable[[np.ndarray, int, np.random.Generator], tuple[np.ndarray, int]]
CONDITIONS: dict[str, Change] = {
    "as it is": lambda samples, rate, rng: (samples, rate),
    f"{SILENCE:g} s of silence around it": quiet,
    f"pink noise {NOISE:g} dB below the speech": noisy,
    "8 kHz": narrow,
    "all three": all_three,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", metavar="BUNDLE", help="bundle, or its name")
    parser.add_argument("data", type=Path, metavar="AN4", help="directory of the corpus")
    sys.exit(run_guarded(measure, parser.parse_args()))


def measure(arguments: argparse.Namespace) -> int:
    utterances = find_sets(arguments.data)["test"]
    references = {utterance.name: utterance.words for utterance in utterances}
    recognizer = Recognizer.load(arguments.bundle).with_audio(upsample=True)  # of 8 kHz
    listeners = {"language model": recognizer, "grammar": recognizer.with_grammar(GRAMMAR, "jsgf")}
    for condition, change in CONDITIONS.items():
        for name, listener in listeners.items():
            found = {}
            for number, utterance in enumerate(utterances):
                samples, rate = change(*read_audio(utterance.audio), np.random.default_rng(number))
                samples = np.clip(np.rint(samples), -32768, 32767).astype(np.int16)
                found[utterance.name] = [word.text for word in listener.transcribe(samples, rate).words]
            total = score(references, found).total
            print(f"{condition:<36} {name:<16} WER {total.word_error_rate:5.1f} %", flush=True)
    return 0


if __name__ == "__main__":
    main()
