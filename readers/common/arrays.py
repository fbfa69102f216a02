"""Arrays in annotations, by the type of their values; docstrings give the shapes."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
Records = npt.NDArray[np.void]  # of named fields
Integer = int | np.integer[Any]  # in kernels, where the width of an integer matters
