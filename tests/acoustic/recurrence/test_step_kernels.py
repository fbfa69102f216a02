"""The compiled steps of a loop against their plain Python, and that against numpy."""

import ctypes

import numpy as np
import pytest

from acoustic.recurrence import codes, step_kernels
from acoustic.recurrence.step_kernels import LoopTables
from acoustic.recurrence.weight_layout import Factor
from acoustic.runtime import blas, memory

ROWS = 3
CODES = range(8)
STEPS, SLOTS = 5, 4


def plain(function):
    return getattr(function, "py_func", function)


def compiled(function):
    return function


def matrix(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def operations(keep, whats):
    """One of each code, x and y the first blocks of a column, or of the constants, the results below them."""
    table = []
    for code in CODES:
        starts = [0 if code == codes.COLUMN else ROWS, 0]
        table.append((code, (2 + code) * ROWS, *starts, ROWS, *(whats or (keep, 0))))
    return np.array(table)


@pytest.mark.parametrize("keep", [0, 1])
def test_operations(keep):
    rng = np.random.default_rng(2)
    values, constants = matrix(rng, 5, 11 * ROWS), matrix(rng, 2 * ROWS)
    found = [values.copy(), values.copy()]
    for choose, mine in zip((plain, compiled), found):
        choose(step_kernels.operate)(mine, constants, operations(keep, None), 1, 4)
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)
    mine = found[1]
    np.testing.assert_array_equal(mine[[0, 4]], values[[0, 4]])
    y, x = values[1:4, :ROWS], values[1:4, ROWS : 2 * ROWS]
    c = constants[:ROWS]
    linear = [x, -x, np.broadcast_to(c, x.shape), x * y, x * c]
    if keep:
        linear = [one + values[1:4, (2 + k) * ROWS : (3 + k) * ROWS] for k, one in enumerate(linear)]
    expected = [*linear, 1 / (1 + np.exp(-x)), np.tanh(x), np.maximum(x, 0)]
    np.testing.assert_allclose(mine[1:4, 2 * ROWS : 10 * ROWS], np.concatenate(expected, axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("whats", [(1, 1), (2, 2), (0, 1), (2, 0)])
def test_operations_backward(whats):
    rng = np.random.default_rng(3)
    values, gradients, constants = matrix(rng, 5, 11 * ROWS), matrix(rng, 5, 11 * ROWS), matrix(rng, 2 * ROWS)
    for row in operations(0, whats):
        found = []
        for choose in (plain, compiled):
            grads, sums = gradients.copy(), constants.copy()
            choose(step_kernels.operate_backward)(grads, values, constants, sums, row[np.newaxis], 1, 4)
            found.append((grads, sums))
        for one, other in zip(*found):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        grads, sums = found[1]
        code, out = row[0], slice(row[1], row[1] + ROWS)
        np.testing.assert_array_equal(grads[[0, 4]], gradients[[0, 4]])
        g, v = gradients[1:4, out], values[1:4, out]
        y, x, c = values[1:4, :ROWS], values[1:4, ROWS : 2 * ROWS], constants[:ROWS]
        by_x = [g, -g, None, g * y, g * c, g * v * (1 - v), g * (1 - v * v), g * (v > 0)][code]
        by_constant = {codes.COLUMN: g, codes.TIMES_COLUMN: g * x}.get(code)
        if by_constant is not None:
            np.testing.assert_allclose(sums[:ROWS], c + by_constant.sum(axis=0), rtol=1e-5, atol=1e-5)
        for what, side, expected in ((whats[0], slice(ROWS, 2 * ROWS), by_x), (whats[1], slice(ROWS), g * x)):
            before = gradients[1:4, side]
            given = code == codes.TIMES if side.start is None else expected is not None
            expected = [before, before + expected, expected][what] if given else before
            np.testing.assert_allclose(grads[1:4, side], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("code", [codes.SIGMOID, codes.TANH, codes.RELU])
def test_activations_in_place(code):
    rng = np.random.default_rng(4)
    values, gradients = matrix(rng, 2, 40), matrix(rng, 2, 40)
    apart, together = np.array([[code, 20, 0, 0, 20, 0, 0]]), np.array([[code, 0, 0, 0, 20, 0, 0]])
    one, other = values.copy(), values.copy()
    step_kernels.operate(one, values[0], apart, 0, 2)
    step_kernels.operate(other, values[0], together, 0, 2)
    np.testing.assert_array_equal(one[:, 20:], other[:, :20])
    grads = gradients.copy()
    grads[:, 20:] = gradients[:, :20]
    apart[0, 5] = together[0, 5] = codes.WRITE
    step_kernels.operate_backward(grads, one, values[0], values[0], apart, 0, 2)
    step_kernels.operate_backward(gradients, other, values[0], values[0], together, 0, 2)
    np.testing.assert_allclose(grads[:, :20], gradients[:, :20], rtol=1e-6)


def test_not_a_number_shows():
    values = np.full((1, 11 * ROWS), np.nan, np.float32)
    step_kernels.operate(values, np.full(ROWS, np.nan, np.float32), operations(0, None), 0, 1)
    assert np.isnan(values).all()


@pytest.mark.parametrize("choose", [plain, compiled])
@pytest.mark.parametrize("delay", [1, 2, -1])
def test_delays(choose, delay):
    rng = np.random.default_rng(5)
    values, before = matrix(rng, STEPS * SLOTS, 2 * ROWS), matrix(rng, 2 * SLOTS * ROWS)
    usable = rng.random((1, STEPS, SLOTS)) < 0.7
    if delay < 0:
        usable[:, delay:] = False
    table, default = np.array([[0, ROWS, ROWS, delay, 0, ROWS, 0]]), np.array([0.25], np.float32)
    by_step, early = values.reshape(STEPS, SLOTS, -1).copy(), before.reshape(2, SLOTS, ROWS)
    given = by_step.copy()
    for step in range(STEPS):
        choose(step_kernels.read_delays)(values, before, table, default, usable, step, SLOTS, 1, 3)
        for slot in (1, 2):
            if not usable[0, step, slot]:
                by_step[step, slot, ROWS:] = 0.25
            else:
                past = step - delay
                by_step[step, slot, ROWS:] = given[past, slot, :ROWS] if past >= 0 else early[step, slot]
    np.testing.assert_array_equal(values.reshape(STEPS, SLOTS, -1), by_step)


@pytest.mark.parametrize("choose", [plain, compiled])
def test_gradients_of_delays(choose):
    rng = np.random.default_rng(6)
    gradients, usable = matrix(rng, STEPS * SLOTS, 2 * ROWS), rng.random((1, STEPS, SLOTS)) < 0.7
    expected = gradients.reshape(STEPS, SLOTS, -1).copy()
    for step in reversed(range(STEPS)):
        table = np.array([[0, ROWS, ROWS, 2, 0, ROWS, 0]])
        choose(step_kernels.add_delayed)(gradients, table, usable, step, SLOTS, 0, 3)
        for slot in range(3):
            if step >= 2 and usable[0, step, slot]:
                expected[step - 2, slot, :ROWS] += expected[step, slot, ROWS:]
    np.testing.assert_array_equal(gradients.reshape(STEPS, SLOTS, -1), expected)


def by_ctypes(function, size, a, b, c, factors):
    """sgemm at an address, as compiled code calls it."""
    sgemm = blas.mkl_sgemm() or blas._numpys_gemm(np.dtype(np.float32))
    (first, *a), (second, *b), (_, *c), (scale, keep) = a, b, c, factors
    sgemm(memory.COLUMN_MAJOR, first, second, *size, scale, *map(int, a), *map(int, b), keep, *map(int, c))


def lstm_like(rng):
    """Tables of h(t) = tanh(x(t) + R h(t-1) + b), x, where it is made, in the rows below the delay's."""
    parameter = np.asfortranarray(matrix(rng, ROWS, ROWS))
    address, wide = blas.general_function()
    product = [parameter.ctypes.data, memory.PLAIN, ROWS, ROWS, ROWS, 0, ROWS, 1]
    forward = np.array([[0, 0, 1], [1, 0, 2]]), np.array([product, product])
    out = ROWS
    rows = [[codes.COLUMN, out, 0, 0, ROWS, 1, 0], [codes.TANH, out, out, 0, ROWS, 0, 0]]
    delays = np.array([[out, 0, ROWS, 1, 0, ROWS, 0]])
    return parameter, np.array([address, wide]), forward, np.array(rows), delays


@pytest.mark.parametrize("choose", [plain, compiled])
def test_all_steps_forward_and_backward(choose, monkeypatch):
    rng = np.random.default_rng(7)
    if choose is plain:
        monkeypatch.setattr(step_kernels, "multiply", plain(step_kernels.multiply))
        monkeypatch.setattr(step_kernels, "sgemm", by_ctypes)
    parameter, functions, (segments, products), operations, delays = lstm_like(rng)
    values, constants = matrix(rng, STEPS * SLOTS, 2 * ROWS), matrix(rng, ROWS)
    x = values[:, ROWS:].reshape(STEPS, SLOTS, ROWS).copy()
    usable = np.ones((1, STEPS, SLOTS), bool)
    usable[0, 0] = usable[0, 3, 2] = False
    defaults, before = np.array([0.5], np.float32), np.zeros(0, np.float32)
    zeroed = np.zeros((0, 2), np.int64)
    for first, last in ((0, 1), (1, SLOTS)):
        tables, place = LoopTables(segments, products, operations, delays), np.array([SLOTS, first, last])
        choose(step_kernels.loop_forward)(functions, values, constants, tables, defaults, usable, before, place)
    past, hidden = np.empty_like(x), np.empty_like(x)
    for t in range(STEPS):
        past[t] = np.where(usable[0, t][:, None], hidden[t - 1], 0.5)
        hidden[t] = np.tanh(x[t] + past[t] @ parameter.T + constants)
    expected = np.concatenate([past, hidden], axis=2).reshape(values.shape)
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)

    gradients, sums = matrix(rng, *values.shape), matrix(rng, 2, ROWS)
    given = gradients[:, ROWS:].reshape(STEPS, SLOTS, ROWS).copy()
    products = np.array([[parameter.ctypes.data, memory.TRANSPOSED, ROWS, ROWS, ROWS, ROWS, 0, 0]] * 2)
    operations = operations[::-1].copy()
    operations[:, 5] = codes.ADD
    for part, (first, last) in zip(sums, ((0, 2), (2, SLOTS))):
        tables = LoopTables(segments[::-1].copy(), products, operations, delays)
        place = np.array([SLOTS, first, last])
        choose(step_kernels.loop_backward)(functions, gradients, values, constants, part, tables, usable, zeroed, place)
    total = np.zeros(ROWS)
    for t in reversed(range(STEPS)):
        inner = given[t] * (1 - hidden[t] ** 2)
        total += inner.sum(axis=0)
        if t:
            given[t - 1] += np.where(usable[0, t][:, None], inner @ parameter, 0)
        np.testing.assert_allclose(gradients.reshape(STEPS, SLOTS, -1)[t, :, ROWS:], inner, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sums.sum(axis=0), total, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("in_panels", [False, True])
@pytest.mark.parametrize("keep", [0, 1])
def test_factors_multiply(transposed, in_panels, keep):
    """A parameter laid out, and again after a change, as the first operand."""
    rng, (rows, cols) = np.random.default_rng(8), (70, 33)
    factor, (address, wide) = Factor(transposed, in_panels), blas.general_function()
    parameter = np.asfortranarray(matrix(rng, rows, cols))
    for version in (1, 2, 3, 3):
        values = matrix(rng, 6, rows + cols)
        if version != factor.version:
            parameter *= 2
        factor.renew(parameter, version)
        a = parameter.T if transposed else parameter
        k = a.shape[1]
        product = np.array([factor.address, factor.how, factor.distance, *a.shape, 0, k, keep])
        end = k + len(a)
        expected = values[1:5, :k] @ a.T + keep * values[1:5, k:end]
        functions = np.array([address, wide])
        step_kernels.multiply(functions, product, values, 1, 5)
        np.testing.assert_allclose(values[1:5, k:end], expected, rtol=1e-4, atol=1e-4)


def test_addresses_are_numbers():
    assert all(isinstance(one, int) for one in blas.general_function())
    assert blas.address_of(ctypes.CDLL(None).memcpy) > 0
