"""Simulated speech: state sequences of sentences, frames drawn for each state, and the network that scores them.

A senone is a point in space, the sum of contributions of its phone class, phone, state and neighbours; a frame is the
point of its true senone plus noise.  The noise of adjacent frames is correlated (NOISE_CORRELATION), and its level
varies slowly (LEVEL_DEVIATION, LEVEL_CORRELATION).  As with real models, whole phones and words are therefore
misrecognised, and likelihoods are overconfident.  The model knows the points and the average noise only: a linear layer
gives the log-likelihood of every senone.

The error level is the fraction of the frames in which another senone is more likely than the true one.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.scoring.scorer import AcousticScorer
from benchmarks.stress.donor import NUM_CLASSES, PHONES, SILENCE, SILENT_STATES, Senone, senones
from decoder.graph.phone_models import PhoneModels
from readers.htk.dictionary import Pronunciation
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.parameter_file import parse_kind, read_htk, write_htk
from readers.htk.scp import ScpEntry, read_scp, write_scp
from readers.htk.units import TICKS_PER_FRAME

DIMENSION = 32
NOISE_CORRELATION = 0.95  # correlation of the noise of adjacent frames
LEVEL_DEVIATION = 0.4  # standard deviation of the ln noise level
LEVEL_CORRELATION = 0.98  # correlation of the ln noise level of adjacent frames
PAUSE_PROBABILITY = 0.15  # probability of silence between two words
KINDS = (15, 21, 25, 29)  # vowels, stops and affricates, ...: ends of the classes in KIND_ORDER
KIND_ORDER = (
    "aa ae ah ao aw ay eh er ey ih iy ow oy uh uw b d g k p t ch jh m n ng l r w y dh f hh s sh th v z zh"
).split()
# Standard deviations of the contributions to a point, and of those of neighbours by position in the phone.
KIND_DEVIATION, PHONE_DEVIATION, STATE_DEVIATION, SILENCE_DEVIATION = 0.5, 0.3, 0.5, 1.2
LEFT_DEVIATION, RIGHT_DEVIATION = {2: 0.7, 3: 0.35, 4: 0.23}, {2: 0.23, 3: 0.35, 4: 0.7}
SAMPLE = 3000  # frames with which the noise level for an error level is estimated


@dataclass(frozen=True)
class Utterance:
    """An utterance.  phones: (name, frames); senones: number of the true senone of each frame."""

    name: str
    words: list[str]
    phones: list[tuple[str, int]]
    senones: np.ndarray


def make_points(rng: np.random.Generator) -> np.ndarray:
    """Return (DIMENSION, senones) in the order of the network's outputs: the leaves, then silence."""

    def directions(count: int) -> np.ndarray:
        return rng.standard_normal((count, DIMENSION))

    kind_of = {phone: int(np.searchsorted(KINDS, i, side="right")) for i, phone in enumerate(KIND_ORDER)}
    kinds, phones = directions(len(KINDS) + 1), dict(zip(PHONES, directions(len(PHONES))))
    places = {(phone, state): direction for phone in PHONES for state, direction in zip((2, 3, 4), directions(3))}
    left, right = directions(NUM_CLASSES), directions(NUM_CLASSES)

    def point(senone: Senone) -> np.ndarray:
        phone, state = senone.phone, senone.state
        own = KIND_DEVIATION * kinds[kind_of[phone]] + PHONE_DEVIATION * phones[phone]
        own = own + STATE_DEVIATION * places[phone, state]
        return own + LEFT_DEVIATION[state] * left[senone.left] + RIGHT_DEVIATION[state] * right[senone.right]

    silence = SILENCE_DEVIATION * directions(1) + 0.3 * directions(len(SILENT_STATES))
    return np.column_stack([*map(point, senones()), *silence])


class Speaker:
    """Speaks sentences: draws pronunciations by probability, silence at both ends and sometimes between words."""

    def __init__(self, dictionary: Sequence[Pronunciation], models: PhoneModels, outputs: Sequence[str]):
        self._models, self._number = models, {name: i for i, name in enumerate(outputs)}
        self._ways: dict[str, list[Pronunciation]] = {}
        for entry in dictionary:
            self._ways.setdefault(entry.word, []).append(entry)
        self._stay = {state: np.exp(ln_self) for state, (ln_self, _) in models.transitions.items()}

    def say(self, name: str, words: Sequence[str], rng: np.random.Generator) -> Utterance:
        phones = [SILENCE]
        for number, word in enumerate(words):
            if number and rng.random() < PAUSE_PROBABILITY:
                phones.append(SILENCE)
            ways = self._ways[word]
            weights = np.array([way.probability or 1.0 for way in ways])
            phones += ways[rng.choice(len(ways), p=weights / weights.sum())].phones
        phones.append(SILENCE)
        states, lengths = [], []
        for left, phone, right in zip([SILENCE, *phones], phones, [*phones[1:], SILENCE]):
            model = phone if phone == SILENCE else f"{left}-{phone}+{right}"
            states.append([self._number[state] for state in self._models.states[model]])
            lengths.append([rng.geometric(1 - self._stay[state]) for state in self._models.states[model]])
        true = np.repeat(np.concatenate(states), np.concatenate(lengths))
        return Utterance(name, list(words), list(zip(phones, map(sum, lengths))), true)


