"""ArrayReader: minibatches of arrays in memory.

    reader = ArrayReader({"features": frames, "labels": classes}, ArrayReaderOptions(frame_mode=False), seed=1)

`frames` is a list of arrays (num_frames, dim), one for each utterance, `classes` one of integers (num_frames,).  A
mapping of names to arrays names the utterances.  One array in place of a list is a single utterance: frames that are
independent of each other.  Order, context windows and minibatches are those of HTKMLFReader on the same data.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from readers.config.config import Config
from readers.config.feature_record import FeatureRecord
from readers.config.options import Options
from readers.config.options.declaration import text_of
from readers.config.values import did_you_mean
from readers.errors import ConfigError
from readers.htk.parameter_file import USER, HTKHeader
from readers.htk.units import TICKS_PER_FRAME
from readers.kaldi.ark import ArkEntry
from readers.minibatches.base import block_of
from readers.sources.arrays.options import ArrayFeatures, ArrayLabels, ArrayReaderOptions
from readers.sources.frames.frame_reader import FrameReader
from readers.sources.frames.frame_repetition import vectors_fault
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels

Utterances = npt.NDArray[Any] | Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]
SOURCE = "ArrayReader"  # in place of a file in messages
NO_OPTIONS: Mapping[str, Options] = MappingProxyType({})


@dataclass(eq=False)
class ArrayStream(CorpusFeatures):
    """Numbers of all utterances: by key, (T, native_dim)."""

    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def _read_header(self, entry: Any) -> HTKHeader:
        num_frames, dim = self.arrays[entry.key].shape
        return HTKHeader(num_frames, TICKS_PER_FRAME, 4 * dim, USER)

    def _read_record(self, entry: Any, header: HTKHeader) -> FeatureRecord:
        return FeatureRecord()

    def _read_frames(self, entry: Any) -> np.ndarray:
        return np.ascontiguousarray(self.arrays[entry.key], np.float32)


@dataclass(eq=False)
class ArrayClasses(CorpusLabels):
    """Classes of all utterances: by key, integers (T,)."""

    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def load(self, keys: Collection[str], on_fault: Any = None) -> None:
        """Do nothing: the classes are in memory."""

    def classes(self, entry: Any, period: int) -> np.ndarray:
        return self.arrays[entry.key]


class ArrayReader(FrameReader):
    """Minibatches of arrays in memory.

    Parameters
    ----------
    arrays : mapping of str to sequence or mapping of arrays, or to an array
        For each input of the network, by its name, the arrays of all utterances: numbers (num_frames, dim) of any real
        type, which the network gets as float32, or classes, integers (num_frames,), which it gets as one-hot columns.
        The first stream is one of numbers.
    options : ArrayReaderOptions
        Order, and whether frames or utterances are visited.
    streams : mapping of str to ArrayFeatures or ArrayLabels
        Context, number of classes and other options of the streams that need any, and of blocks for sequence criteria,
        such as ChainOptions.
    seed : int
        The order depends only on this seed and the number of the sweep.
    write : bool
        Whether only whole utterances are given, without classes: to compute outputs.

    Raises
    ------
    ConfigError
        For an array of another shape or type than expected, a value that is not finite, a class out of range, and
        streams with different utterances or numbers of frames; the message names the stream and the utterance.

    Notes
    -----
    The arrays should not change.  Memory holds copies of chunks of them, of up to `max_frames` frames; a single array
    is one chunk.
    """

    options_class = ArrayReaderOptions

    def __init__(
        self,
        arrays: Mapping[str, Utterances],
        options: ArrayReaderOptions = ArrayReaderOptions(),  # noqa: B008 (frozen)
        streams: Mapping[str, Options] = NO_OPTIONS,
        *,
        seed: int = 0,
        write: bool = False,
    ):
        _check_kinds(arrays, options, streams, seed)
        unknown = [name for name, options in streams.items() if name not in arrays and _is_stream(options)]
        if unknown:
            raise ConfigError(
                f"{SOURCE}: options of {unknown[0]}, which has no arrays; expected {' or '.join(arrays)}"
                f"{did_you_mean(unknown[0], arrays)}"
            )
        self._by_name = _aligned({name: _by_key(name, utterances) for name, utterances in arrays.items()})
        self._told = {name: chosen for name, chosen in streams.items() if name in arrays}
        inner_blocks = {name: chosen for name, chosen in streams.items() if name not in arrays}
        super().__init__(block_of(options, inner_blocks, SOURCE), seed, write)

    def find_streams(  # type: ignore[override]  # of an instance: its arrays
        self, config: Config, write: bool
    ) -> tuple[list[CorpusFeatures], list[CorpusLabels], list[str]]:
        features: list[CorpusFeatures] = []
        labels: list[CorpusLabels] = []
        for name, arrays in self._by_name.items():
            stream_options = self._told.get(name)
            if next(iter(arrays.values())).ndim == 1:
                labels.append(_classes(name, arrays, _options(name, stream_options, ArrayLabels)))
            else:
                features.append(_numbers(name, arrays, _options(name, stream_options, ArrayFeatures)))
                features[-1].ignores_mismatch = self.options.ignores_mismatch
        if not features or features[0].expand:
            raise ConfigError(f"{SOURCE}: no stream of numbers for each frame first; expected arrays (num_frames, dim)")
        if write:
            labels = []
        elif len(features) + len(labels) < 2 and not list(config.blocks()):
            raise ConfigError(f"{SOURCE}: one stream, {features[0].name}; expected another for training or test")
        _check_lengths(features, labels, self._by_name)
        return features, labels, []

    def input_files(self) -> list[str]:
        return [path for path in super().input_files() if path != SOURCE]


def _check_kinds(arrays: Any, options: Any, streams: Any, seed: Any) -> None:
    """Raise ConfigError for a parameter of another type than expected."""
    is_seed = isinstance(seed, Integral) and not isinstance(seed, bool) and int(seed) >= 0
    checks = (
        ("arrays", arrays, isinstance(arrays, Mapping), "a mapping of names to arrays"),
        ("options", options, isinstance(options, ArrayReaderOptions), "ArrayReaderOptions"),
        ("streams", streams, isinstance(streams, Mapping), "a mapping of names to options"),
        ("seed", seed, is_seed, "an integer of at least 0"),
    )
    for name, value, fine, expected in checks:
        if not fine:
            raise ConfigError(f"{SOURCE}: {name} is {text_of(value)}; expected {expected}")


def _is_stream(options: Options) -> bool:
    return isinstance(options, ArrayFeatures | ArrayLabels)


def _options(name: str, told: Options | None, kind: type[Any]) -> Any:
    """Return the options of a stream.  Raises ConfigError for those of another kind."""
    if told is not None and not isinstance(told, kind):
        arrays = "numbers (num_frames, dim)" if kind is ArrayFeatures else "classes, integers (num_frames,)"
        raise ConfigError(f"{SOURCE}: {name}: {type(told).__name__}; expected {kind.__name__}, for arrays of {arrays}")
    return told or kind()


def _by_key(name: str, utterances: Utterances) -> dict[str, np.ndarray]:
    """Return the arrays of a stream by the names of the utterances, after a check of their shapes and types."""
    several = utterances if isinstance(utterances, Mapping | list | tuple) else (utterances,)
    items = several.items() if isinstance(several, Mapping) else enumerate(several)
    arrays: dict[str, np.ndarray] = {}
    for key, values in items:
        if str(key) in arrays:
            raise ConfigError(f"{SOURCE}: {name}: two utterances named {key}; expected a name for each")
        try:
            arrays[str(key)] = np.asarray(values)
        except ValueError:
            raise _fault(name, str(key), "rows of different lengths", "an array") from None
    if not arrays:
        raise ConfigError(f"{SOURCE}: {name}: no utterances; expected at least one")
    model = next(iter(arrays.values()))
    shapes = "numbers (num_frames, dim) or classes, integers (num_frames,)"
    for key, array in arrays.items():
        classes = array.ndim == 1 and array.dtype.kind in "iu"
        numbers = array.ndim == 2 and array.dtype.kind in "iuf"
        if not (classes or numbers) or not array.size:
            raise _fault(name, key, f"{array.dtype} {array.shape}", shapes)
        if array.shape[1:] != model.shape[1:]:
            dims = ", ".join(("num_frames", *map(str, model.shape[1:])))
            raise _fault(name, key, f"{array.shape}", f"({dims}), as of the first utterance")
    return arrays


def _aligned(by_name: dict[str, dict[str, np.ndarray]]) -> dict[str, dict[str, np.ndarray]]:
    """Return the arrays of each stream in the order of the first.  Raises ConfigError for other utterances."""
    if not by_name:
        raise ConfigError(f"{SOURCE}: no arrays; expected some for each input of the network")
    first = next(iter(by_name))
    for name, arrays in by_name.items():
        if different := sorted(by_name[first].keys() ^ arrays.keys()):
            owner, lacking = (first, name) if different[0] in by_name[first] else (name, first)
            raise ConfigError(f"{SOURCE}: utterance {different[0]} of {owner}: none in {lacking}; expected it in both")
    return {name: {key: arrays[key] for key in by_name[first]} for name, arrays in by_name.items()}


def _fault(name: str, key: str, found: str, expected: str) -> ConfigError:
    return ConfigError(f"{SOURCE}: {name} of utterance {key}: {found}; expected {expected}")


def _entries(arrays: Mapping[str, np.ndarray]) -> list[ArkEntry]:
    return [ArkEntry(key, "", source_file=SOURCE, line=number) for number, key in enumerate(arrays, 1)]


def _numbers(name: str, arrays: Mapping[str, np.ndarray], told: ArrayFeatures) -> ArrayStream:
    for key, array in arrays.items():
        with np.errstate(over="ignore"):
            finite = np.isfinite(array.astype(np.float32, copy=False)).all(axis=1)
        if not finite.all():
            frame = int(np.argmin(finite))
            raise _fault(name, key, f"frame {frame} has a value that is infinite or NaN", "finite float32 numbers")
    dim = next(iter(arrays.values())).shape[1]
    before, after = told.context
    stream = ArrayStream(name, dim, _entries(arrays), SOURCE, SOURCE, (before, after), told.frames_per_vector)
    stream.arrays = arrays
    stream.masks = told.masks and replace(told.masks, where=SOURCE)
    return stream


def _classes(name: str, arrays: Mapping[str, np.ndarray], told: ArrayLabels) -> ArrayClasses:
    size = told.num_classes or int(max(array.max() for array in arrays.values())) + 1
    for key, array in arrays.items():
        if not 0 <= array.min() <= array.max() < size:
            frame = int(np.argmax((array < 0) | (array >= size)))
            raise _fault(name, key, f"class {array[frame]} of frame {frame}", f"0 to {size - 1}")
    return ArrayClasses(name, size, size, [SOURCE], SOURCE, SOURCE, None, arrays=arrays)


def _check_lengths(
    features: Sequence[CorpusFeatures], labels: Sequence[CorpusLabels], by_name: Mapping[str, Mapping[str, np.ndarray]]
) -> None:
    """Raise ConfigError unless all streams have as many frames of each utterance as the first."""
    first = features[0].name
    repeats = {stream.name: stream.frames_per_vector for stream in features}
    for name in (*repeats, *(stream.name for stream in labels)):
        size = repeats.get(name, 1)
        for key, array in by_name[name].items():
            num_frames = len(by_name[first][key])
            if size == 1 and len(array) != num_frames:
                raise _fault(name, key, f"{len(array)} frames", f"{num_frames}, as in {first}")
            if size != 1 and (fault := vectors_fault(len(array), size, num_frames)):
                raise ConfigError(f"{SOURCE}: {name} of utterance {key}: {fault}")
