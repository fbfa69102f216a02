"""Figures of configuration files: of cntk, of HCopy, network descriptions and model editing scripts."""

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.text import read_lines, read_text
from readers.config.syntax import Source, strip_comment
from readers.errors import ConfigError
from recipes.file_kinds.figures import Figures, Kind

if TYPE_CHECKING:
    from readers.config.config import Config

HCOPY_NAMES = {"TARGETKIND", "SOURCEKIND", "SOURCEFORMAT", "SOURCERATE", "TARGETRATE", "WINDOWSIZE", "NUMCHANS"}
_SETTING = re.compile(r"\s*(?:\w+\s*:)?\s*(\w+)\s*=")
_BLOCK = re.compile(r"\s*[^\W\d]\w*\s*=?\s*\[")
_TOP = re.compile(r"\s*(command|action|precision|deviceId|modelPath|include)\s*=", re.IGNORECASE)
_CALL = re.compile(r"\s*(?:[^\W\d][\w.]*\s*=\s*)?([^\W\d]\w*)\s*\(")


def configuration_kind(lines: list[str]) -> Kind | None:
    """Return (kind, function for its figures) given the lines of a configuration with comments; None for other text."""
    num_filled = sum(map(bool, lines))
    lines = [line for line in map(strip_comment, lines) if line]
    settings = [match.group(1) for line in lines if (match := _SETTING.match(line))]
    if len(settings) == len(lines) and HCOPY_NAMES & set(settings):
        return "HCopy configuration", hcopy
    # Require settings, too: an entry `WORD [output] phones` of a dictionary begins like a block.
    blocks = bool(settings) and any(_BLOCK.match(line) for line in lines)
    if any(_TOP.match(line) for line in lines):
        return "cntk configuration", cntk
    calls = {match.group(1).lower() for line in lines if (match := _CALL.match(line))}
    if calls & _editing_commands():
        return "model editing script (MEL)", editing_script
    if calls & _node_names():
        return "network description (NDL)", network_description
    commented = len(lines) < num_filled and all(_SETTING.match(line) for line in lines)
    return ("cntk configuration", cntk) if blocks or commented else None


def _editing_commands() -> set[str]:
    from acoustic.descriptions.mel.registry import commands

    return {name.lower() for command in commands() for name in (command.name, *command.aliases)}


def _node_names() -> set[str]:
    from acoustic.nodes.registry import registered_nodes

    return {name.lower() for node in registered_nodes() for name in (node.type_name, *node.aliases)}


def hcopy(path: str) -> Figures:
    from readers.config.hcopy import read_hcopy_config

    config = read_hcopy_config(path)
    shown = ("SOURCEFORMAT", "TARGETKIND", "NUMCHANS", "NUMCEPS", "TARGETRATE", "WINDOWSIZE")
    figures: Figures = [("settings", len(config))]
    figures += [(name, config[name]) for name in shown if name in config]
    if config.other_modules:
        figures.append(("others", f"{len(config.other_modules)} settings of modules that take no part in HCopy"))
    return figures + [(f"+{name}", value) for name, value in config.items() if name not in shown]


def cntk(path: str) -> Figures:
    from readers.config.config import load_config

    config = load_config([f"configFile={path}"])
    commands = config.array("command", [])
    figures: Figures = [("commands", " ".join(commands) or "none named")]
    for name, block in config.sound_blocks():
        if name.lower() in {command.lower() for command in commands} or block.has_own("action"):
            figures.append((name, _command_text(block)))
    others = [name for name in config.block_names() if name not in dict(figures)]
    if others:
        figures.append(("blocks", " ".join(others)))
    return figures + [(f"+{name}", _value(config, name)) for name in config.names() if not config.is_block(name)]


def _command_text(block: "Config") -> str:
    parts = ["action " + " ".join(block.array("action", ["train"]))]
    parts += [f"{name} {_value(block, name)}" for name in ("modelPath",) if block.find(name)]
    return ", ".join([*parts, *block.block_names()])


def _value(block: "Config", name: str) -> str:
    """Return a value with its references replaced, or as written if a reference cannot be resolved."""
    try:
        return block.text(name, "")
    except ConfigError:
        return block.written(name)


def network_description(path: str) -> Figures:
    from acoustic.descriptions.ndl import split_sections

    sections, script = split_sections(Source.from_text(read_text(path, exact=True), str(Path(path))))
    return [
        ("sections", " ".join(name for name, _ in sections.values()) or "none"),
        ("statements", len(script.statements)),
        ("macros", " ".join(macro.name for macro in script.macros) or "none"),
    ]


def editing_script(path: str) -> Figures:
    known = _editing_commands()
    calls = [match.group(1) for line in read_lines(path) if (match := _CALL.match(strip_comment(line)))]
    commands = Counter(call for call in calls if call.lower() in known)
    return [("commands", ", ".join(f"{count} {name}" for name, count in commands.items()))]
