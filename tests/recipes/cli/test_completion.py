"""`argonaut completion`: the scripts, in the shells that are installed."""

import shlex
import shutil
import subprocess

import pytest

from acoustic.actions.top_level import TOP_NAMES
from readers.config.files import ARGUMENT_NAMES
from recipes.cli.completion import PROGRAMS, completions
from recipes.cli.main import COMMANDS, main
from recipes.cli.recipe import RECIPES

EXPECTED = {  # the line before the cursor -> some of the candidates
    "argonaut ": list(COMMANDS),
    "argonaut l": ["lm", "lattice"],
    "argonaut lm ": ["estimate", "perplexity", "nbest", "rescore"],
    "argonaut lm estimate --o": ["--order", "--output"],
    "argonaut hcopy -": ["-C", "-S", "--scp", "--help", "-v"],
    "argonaut recipe ": list(RECIPES),
    "argonaut recipe timit --size ": ["demo", "full"],
    "argonaut graph --dict words.dict --dict-format ": ["auto", "htk", "cmu", "kaldi", "mfa"],
    "argonaut argon -lattice-p": ["-lattice-prefix"],
    "argon -": ["-graph", "-lm", "-dnn_window_size", "--lm-scale", "--threads"],
    "argon --level ": ["word", "phone", "state"],
    "argon -graph g.dg -precompile true -look": ["-lookahead-file"],
    "cntk conf": ["configFile="],
    "cntk configFile=a.cntk ": [f"{name}=" for name in (*ARGUMENT_NAMES, *TOP_NAMES)],
    "cntk --allow": ["--allow-commands"],
}
NO_CANDIDATES = [  # the shell completes file names
    "argonaut hcopy -C ",
    "argonaut hcopy -C fbank",
    "argon -graph ",
    "argon -acweight -",
    "argonaut info mod",
    "cntk configFile=a",
]


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """A function that returns the path of the script for a shell."""

    def script(shell):
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed")
        path = tmp_path_factory.mktemp("completion") / f"argonaut.{shell}"
        with pytest.MonkeyPatch.context() as patch, path.open("w", encoding="utf-8") as file:
            patch.setattr("sys.stdout", file)
            assert main(["completion", shell]) == 0
        return path

    return script


def bash_words(line):
    """The words of a line as bash's completion sees them: `=` is a word of its own."""
    return [word for word in line.replace("=", " = ").split(" ") if word] + [""] * line.endswith((" ", "="))


def test_bash_completes_commands_options_and_values(script):
    lines = [*EXPECTED, *NO_CANDIDATES]
    commands = [f"source {shlex.quote(str(script('bash')))}"]
    for line in lines:
        words = bash_words(line)
        commands.append(f"COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1} COMPREPLY=()")
        commands.append('_argonaut 2>/dev/null; echo "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "--norc", "-c", "\n".join(commands)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for line, found in zip(lines, done.stdout.splitlines(), strict=True):
        candidates, start = found.split(), bash_words(line)[-1]
        assert set(EXPECTED.get(line, ())) <= set(candidates), line
        assert all(candidate.startswith(start) for candidate in candidates), line
        if line in NO_CANDIDATES:
            assert candidates == [], line


def test_bash_completes_all_three_names(script):
    shown = f"source {shlex.quote(str(script('bash')))}; complete -p {' '.join(PROGRAMS)}"
    done = subprocess.run(["bash", "--norc", "-c", shown], capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"complete -o default -F _argonaut {name}" for name in PROGRAMS]


def test_fish_completes_commands_options_and_values(script):
    commands = [f"source {shlex.quote(str(script('fish')))}"]
    for line in EXPECTED:
        commands += [f"echo '<'; complete -C {shlex.quote(line)}"]
    done = subprocess.run(["fish", "--no-config", "-c", "\n".join(commands)], capture_output=True, text=True)
    assert done.stderr == ""
    for (line, expected), found in zip(EXPECTED.items(), done.stdout.split("<\n")[1:], strict=True):
        assert set(expected) <= {candidate.split("\t")[0] for candidate in found.splitlines()}, line


def test_zsh_reads_the_script(script):
    shown = f"source {shlex.quote(str(script('zsh')))}; print $_comps[argonaut] $_comps[argon] $_comps[cntk]"
    done = subprocess.run(["zsh", "-f", "-c", shown], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.count("_bash_complete -o default -F _argonaut") == 3


def test_every_option_of_every_command_is_known():
    places = completions()
    assert {f"argonaut {name}" for name in COMMANDS} <= set(places)
    assert places["argon"] is places["argonaut argon"]
    assert all(place.options or place.words for place in places.values())


def test_options_that_the_help_hides_are_not_offered():
    offered = {name for place in completions().values() for option in place.options for name in option.flags}
    assert "--no-partial" in offered
    assert "--partial" not in offered
