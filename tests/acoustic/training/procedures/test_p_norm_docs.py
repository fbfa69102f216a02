"""What p_norm.md shows, run on a few frames; the numbers that it names are the code's."""

import re

import numpy as np
import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.network.model_file import load_model
from acoustic.training.procedures.mixing_up import NOISE, POWER
from readers.config.config import Config
from tests.docs.pages import page_text

PAGE = page_text("p_norm")
EXAMPLE = re.search(r"```cntk\n(.*?)```", PAGE, re.DOTALL).group(1)
READER = (
    "reader=[\nreaderType=UCIFastReader\nfile=data\nfeatures=[dim=4;start=0]\n"
    "labels=[start=4;dim=1;labelDim=6;labelMappingFile=map]\n]"
)


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The example with small numbers in the place of large ones."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 6, 300)
    x = rng.normal(size=(6, 4))[classes] * 3 + rng.normal(size=(300, 4))
    (tmp_path / "data").write_text("".join(f"{' '.join(map(str, row))} {k}\n" for row, k in zip(x, classes)))
    (tmp_path / "map").write_text("".join(f"{k}\n" for k in range(6)))
    text = EXAMPLE.replace("0.002*4:0.0005", "0.1*4:0.02").replace("0.0005*2:0.0001", "0.02")
    text = text.replace("reader=[...]", READER).replace("400000", "200").replace("=4000", "=12")
    return Config.from_text(text.replace("360:300*5:2000", "4:8*3:6").replace("=128", "=20"), "p.cntk")


@pytest.mark.slow
def test_the_example_runs_from_its_first_command_to_its_last(config):
    lines = []
    for command in config.array("command"):
        block = config.block(command)
        make_action(block.text("action"), block, CommonSettings()).run(lines.append, lambda *done, **figures: None)
    assert sum(line.startswith("layer-wise") for line in lines) == 2
    network = load_model("models/combined")
    assert network["HLast"].type_name == "LogSumGroups"
    assert network["LDATransformOfFeatures"].value.shape == (4, 4)
    losses = re.findall(r"\[Training\] CrossEntropyWithSoftmax = ([\d.]+)", "\n".join(lines))
    assert float(losses[-1]) < 0.5 * float(losses[0])


def test_the_numbers_on_the_page_are_those_of_the_code():
    assert round(1 / POWER) == 3
    assert f"`mixUpNoise` ({NOISE:g})" in PAGE
