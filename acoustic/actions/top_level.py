"""What stands outside of all blocks of a configuration: the commands to run, and settings of all of them."""

import importlib.util
import math
from dataclasses import dataclass
from typing import Literal

from acoustic.actions.base import CommonSettings
from readers.common.text import is_count
from readers.config.config import Config
from readers.config.options import Options, option
from readers.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class TopOptions(Options):
    """What stands outside of all blocks of a configuration."""

    commands: tuple[str, ...] = option(
        ("train",), "blocks to run, in this order", cntk="command", expected="the name of a block"
    )
    precision: Literal["float", "double"] = option("float", "numbers of networks: of 32 or 64 bits")
    old_precision: Literal["float", "double"] | None = option(
        None, "older name of {precision}, which it replaces", cntk="type"
    )
    device: str = option("auto", "auto for a GPU if there is one, cpu or -1, or the number of a GPU", cntk="deviceId")
    threads: int = option(
        0, "cores to use; 0: all, or as in OMP_NUM_THREADS; -1: all but one", unit="cores", cntk="numCPUThreads"
    )
    seed: int = option(
        0, "seed of initial weights, order of the data and dropout", least=0, most=math.inf, cntk="randomSeed"
    )
    log: str = option("", "prefix of the log file, before the names of the commands and .log", cntk="stderr")
    done_file: str = option("", "file to write when all commands have finished")
    engine: tuple[str, ...] = option(
        (), "full, plain (all optimisations of the engine off), or the optimisations to switch off; by default that of "
        "the environment variable ARGONAUT_ENGINE, or full",
    )  # fmt: skip


# Settings of commands that often stand outside of all blocks.
OF_COMMANDS = ("traceLevel", "makeMode", "extendTraining", "modelPath", "ndlMacros", "scheduler")
TOP_NAMES = (*TopOptions.option_keys(), *OF_COMMANDS)  # a similar name gives a warning
ALIKE = 0.75
ALIKE_IN_COMMAND = 0.9  # stricter, because blocks often contain names of the user's own


def read_commands(config: Config) -> tuple[str, ...]:
    """Return the blocks to run: those that `command` names, else `train`.  Raises ConfigError if there is neither."""
    commands = TopOptions.from_block(config).commands
    if not config.has("command") and not config.has(commands[0]):
        blocks = config.block_names()
        raise ConfigError(
            f"{config.where('command')}: neither `command` nor a block `train`; expected command=BLOCK"
            + (f", for instance command={blocks[0]}" if blocks else " and that block, or configFile=FILE with both")
            + "".join(f"; {warning}" for warning in config.misspelled(TOP_NAMES, ALIKE))
        )
    return commands


def read_common_settings(config: Config) -> CommonSettings:
    """Read precision, device and seed from the top level of the configuration.  Raises ConfigError."""
    options = TopOptions.from_block(config)
    return CommonSettings(
        precision=options.old_precision or options.precision,
        device=read_device(config, options.device.lower()),
        seed=options.seed,
    )


def old_names(config: Config) -> list[str]:
    """Return a note for each setting outside of the commands that has an old name."""
    if not config.has("type"):
        return []
    replaced = f", and replaces precision={config.text('precision')}" if config.has("precision") else ""
    return [f"{config.where('type')}: type is the old name of precision{replaced}"]


def read_device(config: Config, name: str) -> str:
    """Return the device that `deviceId` names, in the form that networks use."""
    if name in ("cpu", "-1"):
        return "cpu"
    if name == "auto":
        return "gpu" if num_gpus() else "cpu"
    if not is_count(name):
        where = config.where("deviceId")
        raise ConfigError(f"{where}: deviceId is {name[:40]}; expected auto, cpu, -1 or a GPU's number")
    usable = num_gpus()
    if int(name) >= usable:
        raise ConfigError(
            f"{config.where('deviceId')}: deviceId is {name}, but {usable} GPUs are usable; expected deviceId=-1 "
            "for the CPU, or a CUDA device and `pip install '.[gpu]'`, or '.[gpu13]' for CUDA 13, in the project's "
            "directory"
        )
    return f"gpu:{name}"


def num_gpus() -> int:
    """Return the number of usable GPUs; 0 without cupy."""
    if importlib.util.find_spec("cupy") is None:
        return 0
    import cupy

    try:
        return cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0
