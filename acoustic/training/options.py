"""Options of stochastic gradient descent: schedules, and checks that run before any work starts.

Source: CNTK book, section 3.3.1 (meaning and defaults). Values per minibatch are converted to values per frame as in
the 2016 tool.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

from acoustic.training.control.options import BEFORE, NONE, AutoAdjust
from acoustic.training.rules import Momentum, Rule
from readers.config.option_check import OptionFault
from readers.config.values import Schedule

DEFAULT_MOMENTUM = 0.9  # per minibatch
DECAY_STEPS = 16  # of the learning rate, in an epoch
SYNCHRONOUS, ASYNCHRONOUS = "synchronous", "asynchronous"  # orders of the forward pass


@dataclass(frozen=True)
class EpochOptions:
    """The values that apply during one epoch.

    Attributes
    ----------
    minibatch_size : int
        Frames per minibatch, per sequence where sequences are processed side by side.
    learning_rate : float
        Learning rate per frame at the start of the epoch.
    momentum : float
        Momentum per frame.
    dropout_rate : float
        Probability that a unit is set to zero.
    decay : float
        Ratio of the learning rate at the end of the epoch to that at its start.
    """

    minibatch_size: int
    learning_rate: float  # per frame, at the start
    momentum: float  # per frame
    dropout_rate: float
    decay: float = 1.0

    def rate_at(self, done: float) -> float:
        """Return the learning rate after the fraction `done` (0 to 1) of the epoch.

        The rate decays exponentially, in steps within which it stays constant so that recorded calls can be replayed.
        """
        return self.learning_rate * self.decay ** (math.floor(done * DECAY_STEPS) / DECAY_STEPS)

    def momentum_of(self, num_frames: int) -> float:
        """Return the momentum of an update from `num_frames` frames: the momentum per frame raised to that power."""
        return self.momentum**num_frames

    @property
    def time_constant(self) -> float:
        """Number of frames after which the weight of a gradient has fallen to 1/e; 0 without momentum."""
        return -1.0 / math.log(self.momentum) if self.momentum > 0 else 0.0


@dataclass(frozen=True)
class TrainingOptions:
    """Options of stochastic gradient descent.

    A schedule has one value per epoch, and its last value repeats; a single number is a schedule of one value.
    Exactly one kind of learning rate must be given (none if the rate is searched for), and at most one kind of
    momentum. The default momentum is 0.9 per minibatch. configuration.py maps the names of a configuration to these
    fields; the comment beside each field gives its unit.

    Raises
    ------
    OptionFault
        If a value is out of range or two options contradict each other.
    """

    max_epochs: int
    learning_rates_per_minibatch: Sequence[float] = ()
    learning_rates_per_sample: Sequence[float] = ()
    final_learning_rate: float = 0.0  # like the one given, at the end: it falls exponentially; 0: as the schedule says
    minibatch_size: Sequence[int] = (256,)
    momentum_per_minibatch: Sequence[float] = ()
    momentum_per_sample: Sequence[float] = ()
    momentum_time_constant: Sequence[float] = ()  # in frames
    dropout_rate: Sequence[float] = (0.0,)
    parallel: Sequence[int] = (1,)  # sequences side by side, as the reader gives them
    truncated: bool = False  # minibatchSize is the number of steps of each of the sequences side by side
    epoch_size: int = 0  # frames; 0: all the data once
    clipping_threshold: float = math.inf  # per frame of the minibatch
    clip_by_truncation: bool = True  # else by the Frobenius norm of each parameter's gradient
    l2_weight: float = 0.0
    l1_weight: float = 0.0
    rule: Rule = Momentum()  # noqa: RUF009 (frozen)
    noise_deviation: float = 0.0  # of the normal noise added to every weight after every update
    min_learning_rate: float = 1e-9  # per frame; at a hundredth of it and below nothing is updated
    auto_adjust: AutoAdjust = AutoAdjust()  # noqa: RUF009 (frozen)
    adaptation_weight: float = 0.0  # of a reference model's outputs in the labels
    check_gradients: bool = False  # before the first update of every epoch
    gradient_digits: int = 6  # decimal digits in which computed and numeric gradients have to agree
    seed: int = 0  # of dropout masks and of the noise added to weights
    make_mode: bool = True  # continue after the newest model; else remove the models of an earlier training
    keep_checkpoints: bool = False
    train_criterion: str = ""  # node name; "": the network's first criterion
    eval_criterion: str = ""  # node name; "": all evaluation nodes of the network
    precompute_all_data: bool = True  # statistics from all the data, else from one epoch of it
    packed_samples: int = 0  # how many images a convolution may pack at a time; 0: as many as is fastest
    execution_engine: str = SYNCHRONOUS  # or ASYNCHRONOUS: branches of the network at the same time
    trace_level: int = 0
    show_every: int = 10  # minibatches
    show_first: int = 0  # this many minibatches of an epoch are shown one by one

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, tuple):
                value = value if isinstance(value, Sequence) else (value,)
                object.__setattr__(self, field.name, Schedule(value))
        _require("maxEpochs", self.max_epochs > 0, self.max_epochs, "a number of epochs > 0")
        _require("epochSize", self.epoch_size >= 0, self.epoch_size, "a number of frames, or 0 for all the data")
        _require("numMBsToShowResult", self.show_every > 0, self.show_every, "a number of minibatches > 0")
        _require("maxTempMemSizeInSamplesForCNN", self.packed_samples >= 0, self.packed_samples, "a number >= 0")
        engine = self.execution_engine.lower()
        expected = f"{SYNCHRONOUS} or {ASYNCHRONOUS}"
        _require("executionEngine", engine in (SYNCHRONOUS, ASYNCHRONOUS), self.execution_engine, expected)
        object.__setattr__(self, "execution_engine", engine)
        self._check_schedules()
        self._check_rates()
        threshold = self.clipping_threshold
        _require("clippingThresholdPerSample", threshold > 0, threshold, "a threshold > 0")
        _require("L2RegWeight", 0 <= self.l2_weight < math.inf, self.l2_weight, "a weight >= 0")
        _require("L1RegWeight", 0 <= self.l1_weight < math.inf, self.l1_weight, "a weight >= 0")
        deviation = self.noise_deviation
        _require("gaussianNoiseInjectStd", 0 <= deviation < math.inf, deviation, "a deviation >= 0")
        for key, given in (
            ("clippingThresholdPerSample", threshold < math.inf),
            ("L1RegWeight", self.l1_weight > 0),
            ("gaussianNoiseInjectStd", deviation > 0),
        ):
            fine = key not in self.rule.refuses or not given
            _require(key, fine, "given", f"none beside gradUpdateType={self.rule.names[0]}")
        weight, digits = self.adaptation_weight, self.gradient_digits
        _require("adaptationRegWeight", 0 <= weight <= 1, weight, "0 <= weight <= 1")
        _require("sigFigs", 0 < digits <= 15, digits, "1 to 15 digits")
        if 0 < self.epoch_size < max(self.minibatch_size):
            raise OptionFault(
                "epochSize", f"{self.epoch_size}; expected at least minibatchSize {max(self.minibatch_size)}"
            )

    def _check_schedules(self) -> None:
        _require_all("minibatchSize", self.minibatch_size or (0,), lambda v: v > 0, "a number of frames > 0")
        _require_all("dropoutRate", self.dropout_rate or (1,), lambda v: 0 <= v < 1, "0 <= rate < 1")
        for key, values in self._momenta()[:2]:
            _require_all(key, values, lambda v: 0 <= v < 1, "0 <= momentum < 1")
        key, values = self._momenta()[2]
        _require_all(key, values, lambda v: 0 <= v < math.inf, "a number of frames >= 0")
        for key, values in self._rates():
            _require_all(key, values, lambda v: 0 <= v < math.inf, "a rate >= 0")

    def _check_rates(self) -> None:
        rates = [key for key, values in self._rates() if values]
        if not rates and self.auto_adjust.mode == BEFORE:
            pass
        elif len(rates) != 1:
            found = f"given beside {rates[0]}" if rates else "missing"
            key = rates[-1] if rates else "learningRatesPerMB"
            raise OptionFault(key, f"{found}; expected either learningRatesPerMB or learningRatesPerSample")
        self._check_final_rate()
        momenta = [key for key, values in self._momenta() if values]
        if len(momenta) > 1:
            raise OptionFault(momenta[1], f"given beside {momenta[0]}; expected one kind of momentum")

    def _check_final_rate(self) -> None:
        final = self.final_learning_rate
        _require("finalLearningRate", 0 <= final < math.inf, final, "a rate > 0, or 0 for none")
        if final:
            given = [rate for _, values in self._rates() for rate in values]
            fine = len(given) == 1 and given[0] > 0
            _require("finalLearningRate", fine, final, "one learning rate > 0 beside it, that of the start")
            mode = self.auto_adjust.mode
            _require("finalLearningRate", mode == NONE, final, f"none beside autoAdjustLR={mode}")

    def _rates(self) -> tuple[tuple[str, Sequence[float]], ...]:
        return (
            ("learningRatesPerMB", self.learning_rates_per_minibatch),
            ("learningRatesPerSample", self.learning_rates_per_sample),
        )

    def _momenta(self) -> tuple[tuple[str, Sequence[float]], ...]:
        return (
            ("momentumPerMB", self.momentum_per_minibatch),
            ("momentumPerSample", self.momentum_per_sample),
            ("momentumAsTimeConstant", self.momentum_time_constant),
        )

    @property
    def names_momentum(self) -> bool:
        """Whether any momentum but none at all was asked for."""
        return any(any(values) for _, values in self._momenta())

    def full_minibatch(self, index: int, size: int) -> int:
        """The frames of a full minibatch where minibatchSize is `size`, in epoch `index`.

        With truncated=true it has `size` frames of each sequence (CNTK's SGD.h, FixUpEffectiveMBSize, which leaves a
        size of 1 alone).
        """
        return size * self.parallel[index] if self.truncated and size > 1 else size

    def epoch(self, index: int) -> EpochOptions:
        """The values of epoch `index`, counted from 0; values per minibatch are those of a full minibatch."""
        size = self.minibatch_size[index]
        full = self.full_minibatch(index, size)
        if self.learning_rates_per_minibatch:
            rate = self.learning_rates_per_minibatch[index] / full
        else:
            rate = self.learning_rates_per_sample[index] if self.learning_rates_per_sample else 0.0
        decay = 1.0
        if self.final_learning_rate:
            first = (self.learning_rates_per_minibatch or self.learning_rates_per_sample)[0]
            decay = (self.final_learning_rate / first) ** (1 / self.max_epochs)
        if self.momentum_per_sample:
            momentum = self.momentum_per_sample[index]
        elif self.momentum_time_constant:
            constant = self.momentum_time_constant[index]
            momentum = math.exp(-1 / constant) if constant > 0 else 0.0
        else:
            momentum = (self.momentum_per_minibatch or Schedule([DEFAULT_MOMENTUM]))[index] ** (1 / full)
        return EpochOptions(size, rate * decay**index, momentum, self.dropout_rate[index], decay)


def _require(key: str, fine: bool, value: object, expected: str) -> None:
    if not fine:
        raise OptionFault(key, f"{value}; expected {expected}")


def _require_all(key: str, values: Sequence, fine, expected: str) -> None:
    for value in values:
        _require(key, fine(value), value, expected)
