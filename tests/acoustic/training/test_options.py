"""Options of training: schedules by hand, the SGD block of a configuration, one fault each."""

import math

import pytest

from acoustic.training.configuration import idle_keys, training_options
from acoustic.training.control.options import AFTER, BEFORE, AutoAdjust
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdaGrad, AdamW, FsAdaGrad, Momentum, RmsProp
from readers.config.config import Config
from readers.config.options import OptionFault
from readers.errors import ConfigError

BOOK = """
traceLevel=1
SGD=[
  epochSize=0
  minibatchSize=256:1024
  learningRatesPerMB=0.8:3.2*14:0.08
  momentumPerMB=0.9
  maxEpochs=25
]
"""


def options_of(*lines: str) -> TrainingOptions:
    text = "\n".join(("SGD=[", "maxEpochs=2", "learningRatesPerMB=0.1", *lines, "]"))
    return training_options(Config.from_text(text, "train.cntk").block("SGD"))


def test_schedule_of_the_books_example_gives_rates_per_sample_and_momentum_of_each_epoch():
    options = training_options(Config.from_text(BOOK, "book.cntk").block("SGD"))
    assert options.max_epochs == 25
    assert options.trace_level == 1  # found around the block
    first, second, last = options.epoch(0), options.epoch(1), options.epoch(24)
    assert (first.minibatch_size, second.minibatch_size, last.minibatch_size) == (256, 1024, 1024)
    assert first.learning_rate == pytest.approx(0.8 / 256)
    assert second.learning_rate == pytest.approx(3.2 / 1024)
    assert options.epoch(14).learning_rate == pytest.approx(3.2 / 1024)
    assert options.epoch(15).learning_rate == pytest.approx(0.08 / 1024)
    assert last.learning_rate == pytest.approx(0.08 / 1024)
    assert first.momentum_of(256) == pytest.approx(0.9)
    assert second.momentum_of(1024) == pytest.approx(0.9)
    assert first.momentum_of(128) == pytest.approx(math.sqrt(0.9))
    # 256 frames leave 0.9 of a gradient: exp(-256 / c) = 0.9
    assert first.time_constant == pytest.approx(256 / math.log(1 / 0.9))


def test_momentum_per_sample_and_as_time_constant():
    per_sample = options_of("momentumPerSample=0.99*2:0.5", "minibatchSize=10")
    assert per_sample.epoch(0).momentum_of(10) == pytest.approx(0.99**10)
    assert per_sample.epoch(2).momentum_of(10) == pytest.approx(0.5**10)
    constant = options_of("momentumAsTimeConstant=2500", "minibatchSize=250")
    assert constant.epoch(0).momentum_of(250) == pytest.approx(math.exp(-0.1))
    assert options_of("momentumAsTimeConstant=0").epoch(0).momentum_of(256) == 0
    assert options_of("momentumPerMB=0").epoch(0).momentum_of(256) == 0
    assert options_of().epoch(0).momentum_of(256) == pytest.approx(0.9)  # the default


def test_learning_rate_per_sample_ignores_the_minibatch_size():
    text = "SGD=[\nmaxEpochs=3\nlearningRatesPerSample=0.008*2:0.002\nminibatchSize=64:128\n]"
    options = training_options(Config.from_text(text, "t").block("SGD"))
    assert [options.epoch(e).learning_rate for e in range(4)] == [0.008, 0.008, 0.002, 0.002]


def test_dropout_schedule_and_other_values():
    options = options_of(
        "dropoutRate=0.5*2:0.2",
        "clippingThresholdPerSample=1#INF",
        "L2RegWeight=1e-4",
        "gradUpdateType=None",
        "autoAdjust=[autoAdjustLR=None]",
        "keepCheckPointFiles=true",
        "executionEngine=synchronous",
    )
    assert [options.epoch(e).dropout_rate for e in range(3)] == [0.5, 0.5, 0.2]
    assert options.clipping_threshold == math.inf
    assert options.l2_weight == 1e-4
    assert options.keep_checkpoints


@pytest.mark.parametrize(
    "line",
    [
        *("autoAdjust=none", "autoAdjustLR=None", "autoAdjustLR=false", "adaptationRegType=None"),
        *("learnerType=SGD", "unroll=false"),  # of the tool's examples
        *("gradUpdateType=", "useNAG=", "gradUpdateType=AdaGrad\nuseNAG="),
    ],
)
def test_what_is_off_or_without_effect_is_accepted(line):
    assert options_of(line).max_epochs == 2


