"""The actions of a configuration's commands by name, each a class in a module of its own (CNTK book, section 3.5).

This package is a catalogue. Open `base.py` first, then `evaluate.py` as a model for an action.
"""

import importlib
from typing import TYPE_CHECKING

from readers.common.lazy import face
from readers.config.config import Config
from readers.config.values import did_you_mean
from readers.errors import ConfigError

if TYPE_CHECKING:
    from acoustic.actions.base import Action, CommonSettings

_NAMES, __getattr__ = face(__name__, __file__)
__all__ = [*_NAMES, "make_action"]

# Name in lower case: module and class. A module is imported when its action is needed.
ACTIONS = {
    "train": "train:Train",
    "trainrnn": "train:Train",
    "trainencoderdecoder": "encoder_decoder:TrainEncoderDecoder",
    "doencoderdecoder": "encoder_decoder:TrainEncoderDecoder",
    "testencoderdecoder": "decode_pairs:TestEncoderDecoder",
    "test": "evaluate:Evaluate",
    "eval": "evaluate:Evaluate",
    "cv": "cross_validate:CrossValidate",
    "adapt": "adapt:Adapt",
    "gradientcheck": "gradient_check:CheckGradients",
    "write": "write:Write",
    "export": "export:Export",
    "edit": "edit:Edit",
    "svd": "svd:Svd",
    "mixup": "mix_up:MixUp",
    "combine": "combine:Combine",
    "dumpnode": "dumpnode:DumpNode",
    "dumpnodes": "dumpnode:DumpNode",
    "plot": "plot:Plot",
    "writewordandclass": "word_classes:WriteWordAndClass",
    "makeexamples": "make_examples:MakeExamples",
    "createlabelmap": "label_map:CreateLabelMap",
    "convertdbn": "convert_dbn:ConvertDbn",
    "exportdbn": "export_dbn:ExportDbn",
}
NOT_BUILT = (*("trainbidirectionencoderdecoder", "beamsearch", "pbn", "devtest"),)


def make_action(name: str, config: Config, common: "CommonSettings") -> "Action":
    """Return the action of a command block.

    Parameters
    ----------
    name : str
        The name of the action, in any case.
    config : Config
        The command block.
    common : CommonSettings

    Returns
    -------
    Action

    Raises
    ------
    ConfigError
        For an unknown action, or a fault in the options of the block.
    """
    if name.lower() not in ACTIONS:
        fault = "is not built yet" if name.lower() in NOT_BUILT else "is unknown"
        raise ConfigError(
            f"{config.where('action')}: action {name} {fault}; expected {', '.join(ACTIONS)}"
            f"{did_you_mean(name, ACTIONS)}"
        )
    module, _, class_name = ACTIONS[name.lower()].partition(":")
    return getattr(importlib.import_module(f"{__name__}.{module}"), class_name)(config, common)
