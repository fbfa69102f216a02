"""Options of stochastic gradient descent: schedules, and checks that run before any work starts.

Source: CNTK book, section 3.3.1 (meaning and defaults). Values per minibatch are converted to values per frame as in
the 2016 tool.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from acoustic.training.control.options import BEFORE, NONE, AutoAdjust
from acoustic.training.rules import Momentum, Rule
from readers.config.option_check import KeyedOptions, OptionFault, not_negative, option, positive
from readers.config.values import Schedule

DEFAULT_MOMENTUM = 0.9  # per minibatch
DECAY_STEPS = 16  # of the learning rate, in an epoch
ENGINES = SYNCHRONOUS, ASYNCHRONOUS = "synchronous", "asynchronous"  # orders of the forward pass
# Fields of TrainingOptions that give the learning rate or the momentum in different units.
RATES = ("learning_rates_per_minibatch", "learning_rates_per_sample")
MOMENTA = ("momentum_per_minibatch", "momentum_per_sample", "momentum_time_constant")


def is_momentum(value: float) -> bool:
    return 0 <= value < 1


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
class TrainingOptions(KeyedOptions):
    """Options of stochastic gradient descent.

    A schedule has one value per epoch, and its last value repeats; a single number is a schedule of one value.
    Exactly one kind of learning rate must be given (none if the rate is searched for), and at most one kind of
    momentum. The default momentum is 0.9 per minibatch.

    Parameters
    ----------
    max_epochs : int
    learning_rates_per_minibatch, learning_rates_per_sample : schedule of float
        Learning rate per minibatch, or per frame.
    final_learning_rate : float
        Learning rate at the end of the training, in the unit of the given one, reached by exponential decay; 0 for no
        decay.
    minibatch_size : schedule of int
        Frames.
    momentum_per_minibatch, momentum_per_sample : schedule of float
        Momentum per minibatch, or per frame.
    momentum_time_constant : schedule of float
        Frames after which the weight of a gradient has fallen to 1/e.
    dropout_rate : schedule of float
        Probability that a unit is set to zero.
    parallel : schedule of int
        Number of sequences side by side, as the reader gives them.
    truncated : bool
        Whether `minibatch_size` is the number of steps of each of the sequences side by side.
    epoch_size : int
        Frames of an epoch; 0 for all the data once.
    clipping_threshold : float
        Limit of the gradient, per frame of the minibatch.
    clip_by_truncation : bool
        Whether the elements of a gradient are clipped, instead of its Frobenius norm.
    l2_weight, l1_weight : float
        Weights of the regularisation.
    sequence : tuple of (str, value)
        Options of the criterion SequenceWithSoftmax that are set before training.
    rule : Rule
        The update rule.
    noise_deviation : float
        Standard deviation of the noise added to weights after every update.
    min_learning_rate : float
        Per frame; there are no updates at 1/100 of it and below.
    auto_adjust : AutoAdjust
        Automatic control of the learning rate.
    adaptation_weight : float
        Weight of a reference model's posteriors in the labels.
    check_gradients : bool
        Whether gradients are checked before the first update of every epoch.
    gradient_digits : int
        Digits in which computed and numeric gradients must agree.
    seed : int
        Seed of the dropout masks and of the noise added to weights.
    make_mode : bool
        Whether to continue after the newest model, instead of removing the models of an earlier training.
    extend : bool
        With make_mode, whether to continue a finished training that had fewer epochs than `max_epochs`.
    keep_checkpoints : bool
        Whether the checkpoints of all epochs are kept, not only the newest.
    keep_models : bool
        Whether the models of all epochs are kept, not only the initial one, the best and the last.
    train_criterion, eval_criterion : str
        Names of nodes; "" for the network's first criterion, and for all its evaluation nodes.
    precompute_all_data : bool
        Whether statistics are computed from all data, instead of one epoch.
    packed_samples : int
        Images that a convolution packs at a time; 0 for the fastest number.
    execution_engine : {"synchronous", "asynchronous"}
        Whether branches of the network run at the same time (asynchronous).
    trace_level : int
        0 for few, 1 for more lines in the log.
    show_every : int
        Minibatches between two lines of the log.
    show_first : int
        Number of minibatches at the start of an epoch with a line each.

    Raises
    ------
    OptionFault
        If a value is out of range or two options contradict each other.
    """

    max_epochs: int = option("maxEpochs", fits=positive, expected="a number of epochs > 0")
    learning_rates_per_minibatch: Sequence[float] = option("learningRatesPerMB", (), not_negative, "a rate >= 0")
    learning_rates_per_sample: Sequence[float] = option("learningRatesPerSample", (), not_negative, "a rate >= 0")
    final_learning_rate: float = option("finalLearningRate", 0.0, not_negative, "a rate > 0, or 0 for none")
    minibatch_size: Sequence[int] = option("minibatchSize", (256,), positive, "a number of frames > 0")
    momentum_per_minibatch: Sequence[float] = option("momentumPerMB", (), is_momentum, "0 <= momentum < 1")
    momentum_per_sample: Sequence[float] = option("momentumPerSample", (), is_momentum, "0 <= momentum < 1")
    momentum_time_constant: Sequence[float] = option("momentumAsTimeConstant", (), not_negative, "a number >= 0")
    dropout_rate: Sequence[float] = option("dropoutRate", (0.0,), lambda v: 0 <= v < 1, "0 <= rate < 1")
    parallel: Sequence[int] = (1,)
    truncated: bool = option("truncated", False)
    epoch_size: int = option("epochSize", 0, not_negative, "a number of frames, or 0 for all the data")
    clipping_threshold: float = option("clippingThresholdPerSample", math.inf, lambda v: v > 0, "a threshold > 0")
    clip_by_truncation: bool = option("gradientClippingWithTruncation", True)
    l2_weight: float = option("L2RegWeight", 0.0, not_negative, "a weight >= 0")
    l1_weight: float = option("L1RegWeight", 0.0, not_negative, "a weight >= 0")
    sequence: tuple[tuple[str, Any], ...] = ()
    rule: Rule = Momentum()  # noqa: RUF009 (frozen)
    noise_deviation: float = option("gaussianNoiseInjectStd", 0.0, not_negative, "a deviation >= 0")
    min_learning_rate: float = option("minLearningRatePerSample", 1e-9)
    auto_adjust: AutoAdjust = AutoAdjust()  # noqa: RUF009 (frozen)
    adaptation_weight: float = 0.0
    check_gradients: bool = option("gradientcheck", False)
    gradient_digits: int = option("sigFigs", 6, lambda v: 0 < v <= 15, "1 to 15 digits")
    seed: int = 0
    make_mode: bool = True
    extend: bool = False
    keep_checkpoints: bool = option("keepCheckPointFiles", False)
    keep_models: bool = option("keepModelFiles", True)
    train_criterion: str = option("trainCriterionNodeName", "")
    eval_criterion: str = option("evalCriterionNodeName", "")
    precompute_all_data: bool = option("useAllDataForPreComputedNode", True)
    packed_samples: int = option("maxTempMemSizeInSamplesForCNN", 0, not_negative, "a number >= 0")
    execution_engine: str = option("executionEngine", SYNCHRONOUS, ENGINES.__contains__, " or ".join(ENGINES))
    trace_level: int = option("traceLevel", 0)
    show_every: int = option("numMBsToShowResult", 10, positive, "a number of minibatches > 0")
    show_first: int = option("firstMBsToShowResult", 0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "execution_engine", self.execution_engine.lower())
        super().__post_init__()
        self._check_rates()
        for field, neutral in (("clipping_threshold", math.inf), ("l1_weight", 0.0), ("noise_deviation", 0.0)):
            if self.keys[field][0] in self.rule.refuses and getattr(self, field) != neutral:
                self._refuse(field, f"given; expected none beside gradUpdateType={self.rule.names[0]}")
        if not 0 <= self.adaptation_weight <= 1:
            raise OptionFault("adaptationRegWeight", f"{self.adaptation_weight}; expected 0 <= weight <= 1")
        if 0 < self.epoch_size < max(self.minibatch_size):
            self._refuse("epoch_size", f"{self.epoch_size}; expected at least minibatchSize {max(self.minibatch_size)}")

    def _refuse(self, field: str, text: str) -> None:
        raise OptionFault(self.keys[field][0], text)

    def _check_rates(self) -> None:
        """Check that one kind of learning rate and at most one of momentum are given."""
        rates = [field for field in RATES if getattr(self, field)]
        if len(rates) != 1 and (rates or self.auto_adjust.mode != BEFORE):
            found = f"given beside {self.keys[rates[0]][0]}" if rates else "missing"
            expected = " or ".join(self.keys[field][0] for field in RATES)
            self._refuse((rates or RATES[:1])[-1], f"{found}; expected either {expected}")
        self._check_final_rate()
        momenta = [field for field in MOMENTA if getattr(self, field)]
        if len(momenta) > 1:
            self._refuse(momenta[1], f"given beside {self.keys[momenta[0]][0]}; expected one kind of momentum")

    def _check_final_rate(self) -> None:
        final, field = self.final_learning_rate, "final_learning_rate"
        if final:
            given = [rate for rates in RATES for rate in getattr(self, rates)]
            self.require(field, len(given) == 1 and given[0] > 0, "one learning rate > 0 beside it, that of the start")
            mode = self.auto_adjust.mode
            self.require(field, mode == NONE, f"none beside autoAdjustLR={mode}")

    @property
    def fixed_epochs(self) -> bool:
        """Whether the values of an epoch depend neither on the number of epochs nor on earlier epochs."""
        auto = self.auto_adjust
        return not self.final_learning_rate and auto.mode == NONE and not auto.adapt_minibatch

    @property
    def names_momentum(self) -> bool:
        """Whether a momentum other than 0 is set."""
        return any(any(getattr(self, field)) for field in MOMENTA)

    def full_minibatch(self, index: int, size: int) -> int:
        """Return the frames of a full minibatch in epoch `index` for minibatchSize `size`.

        With truncated=true it has `size` frames of each sequence, unless `size` is 1 (FixUpEffectiveMBSize in the SGD.h
        of CNTK).
        """
        return size * self.parallel[index] if self.truncated and size > 1 else size

    def epoch(self, index: int) -> EpochOptions:
        """Return the values of epoch `index`, counted from 0; values per minibatch hold for a full minibatch."""
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
