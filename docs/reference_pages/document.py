"""Renders the generated reference pages as Markdown."""

import inspect
from collections.abc import Iterable, Iterator

from acoustic.nodes.base import Node
from acoustic.nodes.option import REQUIRED, Option
from acoustic.nodes.registry import registered_nodes
from docs.reference_pages.parameters import Parameter, Place, default_text, places

GENERATED = """\
This page is generated from the code by `python -m docs.reference_pages`.  Names are not case-sensitive.
"""
FUNCTIONS = """\
These are the functions of [network descriptions](ndl.md), section 4.1.4 of the CNTK book, with their arguments and
other names.  Arguments with a default may be omitted.  V is the value of the function.  The numbers in the last column
are sections and equations of the book.  The page `acoustic.nodes` of the Python interface describes each function in
full, with shapes and gradients.
"""
OPTIONS = """\
Options are given by name, as in `Input(5, tag=feature)`.  Words in parentheses are the values that an option may have.
An option without `=` is required.
"""
CNTK_ARGUMENTS = """\
These named arguments are accepted by CNTK's functions.  Those without effect are noted in the log; unknown ones are
errors.
"""
COMMANDS = """\
These are the commands of [editing scripts](mel.md), section 4.2.2 of the CNTK book.
"""
PARAMETERS = """\
Each section lists the parameters of one block; the number in its title is the section of the CNTK book.  A parameter
that a block does not set is looked up in the enclosing blocks.  An unknown name is an error in the blocks of network
builders and in SGD, a warning in the blocks of readers and writers, and is ignored in the blocks of commands.
`argonaut validate` lists errors and warnings, and names in the blocks of commands that look misspelled.  Several values
are written `a:b`; the last one of a list for epochs holds for all further epochs.

[Training](../how_to/training.md) explains the parameters of the network builders and of SGD,
[parallel training](../how_to/parallel.md) those of `parallelTrain`, and [readers and writers](readers.md) those of the
readers.  The [tour](../getting_started/tour.md) shows the actions.
"""
HCOPY_SETTINGS = """\
`argonaut hcopy`, `argon --features` and `FeatureConfig.from_hcopy` read configurations of HTK's HCopy: lines
`NAME = value` or `MODULE: NAME = value`, with comments after `#`.  Settings of modules that HCopy does not use, such as
`HNET: TRACE = 1`, are ignored.  This page lists the names that HTK 3.4 reads when it computes features, and names for
other programs that configurations often share with HCopy.  A name that is not listed here is an error, because it may
be misspelled; HTK would ignore it.

Times are in units of 100 ns, frequencies in Hz.  The header of each audio file determines its format, byte order and
sample rate.  With `SOURCERATE`, audio of a higher rate is resampled, and that of a lower one needs `--upsample`;
without it, each file is taken at its own rate, as in HTK.  `STEREOMODE` is `LEFT` or `RIGHT`; `--channel` also chooses
others, or `mix`.
`SOURCEFORMAT` may be `WAV`, `WAVE`, `FLAC`, `NIST`, `HTK`, `AIFF` or `SUNAU8`; raw samples (`NOHEAD`, `ALIEN`) are read
without it, with `--rate`; files of HTK's other formats have to be converted.
"""


def pages() -> dict[str, str]:
    """Return name -> Markdown of each generated page."""
    made = {
        "ndl_functions": _functions(),
        "mel_commands": _commands(),
        "parameters": _parameters(),
        "hcopy_settings": _hcopy_settings(),
    }
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

    yield "# Functions of NDL\n"
    yield GENERATED
    yield FUNCTIONS
    nodes = list(registered_nodes())
    yield from _table(("function", "value", "source"), map(_function, nodes))
    yield "## Options\n"
    yield OPTIONS
    yield from _table(("function", "options"), filter(lambda row: row[1], map(_options, nodes)))
    yield "## Other arguments of CNTK\n"
    yield CNTK_ARGUMENTS
    yield from _table(("function", "argument", "decision"), _cntk_arguments())
    yield "## Not implemented\n"
    yield from _table(("function", "area"), [(f"`{name}`", why) for name, why in NOT_BUILT.items()])


