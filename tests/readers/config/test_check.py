"""A configuration read for all of its faults: each noted once, nothing that follows from one, the rest as ever."""

import pytest

from readers.config.check import CheckedConfig
from readers.config.config import load_config
from readers.errors import ConfigError


def read(text: str) -> CheckedConfig:
    return CheckedConfig.from_text(text, "a.cntk")


def faults(config: CheckedConfig) -> list[str]:
    return [text for texts in config.findings.faults.values() for text in texts]


def test_every_bad_value_is_noted_and_reads_as_its_default():
    config = read("Train=[\n size=abc\n rate=1:x:2\n flag=perhaps\n kind=C\n epochs=3\n]")

    def options():
        block = config.block("Train")
        kind = block.choice("kind", ["A", "B"], "A")
        return block.int("size", 5), block.floats("rate", "0.5"), block.bool("flag", True), kind, block.int("epochs")

    assert config.check(options) == (5, (0.5,), True, "A", 3)
    assert faults(config) == [
        "a.cntk:5: Train.kind is 'C'; expected A or B",
        "a.cntk:2: Train.size is 'abc'; expected an integer",
        "a.cntk:3: Train.rate is 'x'; expected a number",
        "a.cntk:4: Train.flag is 'perhaps'; expected true or false",
    ]


def test_what_is_out_of_range_is_blamed_and_reading_goes_on():
    config = read("S=[\n a=0\n b=0\n c=1\n]")

    def options():
        block = config.block("S")
        for name in ("a", "b", "c"):
            if block.int(name, 7) < 1:
                raise ConfigError(f"{block.where(name)}: {block.full_name(name)} is {block.int(name)}; expected > 0")
        return block.int("a", 7)

    assert config.check(options) == 7
    assert faults(config) == ["a.cntk:2: S.a is 0; expected > 0", "a.cntk:3: S.b is 0; expected > 0"]


def test_references_without_a_value_are_noted_where_a_name_is_looked_up_and_nothing_that_follows():
    config = read("S=[\n a=$X$\n b=$Y$\n c=3\n]")

    def options():
        block = config.block("S")
        if not block.has("a"):
            raise ConfigError(f"{block.where()}: {block.full_name()} has no a; expected a=...")
        return block.int("c")

    def others():
        block = config.block("S")
        return block.has("b"), block.int("c")

    assert config.check(others) == (False, 3)
    assert config.check(options) is None
    missing = "in S.{0} is not set; expected {1}=... in this or an enclosing block"
    assert faults(config) == [
        f"a.cntk:3: $Y$ {missing.format('b', 'Y')}",
        f"a.cntk:2: $X$ {missing.format('a', 'X')}",
    ]


def test_missing_names_are_all_noted_and_what_follows_from_a_stand_in_is_not():
    config = read("S=[\n b=x\n]")

    def options():
        block = config.block("S")
        if block.int("a") < 5:
            raise ConfigError(f"{block.where('a')}: {block.full_name('a')} is {block.int('a')}; expected 5 or more")
        return block.int("b")

    assert config.check(options) is None
    assert faults(config) == ["a.cntk:1: S.a is not set, in this or an enclosing block; expected a=..."]


def test_every_unknown_name_is_noted():
    config = read("S=[\n maxEpoch=1\n size=2\n rats=3\n]")

    def options():
        config.block("S").refuse_unknown(["maxEpochs", "size"])
        return True

    assert config.check(options)
    assert [fault.split(" is not known")[0] for fault in faults(config)] == ["a.cntk:2: S.maxEpoch", "a.cntk:4: S.rats"]


def test_a_missing_block_is_noted_and_ends_the_reading():
    config = read("a=1")
    assert config.check(lambda: config.block("Train").int("x")) is None
    assert config.check(lambda: config.block("a").int("x")) is None
    assert faults(config) == [
        "a.cntk: Train is not set, in this or an enclosing block; expected Train=...",
        "a.cntk:1: a is '1'; expected a block [...]",
    ]


def test_a_shared_block_blames_the_line_that_sets_the_value(tmp_path):
    path = tmp_path / "a.cntk"
    path.write_text("SGD=[\n size=$Size$\n]\nSize=abc\nTrain=[\n other=1\n]\n")
    config = load_config([f"configFile={path}"], CheckedConfig)
    assert config.check(lambda: config.block("Train").block("SGD").int("size", 3)) == 3
    assert faults(config) == [f"{path}:4: Train.SGD.size is 'abc'; expected an integer"]


def test_names_that_nothing_reads_are_told_when_they_look_like_one_that_is_read():
    config = read("precison=double\nDataDir=/x\nfile=$DataDir$/a\nnote=1\nfiles=2\n")
    config.check(lambda: (config.text("precision", "float"), config.text("file")))
    assert list(config.unread()) == ["a.cntk:1: precison is not used; did you mean precision"]


def test_other_faults_of_the_user_are_noted_and_bugs_are_not():
    config = read("a=1")

    def missing_file():
        raise FileNotFoundError(2, "No such file or directory", "x.scp")

    assert config.check(missing_file) is None
    assert faults(config) == ["x.scp: No such file or directory"]
    with pytest.raises(ZeroDivisionError):
        config.check(lambda: 1 // 0)
