"""Sizes of parameters that a description leaves open."""

import pytest

from tests.acoustic.descriptions.ndl.test_evaluate import scope


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("h=Input(5)\nA=Parameter(7, 0)\ny=Times(A, h)", (7, 5)),
        ("l=Input(3)\nh=Input(3)\nA=Parameter(0, 0)\ny=CRF(l, h, A)", (3, 3)),
        (
            "l=Input(4)\nh=Input(5)\nq=Input(2)\nA=Parameter(0, 30)\ny=ClassBasedCrossEntropyWithSoftmax(l, h, A, q)",
            (5, 30),
        ),
    ],
)
def test_sizes_of_parameters_left_open_follow_from_the_other_operands(text, settled):
    network = scope(text).network
    assert network.shapes["A"] == settled
    assert network["A"].value.shape == settled
