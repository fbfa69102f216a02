"""The generated reference pages as Markdown."""

import inspect
from collections.abc import Iterable, Iterator

from acoustic.nodes.base import Node
from acoustic.nodes.option import REQUIRED, Option
from acoustic.nodes.registry import registered_nodes
from recipes.reference.parameters import HONOURED, Place, places
from recipes.reference.source_names import default_text

GENERATED = """\
`python -m recipes.reference` generates this page from the code.  Numbers are sections of the CNTK book.  Names are not
case-sensitive.
"""
FUNCTIONS = """\
The functions are those of section 4.1.4.  Arguments are given in this order; an argument with a default and every
option may be omitted.  V is the value of the function.  Numbers under *source* are sections and equations of the book.
"""
PARAMETERS = """\
The tables are ordered by the block in which a parameter stands.  A name that a block does not set is looked up in the
enclosing blocks.  An unknown name is an error in the blocks of builders and SGD, a warning in those of readers and
writers, and ignored in those of commands.  `argonaut validate` lists the first two, and names in the blocks of commands
that look misspelled.
"""


def pages() -> dict[str, str]:
    """Name of each generated page -> its Markdown."""
    made = {"ndl_functions": _functions(), "mel_commands": _commands(), "parameters": _parameters()}
    return {name: "\n".join(lines).rstrip("\n") + "\n" for name, lines in made.items()}


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    head = list(head)
    yield _row(head)
    yield _row("-" for _ in head)
    yield from map(_row, rows)
    yield ""


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


# Functions


def _functions() -> Iterator[str]:
    from acoustic.nodes.registry import NOT_BUILT

    yield "# Functions of the network description language\n"
    yield GENERATED
    yield FUNCTIONS
    nodes = list(registered_nodes())
    yield from _table(("function", "arguments", "options", "what it is", "source"), map(_function, nodes))
    yield "## Not built\n"
    yield from _table(("function", "reason"), [(f"`{name}`", f"{why}: not built") for name, why in NOT_BUILT.items()])


def _function(node: type[Node]) -> tuple[str, str, str, str, str]:
    names = ", ".join(f"`{name}`" for name in (node.type_name, *node.aliases))
    options = {option.name: option for option in node.options}
    positional = node.positional_arguments()
    arguments = [_argument(name, options.get(name)) for name in positional]
    if node.variadic:
        arguments.append("...")
    others = [_option(option) for option in node.options if option.name not in positional]
    text = inspect.cleandoc(node.__doc__ or "").replace("``", "`")
    _, _, references = text.partition("\nReferences\n----------\n")
    source = references.partition("\n\n")[0].removeprefix("CNTK book").strip(" ,.")
    return names, ", ".join(arguments), "; ".join(others), text.partition("\n\n")[0], source


def _argument(name: str, option: Option | None) -> str:
    return f"`{name}`" if option is None or option.default is REQUIRED else _option(option)


def _option(option: Option) -> str:
    names = "/".join((option.name, *option.aliases))
    default = "" if option.default is REQUIRED else f"={default_text(option.default)}"
    return f"`{names}{default}`" + (f" ({', '.join(option.choices)})" if option.choices else "")


# Commands


def _commands() -> Iterator[str]:
    from acoustic.descriptions.mel.registry import commands

    yield "# Commands of the model editing language\n"
    yield GENERATED
    yield "The commands are those of section 4.2.2.\n"
    rows = []
    for spec in commands():
        options = "; ".join(
            f"`{name}`" + (f" ({', '.join(words)})" if words else "") for name, words in spec.options.items()
        )
        calls = ", ".join(f"`{signature}`" for signature in spec.signatures)
        rows.append((calls, ", ".join(f"`{alias}`" for alias in spec.aliases), options, spec.summary))
    yield from _table(("command", "other names", "options", "what it does"), rows)


# Parameters


def _parameters() -> Iterator[str]:
    yield "# Parameters of configurations\n"
    yield GENERATED
    yield PARAMETERS
    for place in places():
        yield f"## {place.title}{f' ({place.section})' if place.section else ''}\n"
        yield from _place(place)


def _place(place: Place) -> Iterator[str]:
    if place.refused:
        yield f"Refused by name: {place.refused}.\n"
        return
    rows = []
    for one in place.parameters:
        state = one.state if one.state == HONOURED else f"{one.state}: {one.reason}"
        rows.append((f"`{one.name}`", f"`{one.default}`" if one.default else "", state))
    yield from _table(("parameter", "default", "state"), rows)
