"""From audio to acoustic scores: features as in training, then the network."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from acoustic.scoring.score_stream import ChunkScores, ScoreStream
from acoustic.scoring.window_scorer import WindowScorer
from decoder.alignment.interpolation import FrameTimes
from decoder.results.live_recognition import StreamStage
from decoder.search.decoder import Decoder, DecodingResult
from decoder.search.search_stream import SearchStream
from features import FeatureConfig, FeatureStream, RunningMean, extract, feature_record, frame_period
from readers.config.feature_record import FeatureRecord
from readers.errors import ConfigError, ShapeError
from readers.htk.units import TICKS_PER_SECOND

if TYPE_CHECKING:
    from features.ivectors.adapted import AdaptedFeatures, AdaptedStream, ChunkStream
    from features.ivectors.model import IvectorModel

FULL_SCALE = 32768.0  # of 16-bit samples
MOST = 8.0  # largest floating-point sample that is taken as one of the scale -1 to 1


class FrontEnd:
    """Turns audio into scores of a network, and checks that its features are those of the training.

    Parameters
    ----------
    config : FeatureConfig
        How features are computed.
    scorer : WindowScorer
        The network.
    where : str
        What the configuration is called in messages.
    rate : float, optional
        Sample rate of the audio of the training in Hz, for a network that does not know it.
    on_mismatch : callable, optional
        Called with the message where features are not those of the training; by default, ConfigError is raised.
    ivectors : IvectorModel, optional
        For a network that takes i-vectors, which are estimated online.
    lowest_rate : float
        Sample rate in Hz from which audio of a lower rate than that of the training is accepted without being asked,
        because the network was trained on such audio, too.

    Raises
    ------
    ConfigError
        Unless the configuration gives features of the kind that the network was trained on, and the i-vectors are
        those that it takes.
    """

    def __init__(
        self,
        config: FeatureConfig,
        scorer: WindowScorer,
        where: str = "features",
        rate: float | None = None,
        on_mismatch: Callable[[str], None] | None = None,
        ivectors: "IvectorModel | None" = None,
    ):
        self.config = config
        self.lowest_rate = math.inf
        self.scorer = scorer
        self.where = where
        self._on_mismatch = on_mismatch or _refuse
        self.expected = scorer.record
        if rate is not None and not scorer.record.rates:
            self.expected = feature_record(config, (rate,)).updated(scorer.record)
        self._check(where, None)
        if config.dim != scorer.num_values:
            raise ConfigError(
                f"{where}: {config.target_kind} has {config.dim} values per frame; expected {scorer.num_values}, the "
                f"model's input divided by -dnn_window_size{scorer.window_hint(config.dim)}"
            )

        check_ivectors(scorer, ivectors, self._on_mismatch)
        self.ivectors = ivectors
        self._adapted = None if ivectors is None else _adapted(config, ivectors)
        self._follows_search = None if ivectors is None or ivectors.chunks is None else self._adapted

    def mismatch(self, where: str, rate: float | None = None) -> str | None:
        """Return a message if the features of audio with this sample rate are not those of the training, else None."""
        record = feature_record(self.config, () if rate is None else (rate,))
        return record.mismatch(where, self.expected, f"with which {self.scorer.source} was trained")

    def check_rate(self, rate: float, where: str) -> None:
        """Check that audio of this sample rate fits the model; otherwise call `on_mismatch`."""
        if not 0 < rate < math.inf:
            raise ConfigError(f"{where}: sample rate {rate}; expected a number of Hz above 0")
        self._check(where, rate)

    def target_rate(self, rate: float, where: str, upsample: bool = False) -> float:
        """Return the sample rate of `fitting_rate`, after the check of its features."""
        target = self.fitting_rate(rate, where, upsample)
        self.check_rate(target, where)
        return target

    def fitting_rate(self, rate: float, where: str, upsample: bool = False) -> float:
        """Return the sample rate to which audio is to be resampled: its own if it fits the model.

        Parameters
        ----------
        rate : float
            Sample rate of the audio in Hz.
        where : str
            Its name in messages.
        upsample : bool
            Whether it may be lower than that of the training.

        Returns
        -------
        float

        Raises
        ------
        ConfigError
            For a lower rate without `upsample`, unless it is at least `lowest_rate`.
        """
        if not 0 < rate < math.inf:
            raise ConfigError(f"{where}: sample rate {rate}; expected a number of Hz above 0")
        target = rate
        trained_rates = self.expected.rates
        period = self.config.source_rate
        if period and not trained_rates:
            trained_rates = (round(TICKS_PER_SECOND / period),)
        if trained_rates and rate not in trained_rates and not self.config.is_source_rate(rate):
            lower = [trained_rate for trained_rate in trained_rates if trained_rate < rate]
            if lower:
                target = max(lower)
            elif period or self.mismatch(where, rate) is not None:
                if not upsample and rate < self.lowest_rate:
                    lowest = min(*trained_rates, self.lowest_rate)
                    raise ConfigError(
                        f"{where}: sample rate {rate:g} Hz; expected at least {lowest:g} Hz, with which "
                        f"{self.scorer.source} was trained; the option upsample accepts audio "
                        "without the upper frequencies"
                    )
                target = min(trained_rates)
        return target

    def _check(self, where: str, rate: float | None) -> None:
        fault = self.mismatch(where, rate)
        if fault is not None:
            self._on_mismatch(fault)

    def features(self, samples: np.ndarray, rate: float) -> np.ndarray:
        """Return the features of samples (N,) on the scale of 16-bit integers, with i-vectors if the network takes
        them, (scorer.dim, T).
        """
        return extract(samples, self.config, rate) if self._adapted is None else self._adapted.extract(samples, rate)

    def score(self, samples: np.ndarray, rate: float) -> np.ndarray:
        """Return the scores (num_outputs, T) of samples (N,) on the scale of 16-bit integers."""
        return self.scorer.score(self.features(samples, rate))

    def search(self, samples: np.ndarray, rate: float, decoder: Decoder) -> tuple[np.ndarray, DecodingResult]:
        """Return the scores of samples, as of `score`, and the result of a decoder.

        I-vectors that follow the search hear of it after each block of samples.  If it reaches no final state, the
        scores are decoded again, with a wider beam.
        """
        if self._follows_search is None:
            scores = self.score(samples, rate)
            return scores, decoder.decode(scores)
        chunks, scoring = self._following_stages(self._follows_search, rate, None)
        search = SearchStream(decoder)
        parts = []
        for piece in [*chunks.pieces(samples), chunks.rest()]:
            parts.append(scoring.push(chunks.push(piece)))
            search.push(parts[-1])
            chunks.hear(search.silent(), 0)
        parts += [scoring.push(chunks.finish()), scoring.finish()]
        search.push(np.concatenate(parts[-2:], axis=1))
        result = search.finish()
        scores = np.asfortranarray(np.concatenate(parts, axis=1))
        if not scores.shape[1]:
            return self.score(samples, rate), result  # raises an error: there is no frame
        return scores, decoder.decode(scores) if result.reason else result

    def block(self, asked: int) -> int:
        """Return the frames that a stream scores at a time where so many are asked for."""
        chunks = None if self.ivectors is None else self.ivectors.chunks
        return asked if chunks is None else chunks.size

    def period(self, rate: float) -> int:
        """Return the time between columns of scores in 100 ns units: a frame, or several with frame subsampling."""
        return frame_period(self.config, rate) * self.scorer.subsampling

    def times(self, rate: float) -> FrameTimes:
        """Return when the columns of scores were spoken, in fine times."""
        period = self.period(rate)
        return FrameTimes(period, self.config.first_centre - period / 2, is_fine=True)

    def stages(self, rate: float, mean: RunningMean | None, block: int) -> list[StreamStage]:
        """Return the stages of live recognition from samples to scores; `block`: frames that are scored at a time."""
        if self._follows_search is not None:
            return [*self._following_stages(self._follows_search, rate, mean)]
        return [self.feature_stream(rate, mean), ScoreStream(self.scorer, block)]

    def _following_stages(
        self, features: "AdaptedFeatures", rate: float, mean: RunningMean | None
    ) -> "tuple[ChunkStream, ChunkScores]":
        """Return the stages for i-vectors that follow the search."""
        stream = features.chunk_stream(rate, mean)
        return stream, ChunkScores(self.scorer, stream.chunks.size, stream.chunks.ahead)

    def feature_stream(self, rate: float, mean: RunningMean | None) -> "FeatureStream | AdaptedStream":
        """Return the stage of live recognition from samples to features, with i-vectors if the network takes them."""
        if self._adapted is not None:
            return self._adapted.stream(rate, mean)
        return FeatureStream(self.config, rate, mean)


def _adapted(config: FeatureConfig, ivectors: "IvectorModel") -> "AdaptedFeatures":
    from features.ivectors.adapted import AdaptedFeatures  # few networks need it

    return AdaptedFeatures(config, ivectors)


def check_ivectors(scorer: WindowScorer, ivectors: "IvectorModel | None", on_mismatch: Callable[[str], None]) -> None:
    """Raise ConfigError unless a network gets i-vectors as it takes them; on_mismatch: for those of another model."""
    if ivectors is None and scorer.ivector_dim:
        raise ConfigError(
            f"{scorer.source}: takes i-vectors of {scorer.ivector_dim} values; expected the model that estimates them"
        )
    if ivectors is None:
        return
    if ivectors.dim != scorer.ivector_dim:
        takes = f"i-vectors of {scorer.ivector_dim} values" if scorer.ivector_dim else "no i-vectors"
        raise ConfigError(f"{ivectors.source}: i-vectors of {ivectors.dim} values; {scorer.source} takes {takes}")
    record = FeatureRecord(extractor=ivectors.checksum)
    fault = record.mismatch(ivectors.source, scorer.ivector_record, f"with which {scorer.source} was trained")
    if fault is not None:
        on_mismatch(fault)


def _refuse(fault: str) -> None:
    raise ConfigError(fault)


def pcm_scale(samples: Any) -> np.ndarray:
    """Return samples (N,) or (N, channels) on the scale of 16-bit integers; floating point is multiplied by 32768.

    Raises ShapeError for other shapes and types, and for floating-point numbers far outside of -1 to 1.
    """
    samples = np.asarray(samples)
    kind = samples.dtype.kind
    size = samples.dtype.itemsize
    if samples.ndim not in (1, 2) or kind not in "if" or (kind == "i" and size > 2):
        raise ShapeError(
            f"samples: shape {samples.shape}, type {samples.dtype}; expected (N,) or (N, channels), int16, or floating "
            "point from -1 to 1"
        )
    if kind == "i":
        return samples if size == 2 else samples.astype(np.int16) * np.int16(256)
    if samples.size and np.abs(samples).max() > MOST:
        raise ShapeError(
            f"samples: floating-point samples up to {np.abs(samples).max():g}; expected -1 to 1, or int16; those of "
            "read_audio divided by 32768"
        )
    return samples.astype(np.float32) * np.float32(FULL_SCALE)
