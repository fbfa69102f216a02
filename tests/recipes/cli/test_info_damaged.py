"""`argonaut info` of damaged files: one message each, in little time."""

import json

import numpy as np
import pytest

from readers.errors import FormatError
from readers.tables.tensor_file import save_tensors
from recipes.file_kinds import describe_file
from tests.languages.targets import expect_own_faults, limited
from tests.recipes.cli.test_info import figures_of, put

LONG = 200_000


@pytest.mark.parametrize(
    "metadata",
    [
        {"nodes": ["x"]},
        {"nodes": 3},
        {"nodes": [{"type": ["x"]}]},
        {"nodes": [{"type": "Input", "options": 3}]},
        {"nodes": [{"type": "Input", "options": {"width": "a", "height": [], "channels": 1}}]},
    ],
)
def test_metadata_of_models(tmp_path, metadata):
    save_tensors(tmp_path / "m", {"a": np.ones((1, 2))}, metadata)
    with pytest.raises(FormatError, match=r"m: metadata \(.*\); expected the nodes of a network"):
        describe_file(str(tmp_path / "m"))


def test_a_model_of_an_odd_format_is_a_model(tmp_path):
    save_tensors(tmp_path / "m", {"a": np.ones((1, 2))}, {"format": ["x"]})
    assert figures_of(tmp_path / "m")[0] == "safetensors model"


HUGE = 10**400


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"chosen": {"acweight": 1}, "trials": 3}, "expected `chosen`, options with their values, and a list `trials`"),
        ({"chosen": [1], "trials": []}, "expected `chosen`, options"),
        ({"epoch": 1, "training": {"CE": HUGE}}, r"training \(.*\); expected errors and criteria"),
        (
            {"iteration": 1, "epoch": 1, "jobs": [], "taken": 1, "seconds": 1, "training": {"CE": HUGE}},
            "expected its jobs",
        ),
        ({"u": {"words": [{"word": "a", "start": 0, "end": HUGE}]}}, "expected word, start, end, confidence"),
    ],
)
def test_records_in_json(tmp_path, record, message):
    with pytest.raises(FormatError, match=f"f: .*{message}"):
        describe_file(str(put(tmp_path / "f", json.dumps(record))))


@pytest.mark.parametrize(
    "text",
    [
        "u1 [ YES 0.7 NO" + "(a=" * LONG,
        "# words: 2 d" + "(a=" * LONG,
        "x y" + "=a[" * LONG,
        'File type = "ooTextFile"\n' + "\n" * LONG,
    ],
)
def test_text_of_no_kind_takes_linear_time(tmp_path, text):
    with limited(5.0):
        expect_own_faults(describe_file, str(put(tmp_path / "f", text)))


@pytest.mark.parametrize(
    "text",
    [
        "1" * 5000 + "\tu1\n2\tu2\n",
        "WEBVTT\n\n0:00.000 --> " + "1" * 5000 + ":01.000\na\n",
        'File type = "ooTextFile"\nintervals: size = ' + "1" * 5000 + "\n",
        'File type = "ooTextFile"\nxmax = ' + "1" * 5000 + ".5\n",
        'File type = "ooTextFile"\nxmax = 1.5.5\n',
    ],
)
def test_numbers_of_thousands_of_digits(tmp_path, text):
    expect_own_faults(describe_file, str(put(tmp_path / "f", text)))
