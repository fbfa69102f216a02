"""A configuration back to text, references replaced: what a run stores beside its output."""

from readers.config.config import Config
from readers.config.syntax import Span, split_assignment, split_records
from readers.errors import ConfigError


def render(config: Config, origins: bool = True) -> str:
    """The block as a configuration file that reads the same with no reference left, one name a line.

    origins: name the file and line that each value comes from in a comment.
    A reference that cannot be followed from here (a shared block whose users set the name) stays as it is.
    """
    return "".join(f"{line}\n" for line in _lines(config, "", origins))


def _lines(config: Config, indent: str, origins: bool) -> list[str]:
    lines: list[str] = []
    for name in config.names():
        comment = f"  # {config.where(name)}" if origins else ""
        if not _is_block(config, name):
            # A value of several lines (an array in braces) has no room for a comment on its first.
            value = config.written(name)
            lines.append(f"{indent}{name}={value}{'' if chr(10) in value else comment}")
            continue
        lines.append(f"{indent}{name}=[{comment}")
        script = _script(config, name)
        if script is None:
            lines.extend(_lines(config.block(name), indent + "  ", origins))
        else:
            lines.extend(f"{indent}  {line.strip()}" for line in script.text.split("\n") if line.strip())
        lines.append(f"{indent}]")
    return lines


def _is_block(config: Config, name: str) -> bool:
    try:
        return config.is_block(name)
    except ConfigError:  # one reference that cannot be followed from here
        return False


def _script(config: Config, name: str) -> Span | None:
    """What is inside a block that is no configuration but a script with calls (NDL, MEL); None for a configuration."""
    try:
        script = config.script(name).span
    except ConfigError:  # a reference that only the block's users can follow
        return None
    for record in split_records(script, ";"):
        called, value = split_assignment(record)
        if value is not None and record.part(len(called.text)).strip().text[:1] in ("(", "{"):
            return script
    return None
