"""Where matrices are made."""

import numpy as np
import pytest

from acoustic.kernels.backend import Backend
from acoustic.runtime.memory import LINE_BYTES


@pytest.mark.parametrize("precision", ["float", "double"])
@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (0, 4), (1000, 1201)])
def test_a_matrix_begins_where_a_line_of_the_cache_does(precision, shape):
    backend = Backend(precision)
    for _ in range(5):
        matrix = backend.empty(*shape)
        assert matrix.shape == shape
        assert matrix.dtype == backend.dtype
        assert matrix.flags.f_contiguous
        assert matrix.flags.writeable
        assert matrix.size == 0 or matrix.ctypes.data % LINE_BYTES == 0
    assert isinstance(backend.memory(7), np.ndarray)
    assert backend.memory(7).shape == (7,)
