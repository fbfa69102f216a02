"""Compression and checksum of HTK parameter files."""

import numpy as np
import pytest

from readers.htk.storage.coding import checksum, compress


def slow_checksum(words, start=0):
    """The definition, a word at a time: c <- (65536 c + w) mod 36897."""
    value = start
    for word in words:
        value = (value * 65536 + word) % 36897
    return value


def test_checksum_of_one_and_two_words_by_hand():
    assert checksum(b"\x00\x05") == 5
    assert checksum(b"\xff\xff") == 65535 - 36897
    assert checksum(b"\x00\x01\x00\x02") == (65536 + 2) % 36897


@pytest.mark.parametrize("num_words", [0, 1, 2, 4095, 4096, 4097, 20000])
@pytest.mark.parametrize("order", [">", "<"])
def test_checksum_equals_its_definition(num_words, order):
    words = np.random.default_rng(num_words).integers(0, 65536, num_words)
    data = words.astype(order + "u2").tobytes()
    assert checksum(data, order) == slow_checksum(words.tolist())


@pytest.mark.parametrize("cut", [0, 2, 100, 9000, 20000])
def test_checksum_continues_where_it_stopped(cut):
    data = np.random.default_rng(3).integers(0, 256, 20000).astype(np.uint8).tobytes()
    assert checksum(data[cut:], start=checksum(data[:cut])) == checksum(data)


def test_compress_of_a_row_from_minus_one_to_one_by_hand():
    # A = 2 * 32767 / 2, B = 0: x = -1, 0, 1 become -32767, 0, 32767
    scale, offset, shorts = compress(np.array([[-1.0, 0.0, 1.0]], np.float32))
    assert (scale.tolist(), offset.tolist(), shorts.tolist()) == ([32767.0], [0.0], [[-32767, 0, 32767]])


def test_compress_of_a_constant_row_gives_it_back_exactly():
    scale, offset, shorts = compress(np.array([[7.25, 7.25], [0.0, 1.0]], np.float32))
    assert (scale[0], offset[0], shorts[0].tolist()) == (1.0, 7.25, [0, 0])


@pytest.mark.parametrize("spread", [1e-38, 1e-30, 1e30, 3e38])
def test_compress_stays_finite_whatever_the_spread(spread):
    frames = np.array([[0.0, spread / 3, spread]], np.float32)
    scale, offset, shorts = compress(frames)
    assert np.isfinite(scale).all()
    assert np.isfinite(offset).all()
    decoded = (shorts + offset[:, None]) / scale[:, None]
    np.testing.assert_allclose(decoded, frames, atol=2e-5 * spread + 1e-33)


def test_compress_never_leaves_the_range_that_htk_accepts():
    frames = np.random.default_rng(0).normal(size=(500, 40)).astype(np.float32) * 1000 + 12345
    _, _, shorts = compress(frames)
    assert shorts.min() >= -32767
    assert shorts.max() <= 32767
