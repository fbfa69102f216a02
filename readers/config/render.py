"""Writing a configuration as text with its references replaced, as runs store it beside their output."""

from readers.config.config import BlockCycle, Config
from readers.config.syntax import Span, inside_brackets, split_assignment, split_records
from readers.errors import ConfigError


def render(config: Config, origins: bool = True) -> str:
    """Return the block as the text of an equivalent configuration file without references, one name per line.

    origins: add a comment with the file and line of each value.
    References that cannot be resolved in this block (a shared block whose users set the name) are kept.
    """
    return "".join(f"{line}\n" for line in _lines(config, "", origins))


def _lines(config: Config, indent: str, origins: bool) -> list[str]:
    lines: list[str] = []
    for name in config.names():
        comment = f"  # {config.where(name)}" if origins else ""
        if not _is_block(config, name):
            # A comment on the first line of a multi-line value (an array in braces) would end the value there.
            value = config.written(name)
            lines.append(f"{indent}{name}={value}{'' if chr(10) in value else comment}")
            continue
        lines.append(f"{indent}{name}=[{comment}")
        script = _script(config, name)
        if script is None:
            try:
                inner = _lines(config.block(name), indent + "  ", origins)
            except BlockCycle:
                raise
            except ConfigError:  # text that nothing reads
                inner = [f"{indent}  {line.strip()}" for line in _raw(config, name)]
            lines.extend(inner)
        else:
            lines.extend(f"{indent}  {line.strip()}" for line in script.text.split("\n") if line.strip())
        lines.append(f"{indent}]")
    return lines


def _raw(config: Config, name: str) -> list[str]:
    """The lines of a block as they stand in the files."""
    definition = config.find(name)
    assert definition is not None
    pieces = [inside_brackets(piece, "[{", ";")[0].text for piece in definition[0].pieces(definition[1])]
    return [line for text in pieces for line in text.split("\n") if line.strip()]


def _is_block(config: Config, name: str) -> bool:
    try:
        return config.is_block(name)
    except ConfigError:  # a single reference that cannot be resolved in this block
        return False


def _script(config: Config, name: str) -> Span | None:
    """The content of a block if it is a script with calls (NDL, MEL) and not a configuration; else None."""
    try:
        script = config.script(name).span
        records = list(split_records(script, ";"))
    except ConfigError:  # a reference that only the users of the block can resolve, or text that nothing reads
        return None
    for record in records:
        called, value = split_assignment(record)
        if value is not None and record.part(len(called.text)).strip().text[:1] in ("(", "{"):
            return script
    return None
