"""A learning rate that falls exponentially from the first minibatch to the last."""

import pytest

from acoustic.training.control.options import AFTER, AutoAdjust
from acoustic.training.options import TrainingOptions
from readers.config.options import OptionFault


@pytest.mark.parametrize("kind", ["learning_rates_per_sample", "learning_rates_per_minibatch"])
def test_it_falls_by_the_same_factor_in_every_part_of_the_training(kind):
    options = TrainingOptions(max_epochs=4, minibatch_size=10, final_learning_rate=0.01, **{kind: 0.1})
    unit = 1 if kind == "learning_rates_per_sample" else 10
    epochs = [options.epoch(index) for index in range(4)]
    assert epochs[0].learning_rate == pytest.approx(0.1 / unit)
    assert epochs[2].learning_rate == pytest.approx(0.1 / unit * 0.1**0.5)
    assert epochs[1].rate_at(0.0) == epochs[1].learning_rate
    assert epochs[1].rate_at(0.5) == pytest.approx(0.1 / unit * 0.1**0.375)
    assert epochs[3].rate_at(1.0) == pytest.approx(0.01 / unit)


def test_without_it_the_rate_stays():
    values = TrainingOptions(max_epochs=2, learning_rates_per_sample=0.1).epoch(1)
    assert values.rate_at(0.0) == values.rate_at(0.7) == 0.1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learning_rates_per_sample": (0.1, 0.2)}, "expected one learning rate > 0 beside it"),
        ({"learning_rates_per_sample": 0.0}, "expected one learning rate > 0 beside it"),
        ({"learning_rates_per_sample": 0.1, "auto_adjust": AutoAdjust(AFTER)}, "expected none beside autoAdjustLR"),
        ({"learning_rates_per_sample": 0.1, "final_learning_rate": -1.0}, "expected at least 0"),
    ],
)
def test_it_needs_one_rate_and_no_control(given, message):
    with pytest.raises(OptionFault, match=message) as fault:
        TrainingOptions(**{"max_epochs": 1, "final_learning_rate": 0.01} | given)
    assert fault.value.key == "finalLearningRate"
