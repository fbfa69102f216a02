"""The text of action write: the default layout, and every setting of a format block on one small matrix."""

import io

import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ConfigError, ShapeError
from readers.minibatches.base import Utterance
from readers.writers.text_writer import TextFormat, TextWriter

VALUES = np.array([[0.5, 0, -1.25], [2, 0.125, 0]])


def text_format(text: str) -> TextFormat:
    return TextFormat.from_config(Config.from_text(f"format=[\n{text}\n]", "f.cntk").block("format"))


def written(directory, text: str = "", records: bool = False, count: int = 2) -> str:
    with TextWriter(f"{directory}/new/out", text_format(text) if text else TextFormat()) as writer:
        writer.check({"H": 2}, count)
        for line in range(count):
            assert writer.write(Utterance(f"u{line}", {}, line, records=records), {"H": VALUES + line}) == {}
        assert not (directory / "new" / "out.H").exists()
    return (directory / "new" / "out.H").read_text()


@pytest.mark.parametrize("records", [True, False])
def test_by_default_a_line_for_each_frame(tmp_path, records):
    assert written(tmp_path, records=records) == (
        "0.500000 2.000000\n0.000000 0.125000\n-1.250000 0.000000\n"
        "1.500000 3.000000\n1.000000 1.125000\n-0.250000 1.000000\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('precisionFormat=.1;elementSeparator=","', "0.5,2.0\n0.0,0.1\n-1.2,0.0\n"),
        ("precisionFormat=.1;transpose=false", "0.5 0.0 -1.2\n2.0 0.1 0.0\n"),
        ('precisionFormat=5.1;elementSeparator="\\t"', "  0.5\t  2.0\n  0.0\t  0.1\n -1.2\t  0.0\n"),
        ("type=category", "1\n1\n1\n"),
        ('type=Category;labelMappingFile=LABELS;sampleSeparator="\\s"', "b b b\n"),
        ("type=sparse;precisionFormat=.2", "0:0.50 1:2.00\n1:0.12\n0:-1.25\n"),
        ("type=sparse;precisionFormat=.2;transpose=false", "0:0.50 2:-1.25\n0:2.00 1:0.12\n"),
        ('prologue="<%s>\\n";epilogue="</%s>\\n";type=category;sampleSeparator=" "', "<H>\n1 1 1\n</H>\n"),
        ('type=category;sampleSeparator=" ";sequencePrologue="%k\\t[%x] %n %d ";sequenceEpilogue="."',
         "u0\t[2 3] 1 0 1 1 1."),
        ('elementSeparator="%%";precisionFormat=.0', "0%%2\n0%%0\n-1%%0\n"),
    ],
)  # fmt: skip
def test_formats(tmp_path, text, expected):
    (tmp_path / "labels").write_text("a\nb\n")
    assert written(tmp_path, text.replace("LABELS", str(tmp_path / "labels")), count=1) == expected


def test_sequences_are_utterances_or_records(tmp_path):
    text = 'type=category;sampleSeparator=" ";sequencePrologue="%d:";sequenceSeparator=";";sequenceEpilogue=""'
    assert written(tmp_path, text) == "0:1 1 1;1:1 1 1"
    assert written(tmp_path / "records", text, records=True) == "0:1;1:1;2:1;3:1;4:1;5:1"


def test_standard_output_takes_all_nodes():
    stdout = io.StringIO()
    with TextWriter("-", text_format("precisionFormat=.0;epilogue=END"), stdout) as writer:
        writer.check({"a": 2, "b": 2}, 1)
        writer.write(Utterance("u", {}, 0), {"a": VALUES[:, :1], "b": VALUES[:, 1:2]})
    assert stdout.getvalue().startswith("0 2\n")
    assert stdout.getvalue().endswith("ENDEND")


def test_abandoned_text_goes_away(tmp_path):
    def fail() -> None:
        with TextWriter(f"{tmp_path}/out", TextFormat()) as writer:
            writer.check({"H": 2}, 1)
            assert writer.write(Utterance("u", {}, 0), {"H": np.full((2, 1), np.nan)}) == {"H": 2}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type=int", r"f.cntk:2: format.type is 'int'; expected real or category or sparse"),
        ("precisionFormat=%n", r"f.cntk:2: format.precisionFormat is '%n'; expected the part between % and f"),
        ("precisionFormat=99999", r"precisionFormat is '99999'; expected"),
        ("seperator=x", r"f.cntk:2: format.seperator is not known here"),
        ("labelMappingFile=x", r"labelMappingFile goes with type=category; expected that type, not real"),
        ("type=category;labelMappingFile=nix", r"f.cntk:2: format.labelMappingFile: nix: No such file"),
    ],
)
def test_faults_of_the_format(text, message):
    with pytest.raises(ConfigError, match=message):
        text_format(text)


def test_too_few_labels(tmp_path):
    (tmp_path / "labels").write_text("a\nb\n")
    writer = TextWriter(f"{tmp_path}/out", text_format(f"type=category;labelMappingFile={tmp_path}/labels"))
    with pytest.raises(ShapeError, match="labelMappingFile: 2 labels; expected 3, one for each row of H"):
        writer.check({"H": 3}, 1)
