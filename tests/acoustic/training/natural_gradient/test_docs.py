"""What natural_gradient.md shows is read as it says."""

import re

from acoustic.training.configuration import training_options
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import NaturalGradient
from readers.config.config import Config
from tests.docs.pages import page_text

PAGE = page_text("natural_gradient")


def test_the_configuration():
    text = re.search(r"```cntk\n(SGD=.*?)```", PAGE, re.DOTALL)[1]
    options = training_options(Config.from_text(text, "exp.cntk").block("SGD"))
    assert options.rule == NaturalGradient()
    assert options.final_learning_rate == 0.001


def test_the_python():
    source = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1].replace("train(network", "found = (network")
    names = {"network": None, "reader": None}
    exec(source.replace(', model_path="exp/dnn"', ""), names)
    assert isinstance(names["options"], TrainingOptions)


def test_every_parameter_is_there_with_its_default():
    for declared in NaturalGradient.declared():
        assert f"`{declared.key}`" in PAGE, declared.key
        default = declared.default
        assert f"{default:g}" if isinstance(default, float) else str(default) in PAGE