@pytest.mark.parametrize("key", ["epochSize", "numMBsToShowResult", "firstMBsToShowResult"])
def test_counts_of_frames_and_minibatches_may_exceed_32_bits(key):
    options = options_of(f"{key}=5000000000")
    assert 5_000_000_000 in (options.epoch_size, options.show_every, options.show_first)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("momentumPerMb2=0.9", r"train\.cntk:4: SGD\.momentumPerMb2 is not known here; did you mean momentumPerMB"),
        (
            "executionEngine=both",
            r"cntk:4: SGD\.executionEngine is 'both'; expected synchronous or asynchronous",
        ),
        ("minibatchSize=0", r"train\.cntk:4: SGD\.minibatchSize is 0; expected at least 1 frame"),
        ("minibatchSize=many", r"train\.cntk:4: SGD\.minibatchSize is 'many'; expected an integer"),
        ("dropoutRate=0.2:1.0", r"train\.cntk:4: SGD\.dropoutRate is 1; expected at least 0, below 1"),
        ("momentumPerMB=1", r"train\.cntk:4: SGD\.momentumPerMB is 1; expected at least 0, below 1"),
        ("momentumPerSample=0.9\nmomentumPerMB=0.9", "given beside momentumPerMB; expected one kind of momentum"),
        ("learningRatesPerSample=0.1", "given beside learningRatesPerMB; expected either"),
        ("epochSize=100", r"train\.cntk:4: SGD\.epochSize is 100; expected at least minibatchSize 256"),
        ("clippingThresholdPerSample=0", "clippingThresholdPerSample is 0; expected above 0"),
        ("L1RegWeight=-1", r"L1RegWeight is -1; expected at least 0"),
        ("maxEpochs=0", "maxEpochs is 0; expected at least 1 epoch"),
        ("numMBsToShowResult=0", "numMBsToShowResult is 0; expected at least 1 minibatch"),
        ("gradUpdateType=AdaGard", r"train\.cntk:4: SGD\.gradUpdateType is 'AdaGard'; expected none, AdaGrad, RmsProp"),
        ("gradUpdateType=RmsProp\nrms_gamma=1", r"train\.cntk:5: SGD\.rms_gamma is 1; expected at least 0, below 1"),
        ("gradUpdateType=RmsProp\nrms_wgt_inc=0.9", r"rms_wgt_inc is 0\.9; expected at least 1"),
        ("gradUpdateType=RmsProp\nrms_wgt_dec=1.1", r"rms_wgt_dec is 1\.1; expected above 0, at most 1"),
        ("gradUpdateType=RmsProp\nrms_wgt_min=0", r"rms_wgt_min is 0; expected above 0"),
        ("gradUpdateType=RmsProp\nrms_wgt_max=0.05", r"rms_wgt_max is 0\.05; expected at least rms_wgt_min 0\.1"),
        ("gradUpdateType=AdamW\nadamBeta2=1", r"SGD\.adamBeta2 is 1; expected at least 0, below 1"),
        ("gradUpdateType=AdaGrad\nuseNAG=true", "useNAG is given beside AdaGrad; expected gradUpdateType=None with it"),
        ("gradUpdateType=RmsProp\nuseAdagrad=true", "useAdagrad is given beside gradUpdateType=RmsProp"),
        ("gaussianNoiseInjectStd=-1", r"gaussianNoiseInjectStd is -1; expected at least 0"),
        ("adaptationRegType=L2", r"train\.cntk:4: SGD\.adaptationRegType is 'L2'; expected None or KL"),
        ("adaptationRegType=KL\nadaptationRegWeight=1.5", r"train\.cntk:5: SGD\.adaptationRegWeight is 1\.5; exp"),
        ("sigFigs=0", r"SGD\.sigFigs is 0; expected 1 to 15 digits"),
        ("autoAdjust=[autoAdjustLR=Sometimes]", "autoAdjustLR is 'Sometimes'; expected none or adjustAfterEpoch or"),
        ("autoAdjust=[loadBestModl=true]", r"loadBestModl is not known here; did you mean loadBestModel"),
        ("autoAdjust=[learnRateAdjustInterval=0]", r"autoAdjust\.learnRateAdjustInterval is 0; expected at least 1 ep"),
        ("autoAdjust=[learnRateDecreaseFactor=1]", r"learnRateDecreaseFactor is 1; expected above 0, below 1"),
        ("autoAdjust=[learnRateIncreaseFactor=0.5]", r"learnRateIncreaseFactor is 0\.5; expected at least 1"),
        ("autoAdjust=[numMiniBatch4LRSearch=10:0]", r"numMiniBatch4LRSearch is 0; expected at least 1 minibatch"),
        ("autoAdjust=[minibatchSizeTuningMax=0]", r"minibatchSizeTuningMax is 0; expected at least 1 frame"),
        ("autoAdjustLR=before", r"SGD\.autoAdjustLR stands outside a block autoAdjust; expected autoAdjust=\[autoAdj"),
        ("autoAdjustMinibatch=true", r"SGD\.autoAdjustMinibatch stands outside a block autoAdjust"),
        ("hSmoothingWeight=1.9", r"train\.cntk:4: SGD\.hSmoothingWeight is 1\.9; expected 0 to 1"),
        ("hogwildThreads=2", "hogwildThreads is 2; expected 1: threads share every minibatch instead"),
    ],
)
def test_faults_of_the_block_name_place_finding_and_expectation(line, message):
    with pytest.raises(ConfigError, match=message):
        options_of(line)


