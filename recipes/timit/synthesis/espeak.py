"""eSpeak NG through ctypes: text to samples, with the times of phonemes and words.

The wheel espeakng-loader contains the library and its data.  eSpeak NG is GPL-3, so it is an optional dependency of the
demo, and only this module uses it.  Interface: eSpeak NG 1.52, src/include/espeak-ng/speak_lib.h.

eSpeak keeps the phase of its oscillators and noise between calls, even after terminating and initialising, so
reproducible speech requires a new process and the same sequence of calls.  It seeds its noise, which breathy voices
contain, with the time of day; therefore the seed is set here.
"""

import ctypes
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from readers.errors import ArgonautError

RETRIEVAL, SYNCHRONOUS_RETRIEVAL = 1, 2
PHONEME_EVENTS, DONT_EXIT = 0x0001, 0x8000
CHARS_UTF8, POSITION_CHARACTER = 1, 1
RATE, PITCH, RANGE = 1, 3, 4
EVENT_END, EVENT_WORD, EVENT_PHONEME = 0, 1, 7
STRESS_MARKS = "',%="
NOISE_SEED = 1
# Beginnings of words that eSpeak may merge with the previous word; in New York, hj loses its h without a trace.
MERGED_ONSETS = {"the": ("D",), "been": ("b",), "of": ("V", "@", "0"), "a": ("a", "@", "eI")}
MERGED_ONSETS |= dict.fromkeys(("hugh", "huge", "humid"), ("j",))


class Sound(NamedTuple):
    """A phoneme from sample `start` to `end`, exclusive; words are counted from 0.  Names of pauses begin with `_`."""

    name: str
    start: int
    end: int
    word: int


class _EventId(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),  # characters from 1
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _EventId),
    )


if TYPE_CHECKING:
    _Samples = ctypes._Pointer[ctypes.c_short]
    _Events = ctypes._Pointer[_Event]

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


class ESpeak:
    """The synthesiser.  There is one per process, because the library has global state."""

    def __init__(self) -> None:
        loader = load_wheel()
        self._library = ctypes.CDLL(loader.get_library_path())
        data = loader.get_data_path().encode()
        self.sample_rate = self._library.espeak_Initialize(SYNCHRONOUS_RETRIEVAL, 0, data, PHONEME_EVENTS | DONT_EXIT)
        if self.sample_rate <= 0:
            raise ArgonautError(f"{loader.get_data_path()}: eSpeak NG does not start; expected its voices there")
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(NOISE_SEED))
        self._pieces: list[np.ndarray] = []
        self._events: list[tuple[int, int, int, str]] = []
        self._callback = _Callback(self._collect)  # keeps the object alive: the library stores only its address
        self._library.espeak_SetSynthCallback(self._callback)

    def _collect(self, samples: "_Samples", count: int, events: "_Events") -> int:
        if samples and count > 0:
            self._pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
        i = 0
        while events[i].type != EVENT_END:
            event = events[i]
            if event.type in (EVENT_WORD, EVENT_PHONEME):
                name = event.id.string.decode("utf-8", "replace") if event.type == EVENT_PHONEME else ""
                self._events.append((event.type, event.sample, event.text_position, name))
            i += 1
        return 0

    def speak(self, text: str, voice: str, rate: int, pitch: int, pitch_range: int) -> tuple[np.ndarray, list[Sound]]:
        """Return samples (N,) int16 and the sounds that cover them.

        voice: `language+variant`; rate: words per minute, 80 to 450; pitch and pitch_range: 0 to 99, 50 is that of the
        voice. Raises ArgonautError for an unknown voice.
        """
        if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise ArgonautError(f"voice {voice}: unknown to eSpeak NG; expected language+variant, e.g. en-us+f1")
        for parameter, value in ((RATE, rate), (PITCH, pitch), (RANGE, pitch_range)):
            self._library.espeak_SetParameter(parameter, value, 0)
        self._pieces.clear()
        self._events.clear()
        raw = text.encode()
        status = self._library.espeak_Synth(raw, len(raw) + 1, 0, POSITION_CHARACTER, 0, CHARS_UTF8, None, None)
        if status != 0 or not self._pieces:
            raise ArgonautError(f"{text!r}: status {status} and no sound from eSpeak NG; expected speech")
        samples = np.concatenate(self._pieces)
        return samples, sounds_of(self._events, text, len(samples))


def sounds_of(events: list[tuple[int, int, int, str]], text: str, num_samples: int) -> list[Sound]:
    """Return the sounds of events (type, sample, position in the text from 1, name), except those of length 0.

    Raises ArgonautError if a word of the text has no sound of its own.
    """
    starts = []
    word = 0
    for kind, sample, position, name in events:
        if kind == EVENT_WORD:
            word = len(text[: position - 1].split())
        else:  # its position may be that of the previous text
            starts.append((sample, name.lstrip(STRESS_MARKS), word))
    ends = [start for start, _, _ in starts[1:]] + [num_samples]
    sounds = [Sound(name, start, end, word) for (start, name, word), end in zip(starts, ends) if end > start]
    return split_merged_words(sounds, text.split())


def split_merged_words(sounds: list[Sound], words: list[str]) -> list[Sound]:
    """Give a word its own sounds if eSpeak speaks it together with the previous word ("in the")."""
    voiced = [i for i, sound in enumerate(sounds) if not sound.name.startswith("_")]
    spoken = {sounds[i].word for i in voiced}
    for word, text in enumerate(words):
        if word in spoken:
            continue
        group = [i for i in voiced if sounds[i].word == word - 1]
        onset = [i for i in group[1:] if sounds[i].name.startswith(MERGED_ONSETS.get(text.strip(",.").lower(), "\0"))]
        if not onset:
            raise ArgonautError(f"{' '.join(words)!r}: {text!r} has no sound of its own; expected one")
        for i in group:
            if i >= onset[-1]:
                sounds[i] = sounds[i]._replace(word=word)
    return sounds


def load_wheel() -> ModuleType:
    try:
        import espeakng_loader
    except ImportError:
        raise ArgonautError(
            "espeakng_loader: not installed; expected the speech synthesiser; "
            "pip install '.[demo]' in the project's directory"
        ) from None
    return espeakng_loader