def _cntk_arguments() -> Iterator[tuple[str, str, str]]:
    from acoustic.descriptions.ndl import cntk_options

    for function, idle in cntk_options.WITHOUT_EFFECT.items():
        for name, reason in idle.items():
            yield f"`{function}`", f"`{name}`", f"no effect: {reason}"
    names = ", ".join(f"`{name}`" for name in cntk_options.PARAMETER_OPTIONS)
    yield "all but `LearnableParameter`", names, f"no effect: {cntk_options.ONLY_PARAMETERS}"
    for function, what in cntk_options.REFUSED.items():
        for name, reason in what.items():
            yield f"`{function}`", f"`{name}`", f"refused: {reason}"


def _function(node: type[Node]) -> tuple[str, str, str]:
    options = {option.name: option for option in node.options}
    arguments = [_with_default(options[name]) if name in options else name for name in node.positional_arguments()]
    if node.variadic:
        arguments.append("...")
    names = [f"`{node.type_name}({', '.join(arguments)})`", *(f"`{alias}`" for alias in node.aliases)]
    text = inspect.cleandoc(node.__doc__ or "").replace("``", "`")
    _, _, references = text.partition("\nReferences\n----------\n")
    source = references.partition("\n\n")[0].removeprefix("CNTK book").strip(" ,.")
    return ", ".join(names), text.partition("\n\n")[0], source


def _options(node: type[Node]) -> tuple[str, str]:
    positional = node.positional_arguments()
    options = [_option(option) for option in node.options if option.name not in positional]
    return f"`{node.type_name}`", "; ".join(options)


def _option(option: Option) -> str:
    others = [f" or `{alias}`" for alias in option.aliases]
    choices = f" ({', '.join(option.choices)})" if len(option.choices) > 1 else ""
    return f"`{_with_default(option)}`{''.join(others)}{choices}"


def _with_default(option: Option) -> str:
    return option.name if option.default is REQUIRED else f"{option.name}={default_text(option.default)}"


# Commands


def _commands() -> Iterator[str]:
    from acoustic.descriptions.mel.registry import commands

    yield "# Commands of MEL\n"
    yield GENERATED
    yield COMMANDS
    rows = []
    for spec in commands():
        options = "; ".join(
            f"`{name}`" + (f" ({', '.join(words)})" if words else "") for name, words in spec.options.items()
        )
        calls = ", ".join(f"`{signature}`" for signature in spec.signatures)
        rows.append((calls, ", ".join(f"`{alias}`" for alias in spec.aliases), options, spec.summary))
    yield from _table(("command", "other names", "options", "effect"), rows)


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
        yield f"Refused: {place.refused}.\n"
        return
    for title, rows in place.tables.items():
        if title:
            yield f"{title}\n"
        yield from _table(("parameter", "default", "values", "meaning"), map(_parameter, rows))
    if place.others:
        yield "Accepted without effect, or refused:\n"
        rows = [(f"`{row.name}`", f"{row.state}: {row.meaning}") for row in place.others]
        yield from _table(("parameter", "reason"), rows)


def _parameter(row: Parameter) -> tuple[str, ...]:
    default = row.default if row.default in ("", "required") else f"`{row.default}`"
    return f"`{row.name}`", default, row.values, row.meaning


# Settings of HCopy


def _hcopy_settings() -> Iterator[str]:
    from features.config import FeatureConfig
    from features.settings import DEFAULTS, REFUSED, SETTINGS, VALUES, WITHOUT_EFFECT

    yield "# Settings of HCopy\n"
    yield GENERATED
    yield HCOPY_SETTINGS
    yield "## Supported\n"
    plain = FeatureConfig()
    rows = []
    for name, setting in SETTINGS.items():
        default = getattr(plain, setting.field)
        text = "" if default in (None, "", ()) else f"`{_htk_text(default)}`"
        rows.append((f"`{name}`", "required" if name == "TARGETKIND" else text, VALUES[setting.parse], setting.meaning))
    yield from _table(("setting", "default", "values", "meaning"), rows)
    yield "## Accepted without effect\n"
    yield "`argonaut hcopy` prints the names of these settings, and with `-v` the reasons.\n"
    yield from _table(("setting", "reason"), ((f"`{name}`", reason) for name, reason in WITHOUT_EFFECT.items()))
    yield "## Refused\n"
    yield "These would change the features. HTK's default of a setting, if there is one, is accepted.\n"
    rows = [(f"`{name}`", f"`{DEFAULTS[name][0]}`" if name in DEFAULTS else "", why) for name, why in REFUSED.items()]
    yield from _table(("setting", "HTK's default", "reason"), rows)


def _htk_text(value: object) -> str:
    """Return a value as HTK's configurations write it."""
    return "FT"[value] if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