RATE = {"learning_rates_per_minibatch": 0.1}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "learning_rates_per_minibatch is missing; expected either learning_rates_per_minibatch or"),
        ({**RATE, "learning_rates_per_sample": 1}, "is given beside learning_rates_per_minibatch; expected either"),
        ({**RATE, "momentum_per_minibatch": 0.9, "momentum_per_sample": 0.9}, "given beside momentum_per_minibatch;"),
        ({**RATE, "epoch_size": 100}, "epoch_size is 100; expected at least minibatch_size 256"),
    ],
)
def test_faults_of_parameters_name_parameters(values, message):
    with pytest.raises(OptionFault, match=message):
        TrainingOptions(max_epochs=1, **values)


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        (["gradUpdateType=None"], Momentum()),
        (["gradUpdateType=Simple", "useNAG=true"], Momentum(nesterov=True)),
        (["gradUpdateType=AdaGrad"], AdaGrad()),
        (["gradUpdateType=adagrad", "normWithAveMultiplier=false", "rms_gamma=5"], AdaGrad(normalise=False)),
        (["useAdagrad=true"], AdaGrad()),
        (["gradUpdateType=RmsProp"], RmsProp(0.99, 1.2, 0.75, 10.0, 0.1, normalise=True)),
        (
            """gradUpdateType=rmsprop rms_gamma=0.9 rms_wgt_inc=1.5 rms_wgt_dec=0.5 rms_wgt_max=3 rms_wgt_min=0.2
            normWithAveMultiplier=false""".split(),
            RmsProp(0.9, 1.5, 0.5, 3.0, 0.2, normalise=False),
        ),
        (["gradUpdateType=fsAdagrad"], FsAdaGrad()),
        (
            "gradUpdateType=AdamW adamBeta1=0.8 adamBeta2=0.9 adamEpsilon=1e-6 adamWeightDecay=0.1".split(),
            AdamW(0.8, 0.9, 1e-6, 0.1),
        ),
    ],
)
def test_update_rules_with_their_options(lines, rule):
    assert options_of(*lines).rule == rule


AUTO = "numPrevLearnRate=3;learnRateDecreaseFactor=0.5;loadBestModel=false;numMiniBatch4LRSearch=100*2:50"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], AutoAdjust()),
        (["autoAdjust=[autoAdjustLR=AdjustAfterEpoch]"], AutoAdjust(AFTER)),
        (["autoAdjust=[autoAdjustLR=after]"], AutoAdjust(AFTER)),
        (
            [f"autoAdjust=[autoAdjustLR=SearchBeforeEpoch;{AUTO}]"],
            AutoAdjust(BEFORE, previous_rates=3, decrease=0.5, load_best=False, trial_minibatches=(100, 100, 50)),
        ),
        # What the block does not name is looked up around it.
        (["loadBestModel=false", "autoAdjust=[autoAdjustLR=afterEpoch]"], AutoAdjust(AFTER, load_best=False)),
        (["autoAdjust=[autoAdjustMinibatch=true]"], AutoAdjust(adapt_minibatch=True)),
        (["autoAdjust=[increaseLearnRateIfImproveMoreThan=1#INF]"], AutoAdjust()),
    ],
)
def test_automatic_control_and_where_its_values_stand(lines, expected):
    assert options_of(*lines).auto_adjust == expected


