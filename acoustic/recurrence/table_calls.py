"""Kernels of loops as functions that a table of calls can name; see acoustic/runtime/call_registry.py."""

from acoustic.recurrence import step_kernels
from acoustic.recurrence.step_kernels import LoopTables
from acoustic.runtime.call_registry import matrix, numbers, table, table_call, usable, vector


@table_call
def loop_forward(p):
    """The steps of a loop: see step_kernels.loop_forward, whose arrays p has in its order."""
    step_kernels.loop_forward(
        numbers(p, 0), matrix(p, 2), vector(p, 5),
        LoopTables(table(p, 7), table(p, 10), table(p, 13), table(p, 16)),
        vector(p, 19), usable(p, 21), vector(p, 25), numbers(p, 27), numbers(p, 29),
    )  # fmt: skip


@table_call
def loop_backward(p):
    step_kernels.loop_backward(
        numbers(p, 0), matrix(p, 2), matrix(p, 5), vector(p, 8), vector(p, 10),
        LoopTables(table(p, 12), table(p, 15), table(p, 18), table(p, 21)),
        usable(p, 24), table(p, 28), numbers(p, 31), numbers(p, 33),
    )  # fmt: skip
