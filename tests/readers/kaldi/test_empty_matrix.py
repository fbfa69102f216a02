"""An archive in which one matrix is empty: it alone cannot be read."""

import numpy as np
import pytest

from readers.errors import FormatError
from readers.kaldi.ark import read_matrix, scan_ark, write_matrix

EMPTY = {False: b"\0BFM \4\0\0\0\0\4\0\0\0\0", True: b" [ ]\n"}


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("place", range(3))
def test_only_the_empty_matrix_fails(tmp_path, text, place):
    frames = np.arange(6, dtype=np.float32).reshape(3, 2)
    path, names = tmp_path / "a.ark", ["u0", "u1", "u2"]
    with path.open("wb") as file:
        for number, name in enumerate(names):
            if number == place:
                file.write(f"{name} ".encode() + EMPTY[text])
            else:
                write_matrix(file, name, frames, text)
    entries = scan_ark(path)
    assert [entry.key for entry in entries] == names
    for number, entry in enumerate(entries):
        if number == place:
            with pytest.raises(FormatError, match=r"0 (rows|frames of 0 values)"):
                read_matrix(path, entry.offset)
        else:
            np.testing.assert_array_equal(read_matrix(path, entry.offset), frames)
