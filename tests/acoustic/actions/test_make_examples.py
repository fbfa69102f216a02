"""Action makeExamples: what a reader gives, in archives, none of it lost; nothing twice, nothing in silence."""

import numpy as np
import pytest

from acoustic.actions import CommonSettings, make_action
from readers.config.config import Config
from readers.errors import ConfigError, FormatError
from readers.minibatches.base import open_reader

COUNT = 40


@pytest.fixture
def data(tmp_path):
    lines = [f"{i} {-i / 2} {i % 4}" for i in range(COUNT)]
    (tmp_path / "data.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(data, settings: str = "", reader: str = "") -> list[str]:
    """Run the action; returns the lines of its log."""
    text = (
        f"make=[\naction=makeExamples\nexamplesPath={data}/e\n{settings}\nreader=[\nreaderType=UCIFastReader\n"
        f"file={data}/data.txt\n{reader}\nfeatures=[dim=2]\nlabels=[start=2;labelDim=4]\n]\n]"
    )
    lines: list[str] = []
    block = Config.from_text(text, "m.cntk").block("make")
    action = make_action("makeExamples", block, CommonSettings(seed=2))
    report = action.run(lines.append, lambda *done, **figures: None)
    assert report.exit_status == 0
    return lines


def features(data) -> np.ndarray:
    block = Config.from_text(f"reader=[readerType=ExampleReader;file={data}/e]", "r.cntk").block("reader")
    with open_reader(block) as reader:
        minibatch = reader.assemble(0, reader.num_frames)
    classes = minibatch.classes["labels"]
    np.testing.assert_array_equal(classes, minibatch.matrices["features"][0].round() % 4)
    return minibatch.matrices["features"]


@pytest.mark.parametrize("reader", ["", "minibatchMode=full", "randomize=none"])
def test_every_record_is_written_once(data, reader):
    lines = run(data, "compress=false\nnumArchives=3", reader)
    size = sum(path.stat().st_size for path in data.glob("e.*"))
    assert lines == [f"{data}/e: 40 examples in 3 archives, {size} bytes"]
    found = features(data)
    assert sorted(found[0]) == list(range(COUNT))
    assert list(found[0]) != sorted(found[0])
    np.testing.assert_array_equal(found[1], -found[0] / 2)


def test_what_is_there_stays_until_it_is_to_be_made_anew(data):
    run(data)
    before = (data / "e.1").read_bytes()
    (data / "data.txt").write_text("1 2 3\n" * 3)
    assert run(data) == [f"{data}/e: 40 examples exist: nothing to do; makeMode=false creates them again."]
    assert (data / "e.1").read_bytes() == before
    assert "3 examples in 1 archives" in run(data, "makeMode=false")[0]
    (data / "e.1").write_bytes(before[:-1])
    with pytest.raises(FormatError, match=r"e\.1: .*expected a complete archive"):
        run(data)


def test_a_set_that_a_killed_run_has_left_incomplete_is_made_anew(data):
    run(data, "numArchives=3")
    before = features(data)
    (data / "e.3").unlink()
    assert "40 examples in 3 archives" in run(data, "numArchives=3")[0]
    np.testing.assert_array_equal(features(data), before)


@pytest.mark.parametrize("setting", ["numArchives=0", "shuffleMemory=0"])
def test_numbers_out_of_range_are_named(data, setting):
    key = setting.partition("=")[0]
    with pytest.raises(ConfigError, match=rf"m\.cntk:4: make\.{key} is 0; expected at least 1"):
        run(data, setting)


def test_sequences_are_refused(data):
    (data / "words.txt").write_text("a b\nb a\n")
    text = (
        f"make=[\naction=makeExamples\nexamplesPath={data}/e\nreader=[\nreaderType=LMSequenceReader\n"
        f"file={data}/words.txt\nfeatures=[dim=2]\nlabels=[labelDim=2]\n]\n]"
    )
    action = make_action("makeExamples", Config.from_text(text, "m.cntk").block("make"), CommonSettings())
    with pytest.raises((ConfigError, FormatError), match=r"m\.cntk|sequences"):
        action.run(print, lambda *done, **figures: None)
    assert not list(data.glob("e.*"))
