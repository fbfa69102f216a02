"""Every kernel in CUDA C++ is compiled by NVRTC, which needs no GPU, where its library is installed."""

import ctypes
import glob
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from acoustic.kernels.cuda.source import ELEMENTWISE, REDUCTIONS, source
from acoustic.training.rules.cuda import RULES

OLDEST = "compute_75"  # architecture; CUDA 13 knows no older one


@pytest.fixture(scope="module")
def nvrtc() -> ctypes.CDLL:
    """The library, of the package nvidia-cuda-nvrtc or of a CUDA toolkit."""
    package = importlib.util.find_spec("nvidia")
    folders = [*(package.submodule_search_locations or () if package else ()), "/usr/local/cuda/lib64"]
    paths = [path for folder in folders for path in glob.glob(f"{folder}/**/libnvrtc.so.*", recursive=True)]
    if not paths:
        pytest.skip("no NVRTC: install nvidia-cuda-nvrtc-cu12 or a CUDA toolkit")
    for builtins in glob.glob(str(Path(paths[0]).with_name("libnvrtc-builtins.so.*"))):
        ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(paths[0])


def ptx_of(nvrtc: ctypes.CDLL, code: str) -> str:
    """Compile a source; fails with the compiler's messages."""
    program = ctypes.c_void_p()
    options = (ctypes.c_char_p * 2)(f"--gpu-architecture={OLDEST}".encode(), b"--std=c++17")
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernels", [(ELEMENTWISE, REDUCTIONS), (RULES, {})], ids=["nodes", "rules"])
def test_kernels_compile(nvrtc, dtype, kernels):
    ptx = ptx_of(nvrtc, source(dtype, *kernels))
    for name in {**kernels[0], **kernels[1]}:
        assert f".entry kernel_{name}(" in ptx
    if dtype is np.float32 and kernels[0] is RULES:
        assert ".f64" not in ptx  # a constant of the wrong type would double the work
