"""Options of stochastic gradient descent: schedules, and checks that run before any work starts.

Source: CNTK book, section 3.3.1 (meaning and defaults). Values per minibatch are converted to values per frame as in
the 2016 tool.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from acoustic.training.control.options import BEFORE, NONE, AutoAdjust
from acoustic.training.rules import Momentum, Rule
from readers.config.options import Options, given, option
from readers.config.values import Schedule

DEFAULT_MOMENTUM = 0.9  # per minibatch
DECAY_STEPS = 16  # of the learning rate, in an epoch
# Fields of TrainingOptions that give the learning rate or the momentum in different units.
RATES = ("learning_rates_per_minibatch", "learning_rates_per_sample")
MOMENTA = ("momentum_per_minibatch", "momentum_per_sample", "momentum_time_constant")


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

        The rate decays exponentially, in steps within which it stays constant so that operations are not listed again.
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
class TrainingOptions(Options):
    """Options of stochastic gradient descent.

    A schedule has one value per epoch, and its last value repeats; a single number is a schedule of one value.
    Exactly one kind of learning rate must be given (none if the rate is searched for), and at most one kind of
    momentum. The default momentum is 0.9 per minibatch.

    Raises
    ------
    OptionFault
        If a value is out of range or two options contradict each other.
    """

    max_epochs: int = option(help="epochs of the training", unit="epochs", least=1)
    learning_rates_per_minibatch: Sequence[float] = option(
        (), "learning rate per minibatch", least=0, cntk="learningRatesPerMB"
    )
    learning_rates_per_sample: Sequence[float] = option(  # the second name is that of section 7.4.1 of the book
        (), "learning rate per frame", least=0, cntk="learningRatesPerSample learningRatePerSample"
    )
    final_learning_rate: float = option(
        0.0,
        "learning rate at the end of the training, in the unit of the given one, reached by exponential decay; 0: no "
        "decay",
        least=0,
    )
    minibatch_size: Sequence[int] = option((256,), "frames of a minibatch", unit="frames", least=1)
    momentum_per_minibatch: Sequence[float] = option(
        (), "momentum per minibatch; 0.9 if no momentum is given", least=0, below=1, cntk="momentumPerMB"
    )
    momentum_per_sample: Sequence[float] = option((), "momentum per frame", least=0, below=1)
    momentum_time_constant: Sequence[float] = option(
        (),
        "frames after which the weight of a gradient has fallen to 1/e",
        unit="frames",
        least=0,
        cntk="momentumAsTimeConstant",
    )
    dropout_rate: Sequence[float] = option((0.0,), "probability that a unit is set to zero", least=0, below=1)
    parallel: Sequence[int] = given((1,), "number of sequences side by side, as the reader gives them")
    truncated: bool = option(
        False, "whether minibatchSize is the number of steps of each of the sequences side by side"
    )
    epoch_size: int = option(0, "frames of an epoch; 0: all the data once", unit="frames", least=0, most=math.inf)
    clipping_threshold: float = option(
        math.inf, "limit of the gradient, per frame of the minibatch", above=0, cntk="clippingThresholdPerSample"
    )
    clip_by_truncation: bool = option(
        True, "clip the elements of a gradient, not its Frobenius norm", cntk="gradientClippingWithTruncation"
    )
    l2_weight: float = option(0.0, "weight of the L2 regularisation", least=0, cntk="L2RegWeight")
    l1_weight: float = option(0.0, "weight of the L1 regularisation", least=0, cntk="L1RegWeight")
    sequence: tuple[tuple[str, Any], ...] = given(
        (), "(name, value) of options of the criterion SequenceWithSoftmax that are set before training"
    )
    rule: Rule = given(Momentum(), "the update rule")
    noise_deviation: float = option(
        0.0,
        "standard deviation of the noise added to weights after every update",
        least=0,
        cntk="gaussianNoiseInjectStd",
    )
    min_learning_rate: float = option(
        1e-9, "rate per frame; there are no updates at 1/100 of it and below", cntk="minLearningRatePerSample"
    )
    auto_adjust: AutoAdjust = given(AutoAdjust(), "automatic control of the learning rate")
    adaptation_weight: float = option(
        0.0,
        "weight of a reference model's posteriors in the labels, with adaptationRegType=KL",
        least=0,
        most=1,
        cntk="adaptationRegWeight",
    )
    check_gradients: bool = option(
        False, "check gradients before the first update of every epoch", cntk="gradientcheck"
    )
    gradient_digits: int = option(
        6, "digits in which computed and numeric gradients must agree", unit="digits", least=1, most=15, cntk="sigFigs"
    )
    seed: int = given(0, "seed of the dropout masks and of the noise added to weights")
    make_mode: bool = given(
        True, "whether to continue after the newest model, instead of removing the models of an earlier training"
    )
    extend: bool = given(
        False, "with make_mode, whether to continue a finished training that had fewer epochs than `max_epochs`"
    )
    description: str = given("", "text that a new training writes beside its models, to NAME.config")
    keep_checkpoints: bool = option(
        False, "keep the checkpoints of all epochs, not only the newest", cntk="keepCheckPointFiles"
    )
    keep_models: bool = option(
        True, "keep the models of all epochs, not only the initial one, the best and the last", cntk="keepModelFiles"
    )
    train_criterion: str = option(
        "", "node that is minimised; empty: the network's first criterion", cntk="trainCriterionNodeName"
    )
    eval_criterion: str = option(
        "", "node that is shown beside it; empty: all evaluation nodes of the network", cntk="evalCriterionNodeName"
    )
    precompute_all_data: bool = option(
        True, "compute statistics from all data, not from one epoch", cntk="useAllDataForPreComputedNode"
    )
    packed_samples: int = option(
        0,
        "images that a convolution packs at a time; 0: the fastest number",
        least=0,
        cntk="maxTempMemSizeInSamplesForCNN",
    )
    execution_engine: Literal["synchronous", "asynchronous"] = option(
        "synchronous", "the order of the forward pass; both values mean the same"
    )
    trace_level: int = option(0, "0: few lines in the log, 1: more")
    show_every: int = option(
        10,
        "minibatches between two lines of the log",
        unit="minibatches",
        least=1,
        most=math.inf,
        cntk="numMBsToShowResult",
    )
    show_first: int = option(
        0, "minibatches at the start of an epoch with a line each", most=math.inf, cntk="firstMBsToShowResult"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_rates()
        for field, neutral in (("clipping_threshold", math.inf), ("l1_weight", 0.0), ("noise_deviation", 0.0)):
            if self.declaration(field).key in self.rule.refuses and getattr(self, field) != neutral:
                self.require(field, False, f"is given; expected none beside gradUpdateType={self.rule.names[0]}")
        if 0 < self.epoch_size < max(self.minibatch_size):
            least = f"{{minibatch_size}} {max(self.minibatch_size)}"
            self.require("epoch_size", False, f"is {self.epoch_size}; expected at least {least}")

    def _check_rates(self) -> None:
        """Check that one kind of learning rate and at most one of momentum are given."""
        rates = [field for field in RATES if getattr(self, field)]
        if len(rates) != 1 and (rates or self.auto_adjust.mode != BEFORE):
            fault = f"is given beside {{{rates[0]}}}" if rates else "is missing"
            expected = " or ".join(f"{{{field}}}" for field in RATES)
            self.require((rates or RATES[:1])[-1], False, f"{fault}; expected either {expected}")
        self._check_final_rate()
        momenta = [field for field in MOMENTA if getattr(self, field)]
        if len(momenta) > 1:
            self.require(momenta[1], False, f"is given beside {{{momenta[0]}}}; expected one kind of momentum")

    def _check_final_rate(self) -> None:
        final = self.final_learning_rate
        field = "final_learning_rate"
        if final:
            rates = [rate for unit in RATES for rate in getattr(self, unit)]
            one_rate = len(rates) == 1 and rates[0] > 0
            self.require(field, one_rate, f"is {final}; expected one learning rate > 0 beside it, that of the start")
            mode = self.auto_adjust.mode
            self.require(field, mode == NONE, f"is {final}; expected none beside autoAdjustLR={mode}")

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
