"""A process of the synthesiser: reads speakers from standard input and writes their files to the corpus.

It reads one JSON object (`out`, `speakers`) and prints one JSON line for each utterance, with its name and the reason
if it failed.  It is a separate process because eSpeak NG has global state; see `recipes.timit.synthesis.espeak`.
"""

import json
import sys
from pathlib import Path

import numpy as np

from readers.audio.audio_file import write_wav
from readers.errors import ArgonautError
from readers.tables.timit import Segment, write_segments, write_sentence
from recipes.timit.synthesis import DATA
from recipes.timit.synthesis.espeak import ESpeak
from recipes.timit.synthesis.phones import (
    EDGE_SILENCE,
    Phone,
    Table,
    add_epenthetic_silence,
    read_phone_table,
    timit_phones,
)
from recipes.timit.synthesis.sentences import words_of
from recipes.timit.synthesis.sound import resample, set_level
from recipes.timit.synthesis.speakers import Speaker

SAMPLE_RATE = 16000
EDGE_SECONDS = (0.10, 0.25)  # range of the silence before and after the speech
LEVELS = (900.0, 2500.0)  # range of the RMS of an utterance on the 16-bit scale


def main() -> None:
    task = json.load(sys.stdin)
    espeak = ESpeak()
    table = read_phone_table(DATA / "espeak-phones.txt")
    for values in task["speakers"]:
        speaker = Speaker.from_json(values)
        rng = np.random.default_rng(speaker.seed)
        for name, text in speaker.sentences:
            result = {"name": f"{speaker.directory}/{name}"}
            try:
                write_utterance(Path(task["out"]) / speaker.directory / name, speaker, text, espeak, table, rng)
            except (ArgonautError, OSError) as fault:
                result["reason"] = " ".join(str(fault).split())
            print(json.dumps(result), flush=True)


def write_utterance(
    stem: Path, speaker: Speaker, text: str, espeak: ESpeak, table: Table, rng: np.random.Generator
) -> None:
    """Write stem.WAV, .PHN, .WRD and .TXT."""
    spoken, sounds = espeak.speak(text, speaker.voice, speaker.rate, speaker.pitch, speaker.pitch_range)
    phones = timit_phones(sounds, spoken, espeak.sample_rate, table)
    phones = add_epenthetic_silence(phones, spoken, espeak.sample_rate, rng)
    lead, tail = (int(espeak.sample_rate * seconds) for seconds in rng.uniform(*EDGE_SECONDS, size=2))
    start, end = phones[0].start, phones[-1].end
    padded = np.concatenate([np.zeros(lead, np.int16), spoken[start:end], np.zeros(tail, np.int16)])
    ratio = espeak.sample_rate * speaker.tract / SAMPLE_RATE
    samples = resample(padded, ratio)
    samples = set_level(samples, rng.uniform(*LEVELS), speaker.snr, speaker.tilt, rng)

    phones = [phone._replace(start=phone.start - start + lead, end=phone.end - start + lead) for phone in phones]
    segments = phone_segments(phones, ratio, len(samples))
    write_segments(stem.with_suffix(".PHN"), segments)
    write_segments(stem.with_suffix(".WRD"), word_segments(phones, segments[1:-1], words_of(text)))
    write_sentence(stem.with_suffix(".TXT"), Segment(0, len(samples), text[0].upper() + text[1:] + "."))
    write_wav(stem.with_suffix(".WAV"), samples, SAMPLE_RATE)


def phone_segments(phones: list[Phone], ratio: float, num_samples: int) -> list[Segment]:
    """Return the phones in samples of the corpus, with h# at both ends, without gaps."""
    bounds = [round(phone.start / ratio) for phone in phones] + [round(phones[-1].end / ratio)]
    inner = [Segment(first, last, phone.name) for phone, first, last in zip(phones, bounds[:-1], bounds[1:])]
    return [Segment(0, bounds[0], EDGE_SILENCE), *inner, Segment(bounds[-1], num_samples, EDGE_SILENCE)]


def word_segments(phones: list[Phone], segments: list[Segment], words: list[str]) -> list[Segment]:
    """Return each word from its first to its last phone; phones and segments are parallel."""
    spans: dict[int, Segment] = {}
    for phone, segment in zip(phones, segments):
        if phone.word >= 0:
            first = spans.get(phone.word, segment)
            spans[phone.word] = Segment(first.start, segment.end, words[phone.word])
    return [spans[word] for word in sorted(spans)]


if __name__ == "__main__":
    main()
