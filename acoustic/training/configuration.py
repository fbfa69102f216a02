"""Reads the SGD block of a configuration into TrainingOptions (CNTK book, section 3.3.1)."""

from typing import Any

from acoustic.nodes.sequence_criterion import SequenceWithSoftmax, range_fault
from acoustic.training.control.options import MODES, AutoAdjust
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import RULES, AdaGrad, Momentum, Rule
from readers.config.config import Config
from readers.config.options import OptionFault, check_keys, located_faults
from readers.config.options.options import READ_BY
from readers.config.values import did_you_mean
from readers.errors import ConfigError, ModelError

# Names that are read below, or that belong to other readers of the block.
OTHER = (
    "modelPath",
    "makeMode",
    "gradUpdateType",
    "useAdagrad",
    "adaptationRegType",
    "autoAdjust",
    "autoAdjustLR",
    "numPrevLearnRate",
    "learningRatePerSample",  # as section 7.4.1 of the book writes learningRatesPerSample
    "parallelTrain",  # a block, which parallel/options.py reads
    *("layerwiseEpochs", "layerwiseEpochSize"),  # layerwise.py reads them
    *("encoderNodes", "decoderNodes"),  # of trainEncoderDecoder, which reads them itself
)
WITHOUT_EFFECT = {
    "hogwildThreads": "threads share every minibatch",
    "learnerType": "SGD is the only one",
    "naturalGradientProducts": "products are made in float32",
    "unroll": "loops are computed step by step, with the gradients of all steps",
}
# Options of the node SequenceWithSoftmax that the block may set, by name.
SEQUENCE_OPTIONS = {option.name: option for option in SequenceWithSoftmax.options}
NO_ADAPTATION = ("none", "")
CONTROL_KEYS = tuple(AutoAdjust.option_keys())
# The keys that switch a control on; the others have no effect without one of these.
CONTROL_SWITCHES = ("autoAdjustLR", "autoAdjustMinibatch")


def training_options(sgd: Config) -> TrainingOptions:
    """Read the SGD block of a configuration.

    Parameters
    ----------
    sgd : Config
        The block. Values that it does not set are looked up in the enclosing blocks, then take their defaults.

    Returns
    -------
    TrainingOptions

    Raises
    ------
    ConfigError
        With file and line, for an unknown name (suggesting the nearest), an option that is not built, and a value
        out of range.
    """
    check_keys(
        sgd,
        [*TrainingOptions.option_keys(), *OTHER, *WITHOUT_EFFECT, *SEQUENCE_OPTIONS, *rule_keys(), *CONTROL_KEYS],
        {},
    )
    if sgd.has("hogwildThreads") and sgd.int("hogwildThreads") != 1:
        raise ConfigError(
            f"{sgd.where('hogwildThreads')}: hogwildThreads is {sgd.int('hogwildThreads')}; expected 1: threads share "
            "every minibatch instead, which is as fast (numCPUThreads sets their number)"
        )
    values = TrainingOptions.values_in(sgd)
    if sgd.has("learningRatePerSample") and not sgd.has("learningRatesPerSample"):
        values["learning_rates_per_sample"] = sgd.floats("learningRatePerSample")
    with located_faults(sgd):
        values["auto_adjust"] = auto_adjust_options(sgd)
        values["sequence"] = _sequence_options(sgd)
        values["adaptation_weight"] = _adaptation_weight(sgd)
        return TrainingOptions(**values, rule=_rule(sgd))


def _sequence_options(sgd: Config) -> tuple[tuple[str, Any], ...]:
    """Return the options of SequenceWithSoftmax that a block sets. Raises ConfigError or OptionFault."""
    found: dict[str, Any] = {}
    for name, option in SEQUENCE_OPTIONS.items():
        if sgd.has(name):
            value = getattr(sgd, READ_BY[option.kind])(name)
            try:
                found[name] = option.convert(value, "")
            except ModelError:  # text that is none of the choices
                raise OptionFault(name, f"is {value}; expected one of {', '.join(option.choices)}") from None
    if fault := range_fault(found):
        raise OptionFault(*fault)
    return tuple(found.items())


def rule_keys() -> list[str]:
    """Return the option names of all update rules."""
    return list(dict.fromkeys(key for rule in RULES.values() for key in rule.option_keys()))


