"""Frames reduced in the processor's registers against the same in numpy, for sizes that fill tiles and others."""

import numpy as np
import pytest

from acoustic.runtime import tiles
from acoustic.runtime.memory import aligned_zeros
from acoustic.runtime.recorder import address_of

pytestmark = pytest.mark.skipif(not tiles.are_usable(), reason="this processor has no registers for tiles")
OUT, IN = 0, 1


def halved(x):
    """Rounded to bfloat16, to nearest, even where that is undecided; float64."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    bits = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(float)


class Side:
    """A table with what `reduce_frames` reads of it, for one side of a layer that has a bias."""

    def __init__(self, side, rows, rank, count):
        from acoustic.training.natural_gradient import layer_table, tile_kernels

        rng = np.random.default_rng(rows + rank)
        self.side, self.w = side, np.asfortranarray(rng.standard_normal((rank, rows + side)) * 0.1, np.float32)
        self.x = np.asfortranarray(rng.standard_normal((rows, count)), np.float32)
        self.to = np.full((rows, count), 7, np.float32, order="F")
        self.norms, self.summed = np.zeros(count, np.float32), np.zeros(rows, np.float32)
        self.ones = rng.standard_normal(count).astype(np.float32)
        self.scales, self.j = np.ones(rank + 2), np.zeros((rank, rows + 1), np.float32, order="F")
        self.memory = aligned_zeros(int(tile_kernels.memory_size(rows, rank, count)), np.uint8)
        self.memory[:] = 255  # not numbers, as bfloat16: nothing may be read that was not written
        self.place = np.array([address_of(self.memory)])
        self.copies = aligned_zeros(int(tile_kernels.estimate_size(rows, rank, 1)), np.uint8)
        self.table = np.zeros(layer_table.FIELDS, np.int64)
        fields = {"ROWS": rows, "RANK": rank, "UPDATES": 1, "VERSION": 1, "W": self.w, "SCALES": self.scales}
        for name, value in {**fields, "J": self.j, "HALF_W": self.copies}.items():
            self.table[getattr(layer_table, name) + side] = value if isinstance(value, int) else address_of(value)
        self.table[layer_table.BIAS], self.table[layer_table.HALF_MEMORY] = 1, address_of(self.place)

    def reduce(self):
        from acoustic.training.natural_gradient.tile_kernels import reduce_frames

        places, count = (address_of(self.x), address_of(self.to)), self.x.shape[1]
        return reduce_frames(self.table, self.side, *places, count, 0, self.norms, self.ones, self.summed)


@pytest.mark.parametrize("side", [OUT, IN])
@pytest.mark.parametrize("count", [1, 16, 37, 48])
@pytest.mark.parametrize(("rows", "rank"), [(32, 5), (50, 20), (183, 80), (200, 20), (512, 80), (792, 96), (97, 81)])
def test_reduced_frames_are_those_of_the_equations(rows, rank, count, side):
    it = Side(side, rows, rank, count)
    weights = it.ones.astype(float)
    after, before = it.reduce()
    w, last = halved(it.w[:, :rows]), it.w[:, rows:].astype(float)
    h = w @ halved(it.x) + (last if side == IN else 0)
    left = it.x - w.T @ halved(h)
    np.testing.assert_allclose(it.to, left, atol=0.005 * np.abs(left).max())  # H near the middle of two bfloat16
    given, norms = (it.x.astype(float) ** 2).sum(), (it.to.astype(float) ** 2).sum(axis=0)
    if side == IN:
        np.testing.assert_allclose(it.ones, 1 - (h * last).sum(axis=0), atol=1e-4)
        given, norms = given + count, norms + it.ones.astype(float) ** 2
        np.testing.assert_allclose(it.j[:, rows], h.sum(axis=1), rtol=1e-4, atol=1e-3)
    else:
        np.testing.assert_allclose(it.summed, it.to @ weights, atol=1e-3)
    np.testing.assert_allclose(it.norms, norms, rtol=1e-5)
    np.testing.assert_allclose([after, before], [norms.sum(), given], rtol=1e-5)


def test_the_copies_of_an_estimate_follow_it():
    it = Side(OUT, 50, 20, 16)
    it.reduce()
    first = it.to.copy()
    it.w *= 0
    it.reduce()
    assert (it.to == first).all()  # the same scales: nobody has changed it
    it.scales[3] += 1
    it.reduce()
    assert (it.to == it.x).all()
