"""A spectrogram above the words and phones of a text, coloured by how well they were pronounced."""

from pathlib import Path

from decoder.recognizer.jobs.pronunciation.result import Pronunciation
from readers.audio.audio_file import Channel, read_audio
from readers.audio.raw import RawFormat
from readers.results.expert_scores import MOST, MOST_OF_PHONES
from recipes.pictures.alignment import Interval, draw_alignment

BAD, MIDDLE, GOOD = (215, 80, 65), (246, 205, 97), (121, 184, 110)  # red, green and blue from 0 to 255


def colour_of(fraction: float) -> str:
    """Return the colour of a score, given as a fraction of the best: red at 0, yellow at a half, green at 1."""
    low, high = (BAD, MIDDLE) if fraction < 0.5 else (MIDDLE, GOOD)
    weight = 2 * min(max(fraction, 0.0), 1.0) - (fraction >= 0.5)
    return "#" + "".join(f"{round(first + weight * (last - first)):02x}" for first, last in zip(low, high))


def draw_pronunciation(
    pronunciation: Pronunciation,
    audio: str | Path,
    path: str | Path,
    channel: Channel = None,
    raw: RawFormat | None = None,
) -> None:
    """Write a PNG: the spectrogram of a recording, words and phones coloured by their scores, and what was said.

    Parameters
    ----------
    pronunciation : Pronunciation
    audio : str or Path
        The recording.
    path : str or Path
        PNG file.
    channel : int or "mix", optional
        Of a recording with several.
    raw : RawFormat, optional
        Of a recording without a header.
    """
    samples, rate = read_audio(audio, channel, raw, notes=[])
    words = pronunciation.words
    phones = pronunciation.phones
    tiers: dict[str, list[Interval]] = {
        "words": [(word.start, word.end, f"{word.text} {word.score:.1f}") for word in words],
        "phones": [(phone.start, phone.end, phone.text) for phone in phones],
        "said": [(phone.start, phone.end, phone.said or "-") for phone in phones if phone.said is not None],
    }
    colours = {
        "words": [colour_of(word.score / MOST) for word in words],
        "phones": [colour_of(phone.score / MOST_OF_PHONES) for phone in phones],
    }
    title = f"{pronunciation.text}: {pronunciation.score:.1f} of {MOST:g}"
    draw_alignment(samples, rate, tiers, path, title, colours)
