"""An archive in which one matrix is empty: it alone cannot be read."""

import struct

import numpy as np
import pytest

from readers.errors import FormatError
from readers.kaldi.ark import read_matrix, scan_ark, write_matrix


def compressed(kind, num_frames, dim):
    """What Kaldi writes of a compressed matrix: 8 bytes of its range, its size, and 8 bytes of each column of CM."""
    columns = bytes(8 * dim) if kind == b"CM " else b""
    return b"\0B" + kind + struct.pack("<ffii", 0, 0, num_frames, dim) + columns


EMPTY = [
    b" [ ]\n",
    *(b"\0BFM " + struct.pack("<bibi", 4, num_frames, 4, dim) for num_frames, dim in ((0, 0), (0, 2), (3, 0))),
    *(compressed(kind, *size) for kind in (b"CM ", b"CM2 ", b"CM3 ") for size in ((0, 0), (0, 2), (3, 0))),
]


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("place", range(3))
def test_only_the_empty_matrix_fails(tmp_path, empty, place):
    frames = np.arange(6, dtype=np.float32).reshape(3, 2)
    path, names = tmp_path / "a.ark", ["u0", "u1", "u2"]
    with path.open("wb") as file:
        for number, name in enumerate(names):
            if number == place:
                file.write(f"{name} ".encode() + empty)
            else:
                write_matrix(file, name, frames, text=empty == EMPTY[0])
    entries = scan_ark(path)
    assert [entry.key for entry in entries] == names
    for number, entry in enumerate(entries):
        if number == place:
            with pytest.raises(FormatError, match=r"0 rows|0 frames of|of 0 values"):
                read_matrix(path, entry.offset)
        else:
            np.testing.assert_array_equal(read_matrix(path, entry.offset), frames)
