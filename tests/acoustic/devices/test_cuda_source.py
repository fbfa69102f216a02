"""Every kernel in CUDA C++ is compiled to PTX, which needs no GPU, where NVRTC or nvcc is installed."""

import ctypes
import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.kernels.cuda.source import ELEMENTWISE, REDUCTIONS, source
from acoustic.recurrence.cuda_source import LoopSource
from acoustic.recurrence.loop_node import Loop
from acoustic.training.rules.cuda import RULES
from tests.acoustic.recurrence import recurrent_networks as recurrent

OLDEST = "compute_75"  # architecture; CUDA 13 knows no older one
OPTIONS = [f"--gpu-architecture={OLDEST}", "--std=c++14"]
KERNELS = {"nodes": (ELEMENTWISE, REDUCTIONS), "rules": (RULES, {})}


@pytest.fixture(scope="module")
def ptx_of(tmp_path_factory) -> Callable[[str], str]:
    """ptx_of(code): the library of the package nvidia-cuda-nvrtc compiles it or, if that is missing, nvcc."""
    package = importlib.util.find_spec("nvidia")
    folders = package.submodule_search_locations or () if package else ()
    paths = [path for folder in folders for path in Path(folder).glob("**/libnvrtc.so.*")]
    if paths:
        return partial(by_nvrtc, paths[0])
    if shutil.which("nvcc"):
        return partial(by_nvcc, tmp_path_factory.mktemp("nvcc"))
    pytest.skip("neither NVRTC, of the package nvidia-cuda-nvrtc-cu12 or nvidia-cuda-nvrtc, nor nvcc")


def by_nvrtc(path: Path, code: str) -> str:
    """Compile a source; fails with the compiler's messages."""
    for builtins in path.parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(path))
    program = ctypes.c_void_p()
    options = (ctypes.c_char_p * len(OPTIONS))(*(option.encode() for option in OPTIONS))
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), code.encode(), None, 0, None, None) == 0
    failed = nvrtc.nvrtcCompileProgram(program, len(options), options)
    kind = "ProgramLog" if failed else "PTX"
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{kind}")(program, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    assert not failed, text.value.decode()
    return text.value.decode()


def by_nvcc(folder: Path, code: str) -> str:
    """Compile a source; fails with the compiler's messages."""
    (folder / "kernels.cu").write_text(code, encoding="utf-8")
    command = ["nvcc", *OPTIONS, "--ptx", "--output-file", folder / "kernels.ptx", folder / "kernels.cu"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (folder / "kernels.ptx").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "name"), [(np.float32, "nodes"), (np.float64, "nodes"), (np.float32, "rules")], ids=str
)
def test_kernels_compile(ptx_of, dtype, name):
    elementwise, reductions = KERNELS[name]
    ptx = ptx_of(source(dtype, elementwise, reductions))
    for kernel in (*elementwise, *reductions):
        assert f".entry kernel_{kernel}(" in ptx
    if dtype is np.float32 and not reductions:
        assert ".f64" not in ptx  # a constant of another type would make the arithmetic double


@pytest.mark.slow
def test_loops_compile(ptx_of):
    """An LSTM with peepholes has products, columns and delays; its sums over lanes stay in registers."""
    engine = Engine(recurrent.of_ndl("top = LSTM(x, 3)\n", "float"), ["J"])
    loop = next(node for node in engine.graph.order if isinstance(node, Loop))
    made = LoopSource(loop.compiled.plan, np.float32)
    for way, received in (("forward", None), ("backward", frozenset({0}))):
        ptx = ptx_of(made.text(received))
        for number in range(len(made.launches)):
            assert f".entry kernel_{way}{number}(" in ptx
        assert ".local" not in ptx
        assert ".f64" not in ptx
