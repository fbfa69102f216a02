"""Acoustic models of CMU Sphinx: converted to mixtures for scoring, settings of features, and models of phones.

Features have the order and scale of HTK: c0 comes last and is larger by sqrt(2), and Sphinx's differences of frames are
not divided by their distance.  Means and variances are converted, so that the scores stay those of Sphinx up to a
constant.
"""

import itertools
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acoustic.scoring.mixture_scorer import MixtureModel, MixtureStream
from decoder.graph.phone_models import PhoneModels
from features import FeatureConfig, feature_record
from readers.common.arrays import Float32Array, Float64Array, Int64Array
from readers.common.faults import listed, naming
from readers.common.text import is_count, to_number
from readers.dictionaries.forms import read_any_dictionary
from readers.errors import ConfigError, FormatError
from readers.htk.dictionary import Pronunciation
from readers.htk.units import TICKS_PER_SECOND
from readers.tables.sphinx import (
    ModelDefinition,
    dumped_weights,
    read_definition,
    read_feature_parameters,
    read_gaussians,
    read_mixture_weights,
    read_sendump,
    read_transitions,
)
from readers.tables.sphinx.definition import POSITIONS, SILENCE
from readers.tables.sphinx.parameters import LOG_BASE, VARIANCE_FLOOR, WEIGHT_SHIFT

