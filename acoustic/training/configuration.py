"""Reads the SGD block of a configuration into TrainingOptions (CNTK book, section 3.3.1)."""

from dataclasses import dataclass
from typing import Any, Literal

from acoustic.nodes.sequence_criterion import SequenceOptions
from acoustic.training.control.options import AutoAdjust
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import RULES, AdaGrad, Momentum, Rule
from readers.config.config import Config
from readers.config.options import OptionFault, Options, located_faults, option
from readers.errors import ConfigError

# Names that other readers of the block read.
OTHER = (
    "modelPath",
    "makeMode",
    "autoAdjust",  # a block
    "autoAdjustLR",
    "parallelTrain",  # a block, which parallel/options.py reads
    *("layerwiseEpochs", "layerwiseEpochSize"),  # LayerwiseOptions, which are in a higher layer
    *("encoderNodes", "decoderNodes"),  # of trainEncoderDecoder
)
WITHOUT_EFFECT = {
    "hogwildThreads": "threads share every minibatch",
    "learnerType": "SGD is the only one",
    "naturalGradientProducts": "products are made in float32",
    "unroll": "loops are computed step by step, with the gradients of all steps",
}
CONTROL_KEYS = tuple(key for key in AutoAdjust.option_keys() if key != "autoAdjustLR")
# The keys that switch a control on; the others have no effect without one of these.
CONTROL_SWITCHES = ("autoAdjustLR", "autoAdjustMinibatch")
ADAPTATIONS = {"none": "None", "kl": "KL", "klreg": "KL"}


@dataclass(frozen=True, kw_only=True)
class SgdOptions(Options):
    """Options of an SGD block that choose the update rule and the adaptation."""

    rule: str = option(
        "none",
        "update rule",
        check=lambda name: name.lower() in RULES,
        expected=", ".join(rule.names[0] for rule in dict.fromkeys(RULES.values())),
        parse=lambda text: text or "none",
        cntk="gradUpdateType",
    )
    adagrad: bool = option(False, "older name of gradUpdateType=AdaGrad", cntk="useAdagrad")
    adaptation: Literal["None", "KL"] = option(
        "None",
        "regularisation of action adapt; KL: towards the posteriors of the original model",
        parse=lambda text: ADAPTATIONS.get(text.lower(), text),
        cntk="adaptationRegType",
    )
    hogwild_threads: int = option(
        1,
        "threads that update without locks; not built",
        check=lambda count: count == 1,
        expected="1: threads share every minibatch instead, which is as fast (numCPUThreads sets their number)",
    )


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
    classes = (TrainingOptions, SgdOptions, SequenceOptions)
    keys = [key for options in classes for key in options.option_keys()]
    sgd.refuse_unknown([*keys, *OTHER, *WITHOUT_EFFECT, *rule_keys(), *CONTROL_KEYS])
    chosen = SgdOptions.from_block(sgd)
    with located_faults(sgd):
        values = TrainingOptions.values_in(sgd)
        values["auto_adjust"] = auto_adjust_options(sgd)
        values["sequence"] = _sequence_options(sgd)
        if chosen.adaptation == "None":
            values["adaptation_weight"] = 0.0
        return TrainingOptions(**values, rule=_rule(sgd, chosen))


def _sequence_options(sgd: Config) -> tuple[tuple[str, Any], ...]:
    """Return name and value of the options of SequenceWithSoftmax that a block sets. Raises ConfigError."""
    values = SequenceOptions.values_in(sgd)
    SequenceOptions(**values)  # checks the ranges
    return tuple((SequenceOptions.declaration(field).key, value) for field, value in values.items())


def rule_keys() -> list[str]:
    """Return the option names of all update rules."""
    return list(dict.fromkeys(key for rule in RULES.values() for key in rule.option_keys()))


def idle_keys(sgd: Config) -> list[str]:
    """Return warnings for options of the block that have no effect.

    These are options of update rules other than the chosen one, and options of a learning rate control that is not
    switched on. Section 7.2.1 of the book lists the latter in SGD itself, but the tool reads them only in autoAdjust.
    """
    chosen = SgdOptions.from_block(sgd)
    with located_faults(sgd):
        rule = _rule(sgd, chosen)
    idle = {
        key: f"with gradUpdateType={rule.names[0]}" for key in rule_keys() if key not in (*rule.option_keys(), "useNAG")
    }
    if _auto_adjust_block(sgd) is None:
        idle |= dict.fromkeys(CONTROL_KEYS, "outside a block autoAdjust=[autoAdjustLR=...]")
    if chosen.adaptation == "None":
        idle["adaptationRegWeight"] = "without adaptationRegType=KL"
    return [
        f"{sgd.where(key)}: {sgd.full_name(key)} has no effect {why}" for key, why in idle.items() if sgd.has_own(key)
    ]


def _rule(sgd: Config, chosen: SgdOptions) -> Rule:
    """Return the chosen update rule with its options. Raises ConfigError or OptionFault."""
    rule = RULES[chosen.rule.lower()]
    if chosen.adagrad:
        fine = rule in (Momentum, AdaGrad)
        chosen.require("adagrad", fine, f"is given beside {{rule}}={chosen.rule}; expected one of them")
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
    block.refuse_unknown(AutoAdjust.option_keys())
    return AutoAdjust.from_block(block)


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
