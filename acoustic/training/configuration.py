"""The SGD block of a configuration, read into TrainingOptions.  Source: CNTK book, section 3.3.1."""

from acoustic.key_check import OptionFault, check_keys
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import RULES, AdaGrad, Momentum, Rule
from readers.config import Config
from readers.errors import ConfigError

# Field of TrainingOptions: (name in the configuration, how Config reads it).
READ = {
    "max_epochs": ("maxEpochs", "int"),
    "learning_rates_per_minibatch": ("learningRatesPerMB", "floats"),
    "learning_rates_per_sample": ("learningRatesPerSample", "floats"),
    "minibatch_size": ("minibatchSize", "ints"),
    "momentum_per_minibatch": ("momentumPerMB", "floats"),
    "momentum_per_sample": ("momentumPerSample", "floats"),
    "momentum_time_constant": ("momentumAsTimeConstant", "floats"),
    "dropout_rate": ("dropoutRate", "floats"),
    "epoch_size": ("epochSize", "int"),
    "clipping_threshold": ("clippingThresholdPerSample", "float"),
    "clip_by_truncation": ("gradientClippingWithTruncation", "bool"),
    "l2_weight": ("L2RegWeight", "float"),
    "l1_weight": ("L1RegWeight", "float"),
    "noise_deviation": ("gaussianNoiseInjectStd", "float"),
    "min_learning_rate": ("minLearningRatePerSample", "float"),
    "keep_checkpoints": ("keepCheckPointFiles", "bool"),
    "train_criterion": ("trainCriterionNodeName", "text"),
    "eval_criterion": ("evalCriterionNodeName", "text"),
    "precompute_all_data": ("useAllDataForPreComputedNode", "bool"),
    "packed_samples": ("maxTempMemSizeInSamplesForCNN", "int"),
    "trace_level": ("traceLevel", "int"),
    "show_every": ("numMBsToShowResult", "int"),
    "show_first": ("firstMBsToShowResult", "int"),
}
# Read here beside READ, or accepted because they steer machinery that a single process on one device has not got.
OTHER = (
    "modelPath",
    "makeMode",
    "gradUpdateType",
    "useAdagrad",
    "adaptationRegType",
    "autoAdjust",
    "autoAdjustLR",
    "autoAdjustMinibatch",
)
WITHOUT_EFFECT = ("executionEngine", "parallelTrain", "learnerType", "sigFigs")
NOT_BUILT = (
    {"adaptationRegWeight": "KL adaptation", "gradientcheck": "gradient checks during training"}
    | dict.fromkeys(
        (
            "reduceLearnRateIfImproveLessThan",
            "continueReduce",
            "learnRateAdjustInterval",
            "learnRateDecreaseFactor",
            "increaseLearnRateIfImproveMoreThan",
            "learnRateIncreaseFactor",
            "loadBestModel",
            "useCVSetControlLRIfCVExists",
            "useEvalCriterionControlLR",
            "numMiniBatch4LRSearch",
            "numPrevLearnRate",
            "numPrevLearnRates",
            "numBestSearchEpoch",
            "minibatchSizeTuningFrequency",
            "minibatchSizeTuningMax",
            "minibatchSearchCriterionErrorMargin",
        ),
        "automatic learning rate control (autoAdjust)",
    )
    | dict.fromkeys(
        ("hSmoothingWeight", "frameDropThresh", "seqGammarAMF", "seqGammarLMF", "doReferenceAlign"), "sequence training"
    )
)


def training_options(sgd: Config) -> TrainingOptions:
    """The options of an SGD block; what it does not name is looked up around it, then takes its default.

    Raises ConfigError with file and line for unknown names (naming the nearest), for what is not built, and for values
    out of range.
    """
    check_keys(sgd, [*(key for key, _ in READ.values()), *OTHER, *WITHOUT_EFFECT, *rule_keys()], NOT_BUILT)
    _refuse_other_learners(sgd)
    values = {field: getattr(sgd, kind)(key) for field, (key, kind) in READ.items() if sgd.has(key)}
    values["max_epochs"] = sgd.int("maxEpochs")  # required: says so when it is missing
    try:
        return TrainingOptions(**values, rule=_rule(sgd))
    except OptionFault as fault:
        raise ConfigError(f"{sgd.where(fault.key)}: {sgd.full_name(fault.key)}: {fault.text}") from None


def rule_keys() -> list[str]:
    """Names of the options of all update rules."""
    return list(dict.fromkeys(key for rule in RULES.values() for key, _ in rule.keys.values()))


def _rule(sgd: Config) -> Rule:
    """The update rule with its options; those of other rules are not looked at.  Raises ConfigError, OptionFault."""
    name = sgd.text("gradUpdateType", "") or "none"
    if name.lower() not in RULES:
        known = ", ".join(rule.names[0] for rule in dict.fromkeys(RULES.values()))
        raise ConfigError(f"{sgd.where('gradUpdateType')}: gradUpdateType is {name}; expected {known}")
    rule = RULES[name.lower()]
    if sgd.bool("useAdagrad", False):  # the older switch
        if rule not in (Momentum, AdaGrad):
            raise OptionFault("useAdagrad", f"given beside gradUpdateType={name}; expected one of them")
        rule = AdaGrad
    if rule is not Momentum and sgd.bool("useNAG", False):
        raise OptionFault("useNAG", f"given beside {rule.names[0]}; expected gradUpdateType=None with it")
    return rule(**{field: getattr(sgd, kind)(key) for field, (key, kind) in rule.keys.items() if sgd.has(key)})


def _refuse_other_learners(sgd: Config) -> None:
    """Raise ConfigError where the block asks for a learner, or a control of the learning rate, that is not built."""
    regularisation = sgd.text("adaptationRegType", "none")
    if regularisation.lower() not in ("none", ""):
        _refuse(sgd, "adaptationRegType", regularisation)
    block = _auto_adjust(sgd)
    control = block.text("autoAdjustLR", "none")
    if control.lower() not in ("none", "false", ""):
        _refuse(block, "autoAdjustLR", control)
    if block.bool("autoAdjustMinibatch", False):
        _refuse(block, "autoAdjustMinibatch", "true")


def _auto_adjust(sgd: Config) -> Config:
    """The block that controls the learning rate; SGD itself when there is none (`autoAdjust=none`, or nothing)."""
    try:
        return sgd.block("autoAdjust", sgd)
    except ConfigError:
        if sgd.text("autoAdjust", "").lower() in ("", "none", "false"):
            return sgd
        raise


def _refuse(config: Config, key: str, value: str) -> None:
    raise ConfigError(f"{config.where(key)}: {config.full_name(key)} is {value}, which is not built yet; expected none")