def idle_keys(sgd: Config) -> list[str]:
    """Return warnings for options of the block that have no effect.

    These are options of update rules other than the chosen one, and options of a learning rate control that is not
    switched on. Section 7.2.1 of the book lists the latter in SGD itself, but the tool reads them only in autoAdjust.
    """
    rule = _rule(sgd)
    idle = {
        key: f"with gradUpdateType={rule.names[0]}" for key in rule_keys() if key not in (*rule.option_keys(), "useNAG")
    }
    if _auto_adjust_block(sgd) is None:
        idle |= dict.fromkeys((*CONTROL_KEYS, "numPrevLearnRate"), "outside a block autoAdjust=[autoAdjustLR=...]")
    if sgd.text("adaptationRegType", "none").lower() in NO_ADAPTATION:
        idle["adaptationRegWeight"] = "without adaptationRegType=KL"
    return [
        f"{sgd.where(key)}: {sgd.full_name(key)} has no effect {why}" for key, why in idle.items() if sgd.has_own(key)
    ]


def _rule(sgd: Config) -> Rule:
    """Return the chosen update rule with its options. Raises ConfigError or OptionFault."""
    name = sgd.text("gradUpdateType", "") or "none"
    if name.lower() not in RULES:
        known = ", ".join(rule.names[0] for rule in dict.fromkeys(RULES.values()))
        raise ConfigError(
            f"{sgd.where('gradUpdateType')}: gradUpdateType is {name}; expected {known}{did_you_mean(name, RULES)}"
        )
    rule = RULES[name.lower()]
    if sgd.bool("useAdagrad", False):  # the older name
        if rule not in (Momentum, AdaGrad):
            raise OptionFault("useAdagrad", f"is given beside gradUpdateType={name}; expected one of them")
        rule = AdaGrad
    if rule is not Momentum and sgd.bool("useNAG", False):
        raise OptionFault("useNAG", f"is given beside {rule.names[0]}; expected gradUpdateType=None with it")
    return rule(**rule.values_in(sgd))


def auto_adjust_options(sgd: Config) -> AutoAdjust:
    """Read the block autoAdjust of an SGD block. Raises ConfigError."""
    block = _auto_adjust_block(sgd)
    if block is None:
        _refuse_outside(sgd)
        return AutoAdjust()
    check_keys(block, [*CONTROL_KEYS, "autoAdjustLR", "numPrevLearnRate"], {})
    name = block.text("autoAdjustLR", "none")
    if name.lower() not in MODES:
        expected = ", ".join(dict.fromkeys(MODES.values()))
        raise ConfigError(f"{block.where('autoAdjustLR')}: autoAdjustLR is {name}; expected {expected}")
    values = AutoAdjust.values_in(block)
    if block.has("numPrevLearnRate"):  # the book's spelling
        values["previous_rates"] = block.int("numPrevLearnRate")
    with located_faults(block):
        return AutoAdjust(mode=MODES[name.lower()], **values)


def _auto_adjust_block(sgd: Config) -> Config | None:
    """Return the block autoAdjust, or None if it is missing or `autoAdjust=none`."""
    try:
        return sgd.block("autoAdjust", None)
    except ConfigError:
        if sgd.text("autoAdjust", "").lower() in ("", "none", "false"):
            return None
        raise


def _refuse_outside(sgd: Config) -> None:
    """Raise ConfigError for a control that is switched on outside a block autoAdjust."""
    for key in CONTROL_SWITCHES:
        if sgd.has_own(key) and sgd.text(key, "").lower() not in ("", "none", "false", "f", "0"):
            raise ConfigError(
                f"{sgd.where(key)}: {sgd.full_name(key)} stands outside a block autoAdjust; expected "
                f"autoAdjust=[{key}=...]"
            )


def _adaptation_weight(sgd: Config) -> float:
    """Return the weight of KL adaptation, or 0. Raises ConfigError."""
    kind = sgd.text("adaptationRegType", "none")
    if kind.lower() in NO_ADAPTATION:
        return 0.0
    if kind.lower() not in ("kl", "klreg"):
        raise ConfigError(f"{sgd.where('adaptationRegType')}: adaptationRegType is {kind}; expected None or KL")
    return sgd.float("adaptationRegWeight", 0.0)
