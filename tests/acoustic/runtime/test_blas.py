"""Products that are scaled and added to what is there, by each of the ways to make them."""

import numpy as np
import pytest

from acoustic.runtime import blas
from acoustic.runtime.products import multiply
from acoustic.runtime.tables import is_compiled
from acoustic.runtime.thread_team import ThreadTeam

WAYS = {"as installed": (), "numpy's library": ("single_product",), "no library": ("single_product", "_numpys_gemm")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("scale", "keep"), [(1, 0), (1, 1), (0.25, 0.9), (2, 0), (0, 0.5)])
def test_scaled_products_add_up(way, dtype, scale, keep, monkeypatch):
    for name in WAYS[way]:
        monkeypatch.setattr(blas, name, lambda *arguments: None)
    rng = np.random.default_rng(0)
    for m, k, n in ((3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (70, 33, 65)):
        a, b = rng.standard_normal((m, k)).astype(dtype), np.asfortranarray(rng.standard_normal((k, n)).astype(dtype))
        for first, second in ((a, b), (np.asfortranarray(a), b), (a, np.ascontiguousarray(b)), (a[::-1], b[:, ::-1])):
            whole = np.asfortranarray(rng.standard_normal((m, n + 2)).astype(dtype))
            before, part = whole.copy(order="F"), whole[:, 1:-1]
            multiply(first, second, part, scale, keep)
            expected = scale * (first.astype(float) @ second) + keep * before[:, 1:-1].astype(float)
            np.testing.assert_allclose(part, expected, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(whole[:, [0, -1]], before[:, [0, -1]])


@pytest.mark.parametrize("way", WAYS)
def test_without_keeping_what_was_there_does_not_matter(way, monkeypatch):
    for name in WAYS[way]:
        monkeypatch.setattr(blas, name, lambda *arguments: None)
    out = np.full((2, 3), np.nan, np.float32, order="F")
    multiply(np.ones((2, 4), np.float32), np.ones((4, 3), np.float32), out, 0.5)
    np.testing.assert_array_equal(out, 2)


@pytest.mark.skipif(not blas.controllable(), reason="numpy's BLAS is none that we know")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_library_behind_numpy_is_found(dtype):
    assert blas._numpys_gemm(np.dtype(dtype)) is not None


def shared_work(team, monkeypatch):
    """A list that grows with every work that a team is given, in Python or as calls to make."""
    shares, run, play = [], team.run, team.play
    monkeypatch.setattr(team, "run", lambda work, count=None: (shares.append("run"), run(work, count)))
    monkeypatch.setattr(team, "play", lambda tables: (shares.append("play"), play(tables)))
    return shares


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [2, 3])
def test_large_products_are_shared_by_a_team_and_small_ones_are_not(dtype, size, monkeypatch):
    team = ThreadTeam(size)
    shares = shared_work(team, monkeypatch)
    rng = np.random.default_rng(0)
    for m, k, n in ((200, 150, 101), (20, 15, 10), (300, 9000, 1), (150, 100, 151)):
        a, b = (np.asfortranarray(rng.standard_normal(shape).astype(dtype)) for shape in ((m, k), (k, n)))
        out = np.asfortranarray(rng.standard_normal((m, n)).astype(dtype))
        expected = 0.5 * (a @ b) + 2 * out
        multiply(a, b, out, 0.5, 2.0, team)
        np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3)
        out[...] = 1  # the same again, in the same memory
        multiply(a, b, out, 0.5, 0.0, team)
        np.testing.assert_allclose(out, 0.5 * (a @ b), rtol=1e-3, atol=1e-3)
    by_address = dtype is np.float32 and blas.general_function() is not None and is_compiled()
    assert shares == ["play" if by_address else "run"] * 4


def test_networks_whose_frames_cannot_be_shared_out_share_their_products(monkeypatch):
    """Batch normalisation: the same gradients with one thread and with two."""
    from acoustic.engine.engine import Engine
    from acoustic.network.network import Network

    network = Network("double", seed=1)
    network.backend.__dict__["team"] = ThreadTeam(2)
    network.add("Input", "x", rows=200)
    for name, rows, cols in (("W", 120, 200), ("g", 120, 1), ("s", 120, 1)):
        network.add("Parameter", name, rows=rows, cols=cols)
    for name in ("m", "i"):
        network.add("Parameter", name, rows=120, needGradient=False)
    network.add("BatchNormalization", "n", network.add("Times", "t", "W", "x"), "g", "s", "m", "i")
    network.add("SumElements", "J", network.add("Sigmoid", "v", "n"))
    matrices = {"x": np.random.default_rng(0).standard_normal((200, 128))}
    shares = shared_work(network.backend.team, monkeypatch)
    gradients = []
    for threads in (1, 2):
        engine = Engine(network, ["J"], threads=threads)
        assert not shares
        engine.forward(matrices, training=True)
        engine.backward()
        gradients.append(engine.gradient("W").copy())
    assert len(shares) == 2
    np.testing.assert_allclose(*gradients, rtol=1e-10)


@pytest.mark.skipif(blas.single_product() is None, reason="no library that we know")
def test_matrices_that_the_compiled_call_does_not_take():
    a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    a.flags.writeable = False
    for first, second in ((a, b), (a[::-1], b), (np.ones((3, 8), np.float32)[:, ::2], b)):
        out = np.empty((3, 5), np.float32, order="F")
        multiply(first, second, out)
        np.testing.assert_array_equal(out, 4)
    unaligned = np.frombuffer(b"x" + b.tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 5)
    out = np.empty((3, 5), np.float32, order="F")
    multiply(a, unaligned, out)
    np.testing.assert_array_equal(out, 4)