BEST = 4  # densities of a codebook that count, as in Sphinx
LIMIT = 96 * (1 << WEIGHT_SHIFT) * math.log(LOG_BASE)  # of a density below the best, where codebooks are shared
NUM_CEPSTRA = 13
SKIPPED = 1e-3  # probability of skips below which they are left out
FILLER_PROBABILITY = 1e-8  # of a noise, pocketsphinx's -fillprob, on the scale of its unweighted acoustic scores
QUALIFIERS = {"1s_c_d_dd": "D_A", "1s_c_d": "D", "1s_c": ""}  # -feat -> HTK's qualifiers
# Sphinx's defaults of parameters that are converted, and the only values that are taken of others.
DEFAULTS = {
    **{"samprate": "16000", "frate": "100", "wlen": "0.025625", "nfilt": "40", "lowerf": "133.33334"},
    **{"upperf": "6855.4976", "alpha": "0.97", "lifter": "0", "remove_noise": "no", "feat": "1s_c_d_dd"},
    **{"cmn": "batch", "transform": "legacy", "svspec": "", "model": ""},
}
ONLY = {
    **{"transform": ("dct",), "agc": ("none",), "varnorm": ("no",), "ncep": ("13",), "round_filters": ("yes",)},
    **{"unit_area": ("yes",), "doublebw": ("no",), "remove_dc": ("no",), "dither": ("no",), "warp_params": ("",)},
    "cmn": ("batch", "current", "live", "prior", "none"),
    **dict.fromkeys(("cmninit", "remove_silence", "vad_threshold")),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class SphinxModel:
    """A Sphinx model in our terms.

    Attributes
    ----------
    definition : ModelDefinition
    transitions : (matrices, S, S + 1) float64
    mixtures : MixtureModel
        Its classes are the senones, codebook by codebook.
    classes : (num_senones,) int64
        Class of each senone.
    settings : mapping of str to str
        A configuration of HCopy.
    sample_rate : int
    noises : list of Pronunciation
        The words of `noisedict` that are no silence, as +NOISE+, and are not printed; other words in brackets would be
        taken for states.
    where : str
    """

    definition: ModelDefinition
    transitions: Float64Array
    mixtures: MixtureModel
    classes: Int64Array
    settings: Mapping[str, str]
    sample_rate: int
    noises: Sequence[Pronunciation]
    where: str


def open_sphinx(directory: str | Path) -> SphinxModel:
    """Read the directory of a Sphinx model and convert it.

    Parameters
    ----------
    directory : str or Path
        With mdef, means, variances, transition_matrices, feat.params, and sendump or mixture_weights.

    Returns
    -------
    SphinxModel

    Raises
    ------
    FormatError
        For damaged files, and files that do not fit together.
    ConfigError
        For features of a kind that is not supported.
    OSError
    """
    directory = Path(directory)
    for name in ("feature_transform", "lda"):
        if (directory / name).exists():
            raise ConfigError(f"{directory / name}: a transform of the features; expected a model without one")
    parameters = DEFAULTS | read_feature_parameters(directory / "feat.params")
    with naming(f"{directory / 'feat.params'}"):
        rate, settings = hcopy_settings(parameters, f"{directory / 'feat.params'}")
        config = FeatureConfig.from_hcopy(settings)
    definition = read_definition(directory / "mdef")
    transitions = read_transitions(directory / "transition_matrices")
    if transitions.shape[1] != definition.senones.shape[1] or definition.matrices.max() >= len(transitions):
        raise FormatError(
            f"{directory}: {len(transitions)} matrices of {transitions.shape[1]} states in transition_matrices; "
            f"expected {definition.matrices.max() + 1} of {definition.senones.shape[1]}, as mdef has"
        )
    mixtures, classes = _mixtures(directory, definition, config, rate, parameters["svspec"])
    noises = [
        Pronunciation(f"+{entry.word.strip('[]<>+')}+", "", None, entry.phones)
        for entry in (read_any_dictionary(directory / "noisedict") if (directory / "noisedict").exists() else ())
        if set(entry.phones) != {SILENCE}
    ]
    return SphinxModel(definition, transitions, mixtures, classes, settings, rate, noises, f"{directory}")


def hcopy_settings(parameters: Mapping[str, str], where: str) -> tuple[int, dict[str, str]]:
    """Return the sample rate and the configuration of HCopy for parameters of Sphinx's features.

    Raises ConfigError for parameters that cannot be converted.
    """
    for name, value in parameters.items():
        values = ONLY.get(name, ()) if name in ONLY else None
        if name in ONLY and values is not None and value not in values:
            raise ConfigError(f"{where}: -{name} {value[:40]}; expected {' or '.join(values)}")
        if name not in ONLY and name not in DEFAULTS:
            raise ConfigError(f"{where}: -{name} {value[:40]} is not supported; expected one of {', '.join(DEFAULTS)}")
    numbers = {}
    for name in ("samprate", "frate", "wlen", "nfilt", "lowerf", "upperf", "alpha", "lifter"):
        try:
            numbers[name] = to_number(parameters[name])
        except ValueError:
            numbers[name] = math.nan
        if not 0 <= numbers[name] <= 1e6 or (name in ("samprate", "frate") and numbers[name] < 1):
            raise ConfigError(f"{where}: -{name} {parameters[name][:40]}; expected a number of at least 0")
    if numbers["upperf"] > numbers["samprate"] / 2:
        raise ConfigError(
            f"{where}: -upperf {numbers['upperf']:g}; expected at most half of -samprate {numbers['samprate']:g}"
        )
    if parameters["feat"] not in QUALIFIERS:
        raise ConfigError(f"{where}: -feat {parameters['feat'][:40]}; expected one of {', '.join(QUALIFIERS)}")
    qualifiers = ("0", QUALIFIERS[parameters["feat"]], "" if parameters["cmn"] == "none" else "Z")
    rate = numbers["samprate"]
    ticks = TICKS_PER_SECOND / rate
    return round(rate), {
        "TARGETKIND": "_".join(filter(None, ("MFCC", *qualifiers))),
        "TARGETRATE": f"{int(rate / numbers['frate'] + 0.5) * ticks:.10g}",
        "WINDOWSIZE": f"{int(numbers['wlen'] * rate + 0.5) * ticks:.10g}",
        "NUMCHANS": f"{numbers['nfilt']:g}",
        "LOFREQ": f"{numbers['lowerf']:.10g}",
        "HIFREQ": f"{numbers['upperf']:.10g}",
        "PREEMCOEF": f"{numbers['alpha']:.10g}",
        "CEPLIFTER": f"{numbers['lifter']:.10g}",
        **{"NUMCEPS": f"{NUM_CEPSTRA - 1}", "USEPOWER": "T", "SPHINX": "T", "SIMPLEDIFFS": "T"},
        **{"DELTAWINDOW": "2", "ACCWINDOW": "1"},
        "REMOVENOISE": "T" if parameters["remove_noise"] in ("yes", "true", "1") else "F",
    }


def _mixtures(
    directory: Path, definition: ModelDefinition, config: FeatureConfig, rate: int, spec: str
) -> tuple[MixtureModel, Int64Array]:
    """Return the mixtures of all senones, and the class of each.

    spec: the values of each stream, such as 0-12/13-25/26-38.
    """
    means = read_gaussians(directory / "means")
    variances = read_gaussians(directory / "variances")
    sendump = directory / "sendump"
    is_dumped = sendump.exists()
    weights = (
        dumped_weights(read_sendump(sendump)) if is_dumped else read_mixture_weights(directory / "mixture_weights")
    )
    shapes = [stream.shape for stream in means]
    num_codebooks, num_densities = shapes[0][:2]
    expected = (definition.num_senones, len(means), num_densities)
    if shapes != [stream.shape for stream in variances] or weights.shape != expected:
        raise FormatError(
            f"{directory}: means of {shapes}, variances of {[stream.shape for stream in variances]}, weights of "
            f"{weights.shape}; expected equal means and variances, and weights of {expected}"
        )
    owners: dict[int, np.ndarray] = {1: np.zeros(definition.num_senones)}
    owners[len(definition.phones)] = definition.phone_of_senones()
    owners[definition.num_senones] = np.arange(definition.num_senones)
    if num_codebooks not in owners:
        raise FormatError(f"{directory / 'means'}: {num_codebooks} codebooks; expected {', '.join(map(str, owners))}")
    codebooks = owners[num_codebooks].astype(np.int32)
    order = np.argsort(codebooks, kind="stable")
    streams: list[MixtureStream] = []
    for number, values in enumerate(_streams(spec, [shape[2] for shape in shapes], config.dim, f"{directory}")):
        scale = (
            np.where(values % NUM_CEPSTRA == 0, math.sqrt(2), 1.0) / np.array([1.0, 4.0, 8.0])[values // NUM_CEPSTRA]
        )
        rows = values // NUM_CEPSTRA * NUM_CEPSTRA + (values - 1) % NUM_CEPSTRA
        floored = np.maximum(variances[number].astype(np.float64), VARIANCE_FLOOR)
        # Sphinx's precisions are whole numbers of the logarithm of its base, rounded down, in en-us by up to 28 %.
        unit = math.log(LOG_BASE)
        precisions = np.floor(0.5 / floored / unit) * unit / scale**2
        streams.append(
            MixtureStream(
                rows.astype(np.int32),
                _densities_last(means[number] * scale),
                _densities_last(precisions),
                (-0.5 * np.log(2 * math.pi * floored).sum(axis=2)).astype(np.float32),
                np.ascontiguousarray(weights[order, number].T.astype(np.float32)),
            )
        )
    limit = math.inf if num_codebooks == definition.num_senones else LIMIT
    mixtures = MixtureModel(
        codebooks[order], streams, feature_record(config, (rate,)), config.dim, min(BEST, num_densities), limit
    )
    return mixtures, np.argsort(order)


def _densities_last(values: Float64Array) -> Float32Array:
    """Return values (C, D, w) as (C, w, D)."""
    return np.ascontiguousarray(values.transpose(0, 2, 1), np.float32)


def _streams(spec: str, widths: Sequence[int], dim: int, where: str) -> list[Int64Array]:
    """Return the values of each stream, counted as Sphinx does; spec: such as 0-12/13-25/26-38, or nothing."""
    parts = [part.split(",") for part in spec.split("/")] if spec else [[f"0-{dim - 1}"]]
    streams: list[Int64Array] = []
    for ranges in parts:
        limits = [(text.partition("-")[0], text.rpartition("-")[2]) for text in ranges]
        if not all(is_count(first) and is_count(last) and int(last) < dim for first, last in limits):
            raise ConfigError(f"{where}: -svspec {spec[:60]}; expected ranges of values below {dim}")
        streams.append(np.concatenate([np.arange(int(first), int(last) + 1) for first, last in limits]))
    if [len(stream) for stream in streams] != list(widths):
        raise FormatError(f"{where}: streams of {', '.join(map(str, widths))} values in means; expected -svspec {spec}")
    return streams


def phone_models(
    model: SphinxModel, dictionary: Sequence[Pronunciation]
) -> tuple[list[Pronunciation], PhoneModels, dict[str, int]]:
    """Return a dictionary whose phones tell their position in the word, the models that it needs, and their senones.

    A phone is named P_B at the begin of a word, P_E at its end, P_S if it is the only one, and P between.  Silence
    keeps its name, and other fillers, as +NSN+, are named =NSN=, since + stands before the right neighbour of a
    triphone; all of them are silence to their neighbours.  A triphone that the model lacks is the one of another
    position, or its phone without context.  Raises FormatError for phones that the model lacks, for names of phones
    that are not clear in these names, and for models with skips.
    """
    definition = model.definition
    known = {*definition.phones}
    lacking = dict.fromkeys(phone for entry in dictionary for phone in entry.phones if phone not in known)
    if lacking or SILENCE not in known:
        raise FormatError(f"{model.where}: no phone {listed(lacking or [SILENCE])}; expected those of the dictionary")
    finder = _Finder(model)
    entries = [entry._replace(phones=_positioned(entry.phones, definition.fillers)) for entry in dictionary]
    words = {
        positioned.phones
        for entry, positioned in zip(dictionary, entries)
        if not definition.fillers.intersection(entry.phones)
    }
    fillers = {_filler_name(phone) for phone in definition.fillers}
    begins = sorted({SILENCE, *fillers, *(phones[0] for phones in words if phones)})
    ends = sorted({SILENCE, *fillers, *(phones[-1] for phones in words if phones)})
    unclear = sorted({phone for phones in words for phone in phones if "-" in phone or "+" in phone})
    if unclear:
        raise FormatError(f"{model.where}: phone {listed(unclear)}; expected names without - and +, as of triphones")
    for phones in sorted(words):
        for at, phone in enumerate(phones):
            lefts = phones[at - 1 : at] if at else ends
            rights = phones[at + 1 : at + 2] or begins
            for left, right in itertools.product(lefts, rights):
                finder.add(left, phone, right)
    for phone in sorted(definition.fillers):
        finder.add_phone(phone)
    return entries, PhoneModels(finder.states, finder.transitions), finder.rows


def used_mixtures(model: SphinxModel, senones: Mapping[str, int]) -> tuple[MixtureModel, dict[str, int]]:
    """Return the mixtures of the senones of some states, and the class of each state; the words need no others."""
    used, numbers = np.unique(model.classes[list(senones.values())], return_inverse=True)
    return model.mixtures.of_classes(used), dict(zip(senones, numbers.tolist()))


def _positioned(phones: tuple[str, ...], fillers: Set[str]) -> tuple[str, ...]:
    """Return the names of the phones of a word, which are all fillers or none."""
    if not phones or not fillers.isdisjoint(phones):
        return tuple(map(_filler_name, phones))
    if len(phones) == 1:
        return (f"{phones[0]}_S",)
    return (f"{phones[0]}_B", *phones[1:-1], f"{phones[-1]}_E")


def _filler_name(phone: str) -> str:
    return phone.replace("+", "=")


class _Finder:
    """Collects the states of triphones of phones with positions."""

    def __init__(self, model: SphinxModel):
        definition = model.definition
        self.definition = definition
        self._places: dict[str, tuple[int, int]] = {}  # phone and position that a name stands for
        for phone, mark in itertools.product(definition.phones, POSITIONS):
            name = phone if mark == POSITIONS[0] else f"{phone}_{mark.upper()}"
            if name in self._places:
                raise FormatError(f"{model.where}: phone {name}; expected no names of others with _B, _E or _S")
            self._places[name] = definition.phones.index(phone), POSITIONS.index(mark)
        self.states: dict[str, tuple[str, ...]] = {}
        self.transitions: dict[str, tuple[float, float]] = {}
        self.rows: dict[str, int] = {}
        self._names: dict[tuple[int, int, int], str] = {}  # senone, matrix, place -> state
        keys = map(tuple, definition.triphones.tolist())
        self._models = {key: number for number, key in enumerate(keys, start=len(definition.phones))}
        stays = np.diagonal(model.transitions, axis1=1, axis2=2)
        steps = np.diagonal(model.transitions, 1, axis1=1, axis2=2)
        if np.any(stays + steps < 1 - SKIPPED):
            raise FormatError(f"{model.where}: transition_matrices with skips of states; expected none")
        if np.any(stays >= 1):
            raise FormatError(f"{model.where}: transition_matrices with a state that is never left; expected none")
        self._stays = stays

    def add(self, left: str, phone: str, right: str) -> None:
        """Add a triphone; the names have positions."""
        name = f"{left}-{phone}+{right}"
        if name not in self.states:
            centre, position = self._places[phone]
            context = (centre, self._neighbour(left), self._neighbour(right))
            order = (position, *(other for other in range(len(POSITIONS)) if other != position))
            numbers = (self._models.get((*context, place)) for place in order)
            self._add(
                name, self.definition.phones[centre], next((number for number in numbers if number is not None), centre)
            )

    def _neighbour(self, name: str) -> int:
        """Return the phone that counts as the neighbour of another; fillers are silence, as in Sphinx."""
        return self._places.get(name, self._places[SILENCE])[0]

    def add_phone(self, phone: str) -> None:
        """Add a filler, which has no context."""
        self._add(_filler_name(phone), _filler_name(phone), self.definition.phones.index(phone))

    def _add(self, name: str, phone: str, model: int) -> None:
        matrix = int(self.definition.matrices[model])
        states: list[str] = []
        for place, senone in enumerate(self.definition.senones[model].tolist()):
            key = (senone, matrix, place)
            if key not in self._names:
                state = f"{phone}_{senone}"
                state += f"_{matrix}_{place}" if state in self.rows else ""
                self._names[key] = state
                self.rows[state] = senone
                stay = float(self._stays[matrix, place])
                self.transitions[state] = (math.log(stay) if stay > 0 else -math.inf, math.log1p(-stay))
            states.append(self._names[key])
        self.states[name] = tuple(states)
