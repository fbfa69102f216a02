"""cupy on numpy: an array module with cupy's rules and names, for tests of the device's path on any machine.

Its arrays are not numpy's. As in cupy, they are not converted to numpy arrays implicitly, are not mixed with them, and
have memory of their own; reductions give arrays of no dimensions; `dot` writes to a C-contiguous output only. A name
that cupy lacks raises AttributeError. The rules are those of cupy 13 (cupy/_core: core.pyx, _routines_indexing.pyx,
_routines_linalg.pyx).

`usage` counts the kernels that cupy would launch, at least: one for each call that computes or copies elements, none
for views and memory; and the copies to and from the host.
"""

import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.acoustic.devices import cuda_on_host

# What the project may call: names that cupy has, with the same arguments.
UFUNCS = """
    absolute add arctan2 bitwise_and bitwise_or ceil clip cos divide equal exp expm1 floor floor_divide greater
    greater_equal invert isfinite isinf isnan left_shift less less_equal log log1p logaddexp logical_and logical_not
    logical_or matmul maximum minimum multiply negative not_equal positive power remainder right_shift sign sin sqrt
    square subtract tan tanh true_divide bitwise_xor
"""
FUNCTIONS = """
    all allclose any arange argmax argmin argsort array_equal atleast_2d average bincount broadcast_to column_stack
    concatenate copyto count_nonzero cross cumprod cumsum diag diagonal diff dot einsum empty empty_like
    expand_dims eye flatnonzero flip full full_like hstack identity inner isclose kron linspace matmul max mean median
    min moveaxis nonzero ones ones_like outer pad prod ravel repeat reshape roll searchsorted sort split squeeze
    stack std sum swapaxes take take_along_axis tensordot tile trace transpose triu tril unique unravel_index var vdot
    vstack where zeros zeros_like
"""
FROM_HOST = "array asarray asfortranarray ascontiguousarray"
CONSTANTS = """
    bool_ float16 float32 float64 int8 int32 int64 uint8 uint32 uint64 complex128 inf nan newaxis pi dtype
"""
LINALG = "cholesky eigh eigvalsh inv norm qr slogdet solve svd"
METHODS = """
    all any argmax argmin argsort astype clip cumsum diagonal dot max mean min nonzero prod ravel repeat
    reshape round searchsorted sort squeeze std sum swapaxes take trace transpose var
"""
WITHOUT_LAUNCH = {"empty", "empty_like"}
WITH_AT = {"add", "subtract", "maximum", "minimum"}


@dataclass
class Usage:
    """What the device did: kernels launched, and copies to the device and back, for which the host may wait."""

    launches: int = 0
    copies: int = 0


usage = Usage()


class Array:
    """An array on the device: `host` holds its elements, out of reach of the code under test."""

    def __init__(self, host: np.ndarray):
        self._host = host

    # ---- what cupy has

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    strides = property(lambda self: self._host.strides)
    flags = property(lambda self: self._host.flags)
    T = property(lambda self: Array(self._host.T))
    real = property(lambda self: Array(self._host.real))
    imag = property(lambda self: Array(self._host.imag))

    def get(self, order: str = "C") -> np.ndarray:
        usage.copies += 1
        return np.array(self._host, order=order)

    def copy(self, order: str = "C") -> "Array":
        usage.launches += 1
        return Array(self._host.copy(order=order))

    def fill(self, value: Any) -> None:
        usage.launches += 1
        if np.ndim(value):
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        self._host.fill(device_to_host(value))

    def item(self) -> Any:
        usage.copies += 1
        return self._host.item()

    def tolist(self) -> list:
        usage.copies += 1
        return self._host.tolist()

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __bool__(self) -> bool:
        usage.copies += 1
        return bool(self._host)

    def __int__(self) -> int:
        usage.copies += 1
        return int(self._host)

    def __index__(self) -> int:
        usage.copies += 1
        return self._host.__index__()

    def __float__(self) -> float:
        usage.copies += 1
        return float(self._host)

    def __format__(self, spec: str) -> str:
        return format(self._host, spec)

    def __repr__(self) -> str:
        return f"device {self._host!r}"

    def __getitem__(self, index: Any) -> "Array":
        part = self._host[as_index(index)]
        usage.launches += isinstance(part, np.ndarray) and not is_view(part, [self._host])
        return to_device(part)

    def __setitem__(self, index: Any, value: Any) -> None:
        usage.launches += 1
        if isinstance(value, np.ndarray) and value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        self._host[as_index(index)] = device_to_host(value)

    # ---- what cupy refuses

    def __array__(self, *arguments: Any, **options: Any):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: tuple = (), **options: Any) -> Any:
        if method != "__call__":
            return NotImplemented
        return getattr(cupy, ufunc.__name__)(*inputs, **({"out": out[0]} if out else {}), **options)

    def __array_function__(self, function: Any, types: Any, arguments: tuple, options: dict) -> Any:
        home = cupy.linalg if function.__module__ == "numpy.linalg" else cupy
        return getattr(home, function.__name__, lambda *_, **__: NotImplemented)(*arguments, **options)


def is_view(result: Any, arrays: Any) -> bool:
    """Whether a result is memory of one of some arrays, which nothing is computed for."""
    return any(isinstance(array, np.ndarray) and np.may_share_memory(result, array) for array in arrays)


def to_device(result: Any) -> Any:
    """What cupy would return: arrays, also for numpy's scalars."""
    if isinstance(result, tuple):
        return type(result)(*map(to_device, result)) if hasattr(result, "_fields") else tuple(map(to_device, result))
    if isinstance(result, list):
        return [to_device(one) for one in result]
    return Array(np.asarray(result)) if isinstance(result, np.ndarray | np.generic) else result


