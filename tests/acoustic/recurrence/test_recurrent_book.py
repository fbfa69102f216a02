"""The LSTM of the book's section 2.6.3 as it is written there, in nodes and two macros (eq. 2.183 to 2.199)."""

import numpy as np

from tests.acoustic.recurrence.recurrent_networks import (
    check_numerically,
    check_parallel_is_the_sum,
    data,
    of_ndl,
    values,
    whole,
)

# As printed but for one-letter slips (ElementTime); W(ci) is diagonal, W(cf) and W(co) are full there.
EQUATIONS = """
Macro2W1b(W1, I1, W2, I2, b)
{
  S1 = Plus(Times(W1, I1), Times(W2, I2))
  Macro2W1b = Plus(S1, b)
}
Macro3W1b(W1, I1, W2, I2, W3, I3, b)
{
  S1 = Macro2W1b(W1, I1, W2, I2, b)
  Macro3W1b = Plus(S1, Times(W3, I3))
}
Wxi=Parameter(5,4); Wxf=Parameter(5,4); Wxc=Parameter(5,4); Wxo=Parameter(5,4)
Whi=Parameter(5,5); Whf=Parameter(5,5); Whc=Parameter(5,5); Who=Parameter(5,5)
dci=Parameter(5,1); Wcf=Parameter(5,5); Wco=Parameter(5,5)
bi=Parameter(5); bf=Parameter(5); bc=Parameter(5); bo=Parameter(5)
Hd = Delay(5, H)
Cd = Delay(5, C)
T1 = Macro2W1b(Wxi, X, Whi, Hd, bi)
I = Sigmoid(Plus(T1, DiagTimes(dci, Cd)))
T2 = Macro3W1b(Wxf, X, Whf, Hd, Wcf, Cd, bf)
F = Sigmoid(T2)
T3 = Macro2W1b(Wxc, X, Whc, Hd, bc)
T4 = ElementTimes(F, Cd)
T5 = ElementTimes(I, Tanh(T3))
C = Plus(T4, T5)
T6 = Macro3W1b(Wxo, X, Who, Hd, Wco, C, bo)
O = Sigmoid(T6)
H = ElementTimes(O, Tanh(C))
top = H
"""


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_the_nodes_compute_equations_2_178_to_2_182():
    network = of_ndl(EQUATIONS)
    w = {node.name: node.value for node in network.parameters()}
    (xs,), (labels,) = data((6,))
    h = c = np.full((5, 1), 0.1)  # defaultHiddenActivity
    expected = []
    for t in range(6):
        x = xs[:, t : t + 1]
        i = sigmoid(w["Wxi"] @ x + w["Whi"] @ h + w["dci"] * c + w["bi"])
        f = sigmoid(w["Wxf"] @ x + w["Whf"] @ h + w["Wcf"] @ c + w["bf"])
        c = f * c + i * np.tanh(w["Wxc"] @ x + w["Whc"] @ h + w["bc"])
        o = sigmoid(w["Wxo"] @ x + w["Who"] @ h + w["Wco"] @ c + w["bo"])
        h = o * np.tanh(c)
        expected.append(h)
    found = values(network, "H", [whole([xs], [labels])])
    np.testing.assert_allclose(found, np.hstack(expected), rtol=1e-12)


def test_its_gradients():
    network = of_ndl(EQUATIONS)
    check_numerically(network, *whole(*data((5, 7, 2))))
    check_parallel_is_the_sum(network)


def test_the_old_names_of_a_delay_and_its_settings():
    """4.1.4.36: Delay with delayTime and defaultPastValue is PastValue with timeStep and defaultHiddenActivity."""
    old = of_ndl("top = Delay(4, 1, x, delayTime=2, defaultPastValue=0.3)")
    new = of_ndl("top = PastValue(4, x, timeStep=2, defaultHiddenActivity=0.3)")
    assert old["top"].type_name == new["top"].type_name == "PastValue"
    assert old["top"].settings == new["top"].settings
    (xs,), (labels,) = data((4,))
    expected = np.hstack([np.full((4, 2), 0.3), xs[:, :2]])
    np.testing.assert_array_equal(values(old, "top", [whole([xs], [labels])]), expected)