def test_how_a_control_works_has_no_effect_without_one():
    """As in section 7.2.1 of the book, which lists these in SGD itself; the tool passes over them."""
    lines = "loadBestModel=true\nreduceLearnRateIfImproveLessThan=0.001\nnumPrevLearnRate=3\nautoAdjustMinibatch=false"
    sgd = Config.from_text(f"SGD=[\nmaxEpochs=2\nlearningRatesPerSample=0.1\n{lines}\n]", "t").block("SGD")
    assert training_options(sgd).auto_adjust == AutoAdjust()
    warnings = idle_keys(sgd)
    assert [warning.split()[1] for warning in warnings] == [
        "SGD.reduceLearnRateIfImproveLessThan", "SGD.loadBestModel", "SGD.numPrevLearnRate", "SGD.autoAdjustMinibatch"
    ]  # fmt: skip
    assert warnings[1] == "t:4: SGD.loadBestModel has no effect outside a block autoAdjust=[autoAdjustLR=...]"
    inside = Config.from_text(f"SGD=[maxEpochs=2\n{lines}\nautoAdjust=[autoAdjustLR=before]]", "t").block("SGD")
    assert idle_keys(inside) == []


def test_a_weight_of_adaptation_has_no_effect_without_adaptation():
    lines = "SGD=[maxEpochs=2\nlearningRatesPerSample=0.1\nadaptationRegWeight=0.5\n"
    (warning,) = idle_keys(Config.from_text(f"{lines}]", "t").block("SGD"))
    assert warning == "t:3: SGD.adaptationRegWeight has no effect without adaptationRegType=KL"
    assert idle_keys(Config.from_text(f"{lines}adaptationRegType=KL]", "t").block("SGD")) == []


def test_the_rate_as_section_7_4_of_the_book_spells_it():
    def rate(*lines):
        text = "\n".join(("SGD=[", "maxEpochs=2", *lines, "]"))
        return training_options(Config.from_text(text, "t").block("SGD")).learning_rates_per_sample

    assert rate("learningRatePerSample=0.1") == (0.1,)
    assert rate("learningRatePerSample=0.1", "learningRatesPerSample=0.2") == (0.2,)


def test_a_search_needs_no_learning_rate():
    text = "SGD=[maxEpochs=2;autoAdjust=[autoAdjustLR=SearchBeforeEpoch]]"
    options = training_options(Config.from_text(text, "t").block("SGD"))
    assert options.epoch(0).learning_rate == 0
    with pytest.raises(ConfigError, match="learningRatesPerMB is missing"):
        text = text.replace("SearchBeforeEpoch", "AdjustAfterEpoch")
        training_options(Config.from_text(text, "t").block("SGD"))


@pytest.mark.parametrize(("lines", "engine"), [((), "synchronous"), (["executionEngine=Asynchronous"], "asynchronous")])
def test_execution_engine(lines, engine):
    assert options_of(*lines).execution_engine == engine


def test_adaptation_and_gradient_check():
    options = options_of("adaptationRegType=KL", "adaptationRegWeight=0.25", "gradientcheck=true", "sigFigs=4")
    assert (options.adaptation_weight, options.check_gradients, options.gradient_digits) == (0.25, True, 4)
    assert options_of("adaptationRegWeight=0.25").adaptation_weight == 0  # without its type it does nothing


def test_missing_epochs_and_learning_rate_are_named():
    with pytest.raises(ConfigError, match=r"SGD\.maxEpochs is not set"):
        training_options(Config.from_text("SGD=[learningRatesPerMB=1]", "t").block("SGD"))
    with pytest.raises(ConfigError, match="learningRatesPerMB is missing"):
        training_options(Config.from_text("SGD=[maxEpochs=1]", "t").block("SGD"))


def test_options_from_python_take_single_numbers_for_schedules():
    options = TrainingOptions(3, learning_rates_per_sample=0.1, minibatch_size=[8, 16])
    assert options.epoch(0).learning_rate == options.epoch(2).learning_rate == 0.1
    assert [options.epoch(e).minibatch_size for e in range(3)] == [8, 16, 16]
    assert options == TrainingOptions(3, learning_rates_per_sample=(0.1,), minibatch_size=(8, 16))
