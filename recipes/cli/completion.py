"""Print a script that completes the commands, actions, options and values of argonaut, argon and cntk in a shell.

worked example:
  argonaut completion bash > ~/.local/share/bash-completion/completions/argonaut
  argonaut completion zsh >> ~/.zshrc
  argonaut completion fish > ~/.config/fish/completions/argonaut.fish
In bash, links beside that file complete the two other names as soon as they are typed:
  ln -s argonaut ~/.local/share/bash-completion/completions/argon
  ln -s argonaut ~/.local/share/bash-completion/completions/cntk
`source <(argonaut completion bash)` has effect in the running shell only.
"""

import argparse
import shlex
import textwrap
from dataclasses import dataclass, field
from typing import Literal

from readers.config.options import Options, option
from recipes.cli.command import Command, Console
from recipes.cli.main import COMMANDS, RAW_COMMANDS, command_parser, module_of, top_level_parser

PROGRAMS = ("argonaut", "argon", "cntk")
MOST_CHARACTERS = 80  # of a description


@dataclass
class Option:
    """An option as it is written on the command line.

    values: what may follow, empty if that is anything; takes_value: whether something follows.
    """

    flags: list[str]
    text: str
    takes_value: bool
    values: list[str]


@dataclass
class Place:
    """What can follow a command or action: its options and other words, each with a description."""

    options: list[Option] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CompletionOptions(Options):
    """The shell that completes."""

    shell: Literal["bash", "zsh", "fish"] = option(help="bash, zsh or fish", flag="shell", metavar="{bash,zsh,fish}")


def run(options: CompletionOptions, console: Console) -> int:
    print(SCRIPTS[options.shell](completions()), end="")
    return 0


def completions() -> dict[str, Place]:
    """Return what can follow each command, such as "argonaut lm estimate"."""
    places: dict[str, Place] = {}
    collect("argonaut", top_level_parser(), places)
    places["argonaut"].words = dict(COMMANDS)
    for name in COMMANDS:
        if name not in RAW_COMMANDS:
            collect(f"argonaut {name}", command_parser(name, module_of(name)), places)
    collect("argon", module_of("argon").make_parser(), places)
    places["cntk"] = cntk()
    for name in ("argonaut", "argon"):
        places[name].options.append(
            Option(["--extension"], "a Python file with readers, writers or node types", True, [])
        )
    return places | {f"argonaut {name}": places[name] for name in RAW_COMMANDS}


def collect(path: str, parser: argparse.ArgumentParser, places: dict[str, Place]) -> None:
    """Add the options, actions and choices of a parser and of the parsers of its actions."""
    place = places[path] = Place()
    formatter = parser._get_formatter()
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        text = " ".join(formatter._expand_help(action).split()) if action.help else ""
        if isinstance(action, argparse._SubParsersAction):
            place.words |= {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, below in action.choices.items():
                collect(f"{path} {name}", below, places)
        elif action.option_strings:
            values = [str(choice) for choice in action.choices or ()]
            place.options.append(Option(list(action.option_strings), text, action.nargs not in (0, "?"), values))
        elif action.choices:
            place.words |= dict.fromkeys(map(str, action.choices), "")


def cntk() -> Place:
    from acoustic.actions.top_level import TOP_NAMES
    from readers.config.files import ARGUMENT_NAMES
    from recipes.cli.cntk import OPTIONS

    with_values = ("--scheduler", "--extension")
    options = [Option([name], "", name in with_values, []) for name in OPTIONS]
    return Place(options, {f"{name}=": "" for name in (*ARGUMENT_NAMES, *TOP_NAMES)})


BASH = r"""# Completion of argonaut, argon and cntk; made by `argonaut completion {shell}`.
_argonaut() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} path=${{COMP_WORDS[0]##*/}} last= word= words= options= i
    [[ $current == = ]] && current=
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        case "$path $word" in
            {paths}) path="$path $word" ;;
        esac
        [[ $word == = ]] || last=$word
    done
    case $path in
{places}
    esac
    case "$path $last" in
{values}
        *) [[ $current == -* ]] && words=$options ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ ${{COMPREPLY[0]}} == *= ]] && type compopt > /dev/null 2>&1 && compopt -o nospace
    return 0
}}
complete -o default -F _argonaut {programs}
"""


def bash_script(places: dict[str, Place], shell: str = "bash") -> str:
    """Return the script for bash; a word that follows an option with a value is completed as a file."""
    shown = []
    values = []
    for path, place in places.items():
        options = " ".join(flag for each in place.options for flag in each.flags)
        words = " ".join(place.words)
        shown.append(f"        {shlex.quote(path)}) options={shlex.quote(options)} words={shlex.quote(words)} ;;")
        for each in place.options:
            if each.takes_value:
                cases = "|".join(shlex.quote(f"{path} {flag}") for flag in each.flags)
                values.append(f"        {cases}) words={shlex.quote(' '.join(each.values))} ;;")
    return BASH.format(
        shell=shell,
        paths="|".join(shlex.quote(path) for path in places if " " in path),
        places="\n".join(shown),
        values="\n".join(values),
        programs=" ".join(PROGRAMS),
    )


def zsh_script(places: dict[str, Place]) -> str:
    """Return the script for zsh, which runs that for bash."""
    return "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(
        places, "zsh"
    )


FISH = r"""# Completion of argonaut, argon and cntk; made by `argonaut completion fish`.
function __argonaut_at
    set -l words (commandline -opc)
    set -l path (basename $words[1])
    for word in $words[2..-1]
        if contains -- "$path $word" {paths}
            set path "$path $word"
        end
    end
    test "$path" = "$argv"
end
"""


def fish_script(places: dict[str, Place]) -> str:
    """Return the script for fish, with descriptions."""
    lines = [FISH.format(paths=" ".join(shlex.quote(path) for path in places if " " in path))]
    for path, place in places.items():
        begin = f"complete -c {path.split()[0]} -n '__argonaut_at {path}'"
        for word, text in place.words.items():
            lines.append(f"{begin} -f -a {shlex.quote(word)} {described(text)}\n")
        for each in place.options:
            value = f" -x -a {shlex.quote(' '.join(each.values))}" if each.values else " -r"
            flags = " ".join(fish_flag(flag) for flag in each.flags)
            lines.append(f"{begin} {flags}{value if each.takes_value else ''} {described(each.text)}\n")
    return "".join(lines)


def fish_flag(flag: str) -> str:
    if flag.startswith("--"):
        return f"-l {flag[2:]}"
    return f"-s {flag[1:]}" if len(flag) == 2 else f"-o {flag[1:]}"


def described(text: str) -> str:
    quoted = textwrap.shorten(text, MOST_CHARACTERS, placeholder=" …").replace("\\", "\\\\").replace("'", "\\'")
    return f"-d '{quoted}'"


SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
COMMAND = Command("completion", CompletionOptions, run)
