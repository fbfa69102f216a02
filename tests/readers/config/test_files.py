"""Command lines, layered files and includes (book 3.9.2, 3.9.3)."""

from pathlib import Path

import pytest

from readers.config.config import Config, load_config
from readers.errors import ConfigError


@pytest.fixture(autouse=True)
def _in_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)
    return name


BASE = "stderr=log\nmnistTrain=[\n  reader=[file=old.txt;dim=3]\n  SGD=[maxEpochs=5]\n]\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["configFile=a.cntk+b.cntk"],
        ["configFile=a.cntk", "CONFIGFILE=b.cntk"],
        ["configFile=a.cntk", "mnistTrain=[reader=[file=mynewfile.txt]]"],
        ["configFile=c.cntk"],
    ],
)
def test_book_examples_of_overriding_are_the_same(arguments):
    write("a.cntk", BASE)
    write("b.cntk", "mnistTrain=[reader=[file=mynewfile.txt]]\n")
    write("c.cntk", "include=a.cntk\nmnistTrain=[reader=[file=mynewfile.txt]]\n")
    train = load_config(arguments).block("mnistTrain")
    assert train.block("reader").text("file") == "mynewfile.txt"
    assert train.block("reader").int("dim") == 3
    assert train.block("SGD").int("maxEpochs") == 5


def test_arguments_count_from_left_to_right():
    write("1", "v=1\n")
    write("2", "v=2\n")
    assert load_config(["configFile=1", "v=x", "configFile=2"]).text("v") == "2"
    assert load_config(["configFile=1+2", "v=x"]).text("v") == "x"


def test_values_remember_file_line_or_argument():
    write("a.cntk", BASE)
    config = load_config(["configFile=a.cntk", "mnistTrain=[SGD=[maxEpochs=x]]"])
    train = config.block("mnistTrain")
    assert train.block("reader").where("dim") == "a.cntk:3"
    with pytest.raises(
        ConfigError, match=r"^command line argument 'mnistTrain=\[SGD=.*': mnistTrain.SGD.maxEpochs is 'x'"
    ):
        train.block("SGD").int("maxEpochs")
    with pytest.raises(ConfigError, match=r"^a.cntk: command is not set"):
        config.text("command")


def test_command_line_value_resolves_references_of_the_file():
    write("a", "log=$Root$/$RunName$.log\nRoot=r\n")
    assert load_config(["configFile=a", "RunName=one", "Root=other"]).text("log") == "other/one.log"


def test_include_is_pasted_in_place_and_deep():
    write("a", "v=1\n  include = b\nw=$u$\n")
    write("b", "v=2\nu=3\ninclude=c+d\n")
    write("c", "v=4\n")
    write("d", "x=5\n")
    config = load_config(["configFile=a"])
    assert (config.int("v"), config.int("w"), config.int("x")) == (4, 3, 5)
    assert config.where("x") == "d:1"
    assert config.where("w") == "a:3"


def test_file_included_twice_counts_once_and_is_reported():
    write("A", "include=B\ninclude=C\n")
    write("B", "include=C\nv=b\n")
    write("C", "v=c\n")
    config = load_config(["configFile=A"])
    assert config.text("v") == "b"
    assert config.warnings == ["A:2: C was read already, at B:1; not read again"]


def test_include_within_a_block():
    write("a", "t=[\ninclude=b\n]\n")
    write("b", "v=2\n")
    assert load_config(["configFile=a"]).block("t").int("v") == 2


def test_include_is_found_beside_the_including_file():
    write("sub/a", "include=b\n")
    write("sub/b", "v=2\n")
    assert load_config(["configFile=sub/a"]).where("v") == "sub/b:1"


def test_current_directory_changes_at_once():
    write("d/a", "v=2\n")
    assert load_config(["currentDirectory=d", "configFile=a"]).int("v") == 2
    assert Path.cwd().name == "d"


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        ({"a": "\ninclude=b\n", "b": "include=a\n"}, ["configFile=a"], r"^b:1: includes itself: a -> b -> a; expected"),
        ({"a": "include=a\n"}, ["configFile=a"], r"^a:1: includes itself: a -> a"),
        ({}, ["configFile=nix"], "^command line argument 'configFile=nix': nix: No such file"),
        ({"a": "x=1\ninclude=nix\n"}, ["configFile=a"], "^a:2: nix: No such file"),
        ({"a": "include=$x$\n"}, ["configFile=a"], r"^a:1: found \$ in"),
        ({"a": "include=b+\n"}, ["configFile=a"], "^a:1: empty file name"),
        ({"a": "x=[include=b]\n"}, ["configFile=a"], None),
        ({"a": "v=1\n"}, ["configFile=a", "configFile=a"], "a was read already, at command line argument"),
        ({}, ["exp.cntk"], "^command line argument 'exp.cntk': no name=value; expected configFile=FILE"),
        ({}, ["--help"], "expected configFile=FILE"),
        ({}, ["a=[b=1"], r"^command line argument 'a=\[b=1': \[ is opened and not closed"),
        ({"a": "ok=1\na b=1\n"}, ["configFile=a"], "^a:2: name 'a b'"),
        ({"a": "ok=1\nlayers=2,3\n"}, ["configFile=a"], "^a:2: found '3'; expected name=value"),
        ({"a": "ok=1\n=3\n"}, ["configFile=a"], "^a:2: name ''"),
        ({}, ["currentDirectory=nix"], "expected a directory"),
    ],
)
def test_faults_name_their_place(files, arguments, message):
    for name, text in files.items():
        write(name, text)
    if message is None:
        with pytest.raises(ConfigError, match="include= within a line"):
            load_config(arguments).block("x")
    else:
        with pytest.raises(ConfigError, match=message):
            load_config(arguments)


def test_bytes_that_are_no_text_name_the_line():
    Path("a").write_bytes(b"x=1\ny=\xff\n")
    with pytest.raises(ValueError, match=r"^a:2: byte 0xff"):
        load_config(["configFile=a"])


def test_windows_line_ends_and_byte_order_mark():
    Path("a").write_bytes(b"\xef\xbb\xbfx=1\r\nt=[\r\ny=2\r\n]\r\n")
    config = load_config(["configFile=a"])
    assert (config.text("x"), config.block("t").text("y")) == ("1", "2")


def test_two_blocks_on_one_line():
    config = Config.from_text("a=[x=1] b=[y=2] ; c=3")
    assert (config.block("a").names(), config.block("b").names(), config.int("c")) == (["x"], ["y"], 3)
