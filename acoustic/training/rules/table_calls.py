"""Kernels of update rules that recorded calls can name; see acoustic/runtime/call_registry.py."""

from acoustic.runtime.call_registry import real, table_call, vector
from acoustic.training.rules import compiled_loops


@table_call
def adagrad(p):
    numbers = real(p[6]), real(p[7]), real(p[8]), real(p[9])
    compiled_loops.adagrad(vector(p, 0), vector(p, 2), vector(p, 4), *numbers)
