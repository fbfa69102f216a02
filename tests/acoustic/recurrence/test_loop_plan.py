"""Where the values of a loop's nodes lie in compiled form, and what is computed."""

import numpy as np
import pytest

from acoustic.descriptions.ndl.evaluate import Scope
from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.recurrence.loop_node import Loop
from acoustic.recurrence.loop_plan import COLUMN, COPY, NEGATE, SIGMOID, TANH, TIMES, TIMES_COLUMN, Operation, Product
from acoustic.recurrence.loop_tables import Tables
from readers.config.syntax import Source

ROWS = 8
LSTM = """
gate(x, h) = [ W = Parameter(8, 5)
 R = Parameter(8, 8)
 B = Parameter(8)
 V = Plus(Plus(Times(W, x), B), Times(R, h)) ]
x = Input(5)
y = Input(8)
hPast = PastValue(8, 1, h)
cPast = PastValue(8, 1, c)
i = gate(x, hPast)
f = gate(x, hPast)
z = gate(x, hPast)
o = gate(x, hPast)
P = Parameter(8)
c = Plus(ElementTimes(Sigmoid(Plus(f, DiagTimes(P, cPast))), cPast), ElementTimes(Sigmoid(i), Tanh(z)))
h = ElementTimes(Sigmoid(o), Tanh(c))
J = SquareError(y, h, tag=criterion)
"""


def plan_of(text, roots=("J",)):
    network = Network("float", threads=1)
    Scope(network).evaluate(Source.from_text(text, "net.ndl"))
    network.validate()
    loop = next(node for node in Engine(network, roots).graph.order if isinstance(node, Loop))
    return loop.compiled.plan, loop


def codes(plan):
    """Per segment the codes of the operations, or the number of products."""
    return [
        len(segment) if isinstance(segment[0], Product) else [one.code for one in segment] for segment in plan.segments
    ]


def test_an_lstm_has_nine_blocks_of_rows():
    """Two delays, four gates, the cell, what of it goes out, and the output; all else lies where it goes."""
    plan, loop = plan_of(LSTM)
    assert plan.num_rows == 9 * ROWS
    assert len(plan.before) == 4
    assert all(not product.keep for product in plan.before)
    assert not plan.framed
    products, operations = plan.segments[0], [one for segment in plan.segments[1:] for one in segment]
    assert len(products) == 4
    assert all(isinstance(one, Product) and one.keep for one in products)
    assert all(isinstance(one, Operation) for one in operations)
    assert sorted(one.code for one in operations) == sorted(
        [COLUMN] * 4 + [TIMES_COLUMN] + [SIGMOID] * 3 + [TANH] * 2 + [TIMES] * 3
    )
    cell = [one for one in operations if one.code == TIMES and one.out == loop.inside["c"]]
    assert [one.keep for one in cell] == [False, True]
    assert len(set(plan.rows.values())) == 9


def test_what_is_wanted_outside_has_rows_of_its_own():
    plan, loop = plan_of(LSTM, ("J", "i.V"))
    assert plan.num_rows == 10 * ROWS
    assert list(plan.rows.values()).count(plan.rows[loop.inside["i.V"]]) > 1  # its products


SIMPLE = (
    "x=Input(8)\ny=Input(8)\nR=Parameter(8,8)\nB=Parameter(8)\np=PastValue(8,1,h)\nJ=SquareError(y,h,tag=criterion)\n"
)


@pytest.mark.parametrize(
    ("text", "expected", "rows"),
    [
        ("h=Plus(p,x)", [[COPY]], 2),  # x is copied to where the sum will be
        ("h=Minus(x,p)", [[NEGATE]], 2),
        ("h=Minus(p,x)", [[COPY, NEGATE]], 3),
        ("h=Tanh(Plus(B,Plus(Times(R,p),x)))", [1, [COLUMN, TANH]], 2),
        ("h=Tanh(Plus(p,B))", [[COPY, COLUMN, TANH]], 2),
        ("h=Plus(Tanh(Times(R,p)),p)", [1, [TANH, COPY, COPY]], 3),
        ("h=ElementTimes(Times(R,p),p)", [1, [TIMES]], 3),
        ("s=Times(R,p)\nh=Plus(Sigmoid(s),s)", [1, [SIGMOID, COPY, COPY]], 4),
        ("h=Plus(Times(R,p),Times(R,Tanh(p)))", [[TANH], 1, 1], 3),
        ("h=Minus(Times(R,p),Times(R,p))", [2, [NEGATE]], 3),
        ("h=Sigmoid(Tanh(Times(R,p)))", [1, [TANH, SIGMOID]], 3),
    ],
)
def test_what_lies_where(text, expected, rows):
    plan, _ = plan_of(SIMPLE + text + "\n")
    assert plan.num_rows == rows * ROWS
    assert codes(plan) == expected


def test_products_from_outside_come_in_where_the_loop_alone_needs_them():
    text = SIMPLE + "W=Parameter(8,8)\nu=Times(W,x)\nh=Tanh(Plus(Times(R,p),u))\n"
    plan, _ = plan_of(text)
    assert [product.home for product in plan.before] == [plan.before[0].home]
    plan, loop = plan_of(text, ("J", "u"))
    assert plan.before == []
    assert [loop.operands[at].name for at in plan.copied] == ["u"]


def test_nodes_that_are_needed_at_once_share_no_rows():
    plan, loop = plan_of(LSTM)
    names = {position: name for name, position in loop.inside.items()}
    sharers = {}
    for position, row in plan.rows.items():
        sharers.setdefault(row, set()).add(names[position])
    assert all(len([one for one in group if one in ("h", "c", "hPast", "cPast")]) <= 1 for group in sharers.values())
    assert np.all(np.diff(sorted(sharers)) >= ROWS)


@pytest.mark.parametrize("backward", [False, True])
def test_every_second_step_makes_its_products_in_the_opposite_order(backward):
    plan, _ = plan_of(LSTM)
    tables = Tables(plan)
    table = tables.backward(set()) if backward else tables.forward()
    assert table.order == [0, 1, 2, 3, 3, 2, 1, 0]
    out, keep = table.products[:, 6].tolist(), table.products[:, 7].tolist()
    if backward:  # gradients of one operand: whichever is made first writes it
        assert len(set(out)) == 1
        assert keep == [0, 1, 1, 1] * 2
    else:
        assert out[4:] == out[3::-1]
        assert len(set(out)) == 4
        assert keep == [1] * 8


def test_products_that_add_up_in_the_same_rows_start_in_either_order():
    plan, _ = plan_of(
        """
h = Tanh(s)
past = PastValue(8, 1, h)
A = Parameter(8, 8)
B = Parameter(8, 8)
x = Input(8)
s = Plus(Times(A, past), Times(B, past))
J = SquareError(x, h, tag=criterion)
"""
    )
    table = Tables(plan).forward()
    assert table.order == [0, 1, 1, 0]
    assert table.products[:, 7].tolist() == [0, 1, 0, 1]
