"""The stand-in refuses what cupy refuses: otherwise the tests on it would say nothing."""

import numpy as np
import pytest

from tests.acoustic.devices.cupy_on_host import cupy


def array(*shape):
    return cupy.asarray(np.ones(shape, np.float32), order="F")


def test_no_implicit_conversion():
    for use in (np.asarray, np.array, np.ascontiguousarray):
        with pytest.raises(TypeError, match="Implicit conversion"):
            use(array(2, 3))


def test_arrays_of_the_host_are_not_operands():
    host = np.ones((2, 3), np.float32)
    with pytest.raises(TypeError, match="Unsupported type"):
        array(2, 3) + host
    with pytest.raises(TypeError, match="Unsupported type"):
        host * array(2, 3)
    with pytest.raises(TypeError, match="Unsupported type"):
        cupy.multiply(host, 2, out=array(2, 3))
    with pytest.raises(ValueError, match="cannot be used for fill"):
        array(2, 3)[...] = host
    with pytest.raises(ValueError, match="Unsupported dtype object"):
        cupy.asarray(None)


def test_memory_is_not_shared_with_the_host():
    host = np.zeros((2, 2), order="F")
    there = cupy.asarray(host)
    back = cupy.asnumpy(there, order="F")
    host[:] = 1
    back[:] = 2
    assert there.get().tolist() == [[0, 0], [0, 0]]


def test_reductions_give_arrays():
    assert type(array(2, 3).sum()) is type(cupy.vdot(array(2), array(2))) is cupy.ndarray
    assert float(array(2, 3).sum()) == 6


def test_products_are_written_to_contiguous_arrays_only():
    with pytest.raises(ValueError, match="C-contiguous"):
        cupy.dot(array(2, 2), array(2, 3), out=array(2, 3))
    out = array(3, 2)
    assert cupy.dot(array(2, 2), array(2, 3), out=out.T) is not None
    assert out.get().tolist() == [[2, 2]] * 3


def test_names_that_cupy_lacks():
    for name in ("errstate", "frombuffer", "nditer", "add.reduceat"):
        with pytest.raises(AttributeError):
            getattr(cupy.add, name[4:]) if "." in name else getattr(cupy, name)
