"""Named arguments that CNTK's functions have and node types here do not, each with a decision.

Source: NDLNetworkBuilder.cpp of CNTK in 2016 and SynchronousExecutionEngine.h of 2015. CNTK ignores arguments that a
function does not read. Here the arguments that it reads elsewhere are accepted with a note where they cannot change the
result, and refused where they do; all others are misspelled.
"""

from collections.abc import Mapping
from typing import Any

from acoustic.nodes.base import Node
from acoustic.nodes.leaves import LearnableParameter
from readers.common.faults import counted

# Options of LearnableParameter, which CNTK ignores in the calls of other functions.
PARAMETER_OPTIONS = (
    *("init", "initValueScale", "value", "initFromFilePath", "initOnCPUOnly", "randomSeed", "kernelWidth"),
    *("kernelHeight", "needGradient", "needsGradient", "computeGradient", "learningRateMultiplier"),
)
ONLY_PARAMETERS = "only LearnableParameter reads it"
# Node type -> argument -> why it has no effect.
WITHOUT_EFFECT: dict[str, dict[str, str]] = {
    "LearnableParameter": {"initOnCPUOnly": "initial values are always drawn on the CPU"},
    "BatchNormalization": {
        "useCntkEngine": "there is one engine",
        "eval": "evaluation always uses the stored statistics",
    },
}
# Node type -> argument -> what it belongs to.
REFUSED: dict[str, dict[str, str]] = {
    "InputValue": {"dynamicAxis": "inputs with sequences of different lengths; action trainEncoderDecoder has them"},
    "LearnableParameter": dict.fromkeys(("kernelWidth", "kernelHeight"), "init=bilinear, for deconvolution"),
    "Convolution": dict.fromkeys(
        ("mapCount", "stride", "sharing", "autoPadding", "lowerPad", "upperPad", "transpose"),
        "convolution in any number of dimensions; expected Convolution(w, image, kernelWidth, kernelHeight, ...)",
    ),
    "BatchNormalization": {"expAvgFactor": "a fraction for each minibatch; normalizationTimeConstant counts frames"},
}
REFUSED["ImageInput"] = REFUSED["InputValue"]
# How a parameter is initialised -> arguments that this way does not read.
UNREAD_BY_INIT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("uniform", "gaussian", "fanin", "henormal", "zero"), ("value", "initFromFilePath")),
    "fixedvalue": ("initFromFilePath",),
}


def without_effect(kind: type[Node], name: str) -> str:
    """Return why an argument of CNTK has no effect on a node type; empty if it is not such an argument."""
    reason_of_key = {key.lower(): why for key, why in WITHOUT_EFFECT.get(kind.type_name, {}).items()}
    if name.lower() in reason_of_key:
        return reason_of_key[name.lower()]
    if issubclass(kind, LearnableParameter) or name.lower() not in (
        option_name.lower() for option_name in PARAMETER_OPTIONS
    ):
        return ""
    return ONLY_PARAMETERS


def refused(kind: type[Node], name: str) -> str:
    """Return what an argument of CNTK belongs to that is not built; empty if it is not such an argument."""
    purpose_of_key = {key.lower(): what for key, what in REFUSED.get(kind.type_name, {}).items()}
    return purpose_of_key.get(name.lower(), "")


def unread_options(kind: type[Node], options: Mapping[str, Any]) -> list[str]:
    """Return the options of a parameter that its way of initialisation does not read."""
    if not issubclass(kind, LearnableParameter):
        return []
    init = str(options.get("init", "uniform")).lower()
    return [name for name in UNREAD_BY_INIT.get(init, ()) if name in options]


class Notes:
    """Notes on a description; equal ones are listed once, with the first place."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}

    def add(self, where: str, text: str) -> None:
        self._places.setdefault(text, []).append(where)

    def lines(self) -> list[str]:
        """Return a line for each note, with the number of further places."""
        return [
            f"{places[0]}: {text}" + (f" (and at {counted(len(places) - 1, 'other place')})" if places[1:] else "")
            for text, places in self._places.items()
        ]