def draw_noise(num_frames: int, rng: np.random.Generator) -> np.ndarray:
    """Return the noise (num_frames, DIMENSION) of one utterance; the mean of its ln level is 0."""
    direction = _correlated(rng.standard_normal((num_frames, DIMENSION)), NOISE_CORRELATION)
    return direction * np.exp(LEVEL_DEVIATION * _correlated(rng.standard_normal((num_frames, 1)), LEVEL_CORRELATION))


def _correlated(fresh: np.ndarray, correlation: float) -> np.ndarray:
    """Return normal variables (T, n) whose adjacent rows are correlated; overwrites the given array."""
    fresh[1:] *= np.sqrt(1 - correlation**2)
    for last, row in itertools.pairwise(fresh):
        row += correlation * last
    return fresh


def noise_factor(error_level: float, points: np.ndarray, true: np.ndarray, noise: np.ndarray) -> float:
    """Return the factor of the noise for which that fraction of frames is wrong.

    true: (T,) senones; noise: (T, DIMENSION).  SAMPLE evenly spaced frames are used.
    """
    chosen = np.linspace(0, len(true) - 1, min(SAMPLE, len(true))).astype(int)
    true, noise = true[chosen], noise[chosen].T
    weights, bias = linear_layer(points, 1.0)  # the best senone does not depend on the scale
    clean, noisy = (weights @ points + bias).astype(np.float32)[:, true], (weights @ noise).astype(np.float32)
    low, high = 0.0, 20.0
    while high - low > 2e-3:
        factor = (low + high) / 2
        best = (clean + np.float32(factor) * noisy).argmax(axis=0)
        low, high = (low, factor) if np.mean(best != true) > error_level else (factor, high)
    return high


def linear_layer(points: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return W (senones, DIMENSION), b (senones, 1): W x + b is ln p(x | senone) up to a term common to all senones."""
    variance = noise**2
    return points.T / variance, -(points**2).sum(axis=0)[:, None] / (2 * variance)


def write_model(path: Path, points: np.ndarray, noise: float) -> None:
    """Write a network with the output ScaledLogLikelihood, the log posteriors for equal priors."""
    weights, bias = linear_layer(points, noise)
    network = Network()
    features = network.add("InputValue", "features", rows=DIMENSION)
    w = network.add("LearnableParameter", "W", rows=weights.shape[0], cols=DIMENSION)
    b = network.add("LearnableParameter", "b", rows=weights.shape[0], cols=1)
    network.set_value(w, np.asfortranarray(weights, np.float32))
    network.set_value(b, np.asfortranarray(bias, np.float32))
    scores = network.add("Plus", "scores", network.add("Times", "products", w, features), b)
    network.add("LogSoftmax", "ScaledLogLikelihood", scores)
    network.outputs = ["ScaledLogLikelihood"]
    network.features = ["features"]
    save_model(network, path)


def write_speech(
    out: Path, utterances: Sequence[Utterance], outputs: Sequence[str], frames: Iterable[np.ndarray]
) -> None:
    """Write out/features/*.htk, test.scp, words.mlf and states.mlf, the true states with phones.

    frames: (DIMENSION, T) float32 of each utterance.
    """
    entries = []
    for utterance, matrix in zip(utterances, frames):
        path = out / "features" / f"{utterance.name}.htk"
        write_htk(path, matrix, parse_kind("USER"))
        entries.append(ScpEntry(utterance.name, str(path), 0, matrix.shape[1] - 1))
    write_mlf(out / "words.mlf", [_words(utterance) for utterance in utterances])
    write_mlf(out / "states.mlf", [_states(utterance, outputs) for utterance in utterances])
    write_scp(out / "test.scp", entries)


def _words(utterance: Utterance) -> tuple[str, list[Label]]:
    return f"*/{utterance.name}.lab", [Label(None, None, word) for word in utterance.words]


def _states(utterance: Utterance, outputs: Sequence[str]) -> tuple[str, list[Label]]:
    true = utterance.senones
    begins = np.flatnonzero(np.diff(true, prepend=-1))
    phone_at = dict(zip(np.cumsum([0, *(frames for _, frames in utterance.phones)]).tolist(), utterance.phones))
    labels = []
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(true)]):
        aux = ((phone_at[begin][0], None),) if begin in phone_at else ()
        labels.append(Label(begin * TICKS_PER_FRAME, end * TICKS_PER_FRAME, outputs[true[begin]], None, aux))
    return f"*/{utterance.name}.lab", labels


def frame_errors(model: Path, speech: Path, outputs: Sequence[str]) -> float:
    """Return the fraction of write_speech's frames for which the model scores a wrong senone best."""
    scorer, true = AcousticScorer(model, window=1), read_mlf(speech / "states.mlf")
    wrong = total = 0
    places = {name: number for number, name in enumerate(outputs)}
    for entry in read_scp(speech / "test.scp"):
        best = scorer.score(read_htk(entry.path).frames).argmax(axis=0)
        states = [(places[label.name], (label.end - label.start) // TICKS_PER_FRAME) for label in true[entry.key]]
        wrong += int(np.sum(best != np.repeat(*np.array(states).T)))
        total += len(best)
    return wrong / total