def device_to_host(value: Any) -> Any:
    """The elements of an argument; raise TypeError for an array on the host, as cupy does."""
    if isinstance(value, Array):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, tuple | list):
        return type(value)(device_to_host(one) for one in value)
    return value


def as_index(index: Any) -> Any:
    """An index as numpy takes it: cupy copies arrays on the host to the device."""
    if isinstance(index, tuple):
        return tuple(as_index(one) for one in index)
    return index._host if isinstance(index, Array) else index


class Function:
    """A function or ufunc of numpy on arrays of the device."""

    def __init__(self, function: Any):
        self._function = function
        self.__name__ = function.__name__
        if self.__name__ in WITH_AT:
            self.at = self._at

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        out = options.get("out")
        if self.__name__ == "dot" and out is not None:
            if not out.flags.c_contiguous:
                raise ValueError("Output array must be C-contiguous")
            if out.dtype != np.result_type(arguments[0].dtype, arguments[1].dtype):
                raise ValueError("Not supported dtype combination.")
        if self.__name__ == "einsum" and out is not None:
            raise TypeError("einsum: cupy has no out")
        given = [device_to_host(one) for one in arguments]
        result = self._function(*given, **{name: device_to_host(one) for name, one in options.items()})
        if self.__name__ not in WITHOUT_LAUNCH and (out is not None or not is_view(result, given)):
            usage.launches += 1
        return out if out is not None else to_device(result)

    def _at(self, target: Array, index: Any, values: Any) -> None:
        usage.launches += 1
        self._function.at(target._host, as_index(index), device_to_host(values))


def from_host(function: Any) -> Any:
    def copied(value: Any, dtype: Any = None, order: str | None = None, **options: Any) -> Array:
        if isinstance(value, Array):
            keeps = {"dtype": dtype, "order": order} if order else {"dtype": dtype}
            result = function(value._host, **given(keeps))
            if result is value._host:
                return value
            usage.launches += 1
            return Array(result)
        usage.copies += 1
        if np.asarray(value).dtype == object:
            raise ValueError("Unsupported dtype object")
        return Array(np.array(function(value, **given({"dtype": dtype, "order": order})), order="K", copy=True))

    return copied


def given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def method(name: str) -> Any:
    def call(self: Array, *arguments: Any, **options: Any) -> Any:
        out = options.get("out")
        given = [device_to_host(one) for one in arguments]
        result = getattr(self._host, name)(*given, **{key: device_to_host(one) for key, one in options.items()})
        usage.launches += out is not None or not is_view(result, [self._host])
        return out if out is not None else to_device(result)

    return call


def operator(name: str, function: str, swapped: bool = False) -> Any:
    def call(self: Array, *other: Any) -> Any:
        return getattr(cupy, function)(*(*other, self) if swapped else (self, *other))

    return call


def in_place(function: str) -> Any:
    def call(self: Array, other: Any) -> Array:
        getattr(cupy, function)(self, other, out=self)
        return self

    return call


OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "matmul": "matmul",
}  # fmt: skip
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
ALONE = {"neg": "negative", "abs": "absolute", "invert": "invert", "pos": "positive"}

for _name, _function in (OPERATORS | COMPARISONS | ALONE).items():
    setattr(Array, f"__{_name}__", operator(_name, _function))
for _name, _function in OPERATORS.items():
    setattr(Array, f"__r{_name}__", operator(_name, _function, swapped=True))
    setattr(Array, f"__i{_name}__", in_place(_function))
for _name in METHODS.split():
    setattr(Array, _name, method(_name))
Array.__hash__ = None


class RawModule:
    """Kernels in CUDA C++, which the host's compiler compiles."""

    def __init__(self, *, code: str):
        self._code = code

    def get_function(self, name: str) -> Any:
        launch = cuda_on_host.compiled(self._code)(name)

        def call(grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
            usage.launches += 1
            launch(grid, block, tuple(map(device_to_host, arguments)))

        return call


def gemm(transa: str, transb: str, a: Array, b: Array, out: Array, alpha: float = 1.0, beta: float = 0.0) -> Array:
    """out = alpha a b + beta out, as in cupy.cublas."""
    assert transa == transb == "N"
    usage.launches += 1
    host = out._host
    host[...] = alpha * np.dot(b._host.T, a._host.T).T + (beta * host if beta else 0)
    return out


def make_module() -> types.ModuleType:
    """The module, as `import cupy` gives it."""
    module = types.ModuleType("cupy", __doc__)
    for name in (UFUNCS + FUNCTIONS).split():
        setattr(module, name, Function(getattr(np, name)))
    for name in FROM_HOST.split():
        setattr(module, name, from_host(getattr(np, name)))
    for name in CONSTANTS.split():
        setattr(module, name, getattr(np, name))
    module.abs = module.absolute
    module.ndarray = Array
    module.RawModule = RawModule
    module.cublas = types.SimpleNamespace(gemm=gemm)
    module.asnumpy = lambda array, order="C": array.get(order) if isinstance(array, Array) else np.asarray(array)
    module.linalg = types.SimpleNamespace(**{name: Function(getattr(np.linalg, name)) for name in LINALG.split()})
    module.cuda = types.SimpleNamespace(
        Device=lambda number: types.SimpleNamespace(use=lambda: None),
        runtime=types.SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=RuntimeError),
    )
    return module


cupy = make_module()
