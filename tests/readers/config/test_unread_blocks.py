"""Text that nothing reads, blocks in braces, and values without a value, as CNTK's configurations have them."""

import pytest

from readers.config.check import CheckedConfig
from readers.config.config import Config
from readers.config.render import render
from readers.errors import ConfigError

FREE = [
    "// hello world",
    "this = is = not; a, configuration",
    "2 + 2 = 4\nsee http://example.org/a?b=c#d (and more)",
    "it's a \"lone quote",
    'one "closed [ quote" and a lone " one',
    "$nowhere$=$$; = 3",
    "a b=1\n=3\n{1, 2}[]()",
    "include=nowhere",
]


@pytest.mark.parametrize("text", FREE)
def test_a_block_that_nothing_reads_holds_any_text(text):
    config = Config.from_text(
        f"command=Run\nOff=[ {text} ]\nRun=[\naction=train\nInner=[{text}]\nx=1\n]\ny=2", "f.cntk"
    )
    run = config.block("Run")
    assert (run.int("x"), config.int("y")) == (1, 2)
    assert config.without_effect(["Run"], 0.75) == []
    assert config.misspelled(["y"], 0.75) == []
    again = Config.from_text(render(run), "again")
    assert (again.int("x"), again.text("action")) == (1, "train")


@pytest.mark.parametrize("text", FREE)
def test_no_fault_is_found_in_a_block_that_nothing_reads(text):
    config = CheckedConfig.from_text(f"command=Run\nOff=[ {text} ]\nRun=[action=train;x=1]", "f.cntk")
    assert config.check(lambda: config.block("Run").int("x")) == 1
    assert config.without_effect(["Run"], 0.75) == []
    assert len(config.findings) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('b="x', "^f.cntk:2: a quote is opened and not closed"),
        ("a b=1", "^f.cntk:2: name 'a b'; expected a name without blanks before its value"),
        ("// hello world", "^f.cntk:2: found '// hello world'; expected name=value"),
    ],
)
def test_a_block_that_is_read_is_not_free(text, message):
    config = Config.from_text(f"Off=[\n{text}\n]", "f.cntk")
    with pytest.raises(ConfigError, match=message):
        config.block("Off")


def test_braces_are_a_block_where_a_name_and_a_value_follow():
    text = (
        "SGD = {\n  minibatchSize = {256:512}\n  autoAdjust={a=1;b=2}\n  rates={0.1,0.2}\n}\nSGD=[epochs=3]\nsame=$SGD$"
    )
    sgd = Config.from_text(text, "f.cntk").block("SGD")
    assert list(sgd.ints("minibatchSize")) == [256, 512]
    assert list(sgd.floats("rates")) == [0.1, 0.2]
    assert sgd.block("autoAdjust").int("b") == 2
    assert sgd.int("epochs") == 3
    assert Config.from_text(text, "f.cntk").block("same").int("epochs") == 3
    assert Config.from_text("a={b={c=1}} d=2", "f").block("a").block("b").int("c") == 1
    again = Config.from_text(render(Config.from_text(text)), "again").block("SGD")
    assert list(again.ints("minibatchSize")) == [256, 512]


@pytest.mark.parametrize("text", ["{1,2}", "{a:b}", "{/data/x=1}", "{-1:2}", "{ }", '{"a=1"}'])
def test_other_braces_are_arrays(text):
    assert not Config.from_text(f"v={text}", "f").is_block("v")


def test_a_name_without_a_value_is_an_empty_text():
    config = Config.from_text("stderr=\nlog= # none\nTrain=[scp=;dim=3]", "f.cntk")
    assert config.text("stderr", "x") == ""
    assert config.text("log", "x") == ""
    assert config.path("stderr", None) is None
    block = config.block("Train")
    assert block.int("dim") == 3
    with pytest.raises(ConfigError, match=r"^f.cntk:3: Train.scp is empty; expected a value$"):
        block.path("scp")
    with pytest.raises(ConfigError, match=r"^f.cntk:3: Train.scp"):
        block.int("scp", 5)
