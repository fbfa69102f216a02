"""What a text is put through: read, expanded, built and edited as the program does, without writing anything."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

from acoustic.actions import CommonSettings, make_action
from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network, simple_network_options
from acoustic.descriptions.mel.parse import parse_script
from acoustic.descriptions.mel.script import Editor
from acoustic.descriptions.ndl import MacroTable, Scope, parse_ndl, shipped_macros, split_sections
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.training.configuration import training_options
from readers.config.check import CheckedConfig
from readers.config.config import Config
from readers.config.render import render
from readers.config.syntax import Source
from readers.errors import ArgonautError
from readers.sources.frames.htk_mlf_options import ReaderOptions

LIMIT = 10.0  # seconds for one text, most of which take milliseconds
MAX_BLOCKS = 60


def make_files(directory: Path) -> list[str]:
    """Put what editing scripts may name into a directory; returns the names, all there may ever be in it."""
    save_model(build_simple_network(SimpleNetworkOptions((4, 4, 3))), directory / "start.dnn")
    (directory / "x.ndl").write_text("a=[\nW9=Parameter(4, 4)\nT9=Times(W9, H1)\n]\nb=[\nz=Input(3)\n]\n")
    (directory / "values.txt").write_text("1 2 3 4\n" * 4)
    return ["start.dnn", "values.txt", "x.ndl"]


class TooLong(BaseException):
    """A text took longer than LIMIT."""


@contextlib.contextmanager
def limited(seconds: float = LIMIT) -> Iterator[None]:
    """Raise TooLong in the body when it uses more processor time; on the main thread of systems that have alarms."""

    def stop(number, frame):
        raise TooLong(f"more than {seconds} s of processor time")

    if not hasattr(signal, "SIGPROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def expect_own_faults(function, *arguments):
    """What the function gives; None when it raises one of the project's own faults, whose message is one line."""
    try:
        return function(*arguments)
    except ArgonautError as fault:
        message = str(fault)
    except OSError:  # a file that a text names is not there
        return None
    assert message.strip()
    assert "\n" not in message, message
    return None


def read_configuration(text: str) -> None:
    """Every value of every block, read in every way; the consumers of blocks; and the check for all faults."""
    with limited():
        config = expect_own_faults(Config.from_text, text, "a.cntk")
        if config is None:
            return
        _read_all(config)
        expect_own_faults(render, config)
        blocks = expect_own_faults(lambda: [block for _, block in config.blocks()]) or []
        for reader in (training_options, simple_network_options, ReaderOptions.from_block):
            for block in (config, *blocks):
                expect_own_faults(reader, block)
        checked = CheckedConfig.from_text(text, "a.cntk")
        for name in checked.names():
            checked.check(lambda name=name: training_options(checked.block(name)))
            for action in ("train", "test", "write", "edit"):
                checked.check(
                    lambda name=name, action=action: make_action(action, checked.block(name), CommonSettings())
                )
        list(checked.unread())


def _read_all(config: Config) -> None:
    """Every value; of blocks the first MAX_BLOCKS, for one that is seen from within itself makes no end of them."""
    blocks = [config]
    for block in blocks:
        for name in (*block.names(), "a", "x"):
            for kind in ("text", "path", "int", "float", "bool", "array", "ints", "floats", "written"):
                expect_own_faults(getattr(block, kind), name)
            block.where(name)
            inner = expect_own_faults(block.block, name)
            if inner is not None and len(blocks) < MAX_BLOCKS:
                blocks.append(inner)


def build_description(text: str) -> None:
    """The network of a description; one that is refused leaves nothing behind."""
    with limited():
        network = Network(threads=1)
        scope = Scope(network, MacroTable(shipped_macros()))
        source = Source.from_text(text, "a.ndl")
        expect_own_faults(split_sections, source)
        script = expect_own_faults(parse_ndl, source)
        if script is None:
            return
        if expect_own_faults(scope.evaluate, source) is None:
            assert not network.nodes, "a description that was refused left nodes"
        expect_own_faults(network.validate)


def run_script(text: str) -> None:
    """An editing script in the current directory, where the files of make_files lie; nothing is written."""
    with limited():
        script = expect_own_faults(parse_script, Source.from_text(text, "a.mel"))
        if script is not None:
            network = expect_own_faults(Editor(MacroTable(shipped_macros())).preview, script)
            if network is not None:
                expect_own_faults(network.validate)
