"""Kernels in CUDA C++ on the processor: the same source, compiled by the host's compiler behind a few definitions.

The threads of a block are coroutines that change at every __syncthreads, the blocks run one after the other. Launches
have at most BLOCKS and THREADS, so that each of them goes through several elements even of small matrices.
"""

import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BLOCKS, THREADS = 3, 4
COMPILER = (shutil.which("c++") or shutil.which("g++")) if sys.platform == "linux" else None
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler for kernels of a GPU")

HOST = """
#include <ucontext.h>
namespace host {  // <cmath> and <functional> would take most of the time to compile
#define FUNCTION(f) double f(double x) { return __builtin_##f(x); } float f(float x) { return f((double)x); }
FUNCTION(exp) FUNCTION(log) FUNCTION(sqrt) FUNCTION(tanh)
}
using namespace host;
#define __global__
#define __device__
#define __shared__ static
#define __threadfence()
static struct { int x; } threadIdx, blockIdx, blockDim, gridDim;
static int atomicAdd(int *total, int number) { int before = *total; *total += number; return before; }

static ucontext_t scheduler, threads[16];
static char stacks[16][1 << 16];
static bool ended[16];
static void (*kernel)(void *);
static void *launch;

static void __syncthreads() { swapcontext(&threads[threadIdx.x], &scheduler); }
static void run_thread() { kernel(launch); ended[threadIdx.x] = true; }
template <class Launch> static void run_blocks(int blocks, int count, Launch call) {
    kernel = [](void *launch) { (*(Launch *)launch)(); };
    launch = &call;
    gridDim.x = blocks;
    blockDim.x = count;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        for (int k = 0; k < count; ++k) {
            ended[k] = false;
            getcontext(&threads[k]);
            threads[k].uc_stack.ss_sp = stacks[k];
            threads[k].uc_stack.ss_size = sizeof stacks[k];
            threads[k].uc_link = &scheduler;
            makecontext(&threads[k], run_thread, 0);
        }
        for (bool all = false; !all;) {
            all = true;
            for (int k = 0; k < count; ++k)
                if (!ended[k]) {
                    threadIdx.x = k;
                    swapcontext(&scheduler, &threads[k]);
                    all = all && ended[k];
                }
        }
    }
}
"""
KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(([^)]*)\)')


@cache
def compiled(code: str) -> Callable[[str], Callable[..., None]]:
    """Compile kernels; the result gives a function (grid, block, arguments) for each name."""
    assert COMPILER is not None
    launchers = []
    for name, parameters in KERNEL.findall(code):
        names = ", ".join(re.findall(r"(\w+)\s*(?:,|$)", parameters))
        launchers.append(
            f'extern "C" void launch_{name}(int host_blocks, int host_threads, {parameters}) {{ '
            f"run_blocks(host_blocks, host_threads, [=] {{ {name}({names}); }}); }}"
        )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernels.cpp")
        library = Path(folder, "kernels.so")
        source.write_text("\n".join([HOST, code, *launchers]), encoding="utf-8")
        command = [COMPILER, "-std=c++14", "-O1", "-shared", "-fPIC", "-w", "-o", library, source]
        subprocess.run(command, check=True)
        loaded = ctypes.CDLL(str(library))

    def function_of(name: str) -> Callable[..., None]:
        function = loaded[f"launch_{name}"]
        function.restype = None

        def launch(grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
            function(min(grid[0], BLOCKS), min(block[0], THREADS), *map(as_argument, arguments))

        return launch

    return function_of


def as_argument(value: Any) -> Any:
    """An argument with the type that cupy gives it: integers have 64 bits, floats are double."""
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if not isinstance(value, np.generic):
        value = np.float64(value) if isinstance(value, float) else np.int64(value)
    return np.ctypeslib.as_ctypes_type(value.dtype)(value.item())
