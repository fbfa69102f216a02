"""Launches of kernels in CUDA C++ on arrays of cupy."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from acoustic.kernels.cuda.source import THREADS

MOST_BLOCKS = 4096  # kernels go on with further elements


class CudaModule:
    """Some kernels for one number type, compiled at the first launch of one of them.

    Parameters
    ----------
    xp : module
        cupy.
    dtype : type
        numpy.float32 or numpy.float64.
    code : str
        The kernels, see source.py.
    """

    def __init__(self, xp: Any, dtype: type, code: str) -> None:
        self.real = dtype
        self._module = xp.RawModule(code=code)
        self._kernel: Callable[[str], Any] = lru_cache(None)(self._module.get_function)

    def takes(self, *arrays: Any) -> bool:
        """Whether kernels can read arrays: of this number type, in Fortran order without gaps."""
        return all(array.dtype == self.real and array.flags.f_contiguous for array in arrays)

    def elementwise(self, name: str, out: Any, *arguments: Any) -> None:
        """Launch a kernel for each element of `out`; arguments: arrays, None, Python integers and NumPy scalars."""
        if out.size:
            self.launch(name, -(-out.size // THREADS), out.size, out.shape[0], *arguments)

    def launch(self, name: str, blocks: int, *arguments: Any) -> None:
        """Launch a kernel with a number of blocks, or fewer."""
        # Some versions of cupy make no argument of None; an integer has the size of an address.
        given = tuple(0 if argument is None else argument for argument in arguments)
        self._kernel(f"kernel_{name}")((max(1, min(blocks, MOST_BLOCKS)),), (THREADS,), given)
