"""Threads that wait for each other, and give each other calls to make, without the interpreter lock; see
thread_team.py.

flags (FLAGS + SLOT * size,) int64; FLAG_STRIDE separates those that different threads write. Of the whole team:
    FAILED             whether a thread has failed, so that no thread waits for it
    YIELD              address of a function that lets other threads run, or 0
    CLOCK              address of C's timespec_get, or 0
Of thread w, at `slot(w)`, each in cache lines of its own:
    GIVEN, DONE, MET   number of works it was given and has done, and of meetings it has reached
    WAITED             nanoseconds for which it has waited for other threads since `begin`
    ASLEEP             whether it must be woken
    WORK               address and number of rows of the table of calls that it was given; no rows: work in Python
"""

import time
from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from acoustic.runtime.call_table import play_at
from readers.common.arrays import Array
from readers.common.kernels import njit

FLAG_STRIDE = 16  # int64s between flags that different threads write: two cache lines
FAILED, YIELD, CLOCK, FLAGS = 0, 1, 2, FLAG_STRIDE
GIVEN, DONE, MET, ASLEEP, WORK = (FLAG_STRIDE * k for k in range(5))
WAITED = MET + 1  # by the thread itself, as MET
SLOT = FLAG_STRIDE * 5
LEFT = 2  # column of the tables of `hand_out`
PATIENCE = 2_000  # reads of a flag, about 5 us, before other threads may run


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, signature.args[0], array, [arguments[1]])


@intrinsic
def load(typing_context: Any, flags: Any, index: Any) -> Any:
    """flags[index], read from memory each time: the compiler would move a plain read out of a loop."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments)
        return builder.load_atomic(place, ordering="acquire", align=8)

    return types.int64(flags, index), codegen


@intrinsic
def store(typing_context: Any, flags: Any, index: Any, value: Any) -> Any:
    """flags[index] = value, visible after all earlier writes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], place, ordering="release", align=8)
        return context.get_dummy_value()

    return types.void(flags, index, types.int64), codegen


@intrinsic
def exchange(typing_context: Any, flags: Any, index: Any, value: Any) -> Any:
    """flags[index] = value; returns the old value. All threads see such exchanges in the same order."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments)
        return builder.atomic_rmw("xchg", place, arguments[2], "seq_cst")

    return types.int64(flags, index, types.int64), codegen


@intrinsic
def call_plain(typing_context: Any, address: Any) -> Any:
    """Call the function without arguments at an address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def read_clock(typing_context: Any, address: Any) -> Any:
    """Nanoseconds since 1970 by the function timespec_get at an address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, number = ir.IntType(64), ir.IntType(32)
        time = cgutils.alloca_once(builder, word, 2)
        kind = ir.FunctionType(number, [word.as_pointer(), number])
        utc = ir.Constant(number, 1)
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [time, utc])
        seconds, fraction = (builder.load(builder.gep(time, [ir.Constant(number, k)])) for k in range(2))
        fraction = builder.and_(fraction, ir.Constant(word, 0xFFFFFFFF))  # Windows writes only this half
        return builder.add(builder.mul(seconds, ir.Constant(word, 1_000_000_000)), fraction)

    return types.int64(types.int64), codegen


if config.DISABLE_JIT:  # the interpreter lock then keeps the order of accesses

    def load(flags: Array, index: int) -> int:
        return flags[index]

    def store(flags: Array, index: int, value: int) -> None:
        flags[index] = value

    def exchange(flags: Array, index: int, value: int) -> int:
        before, flags[index] = flags[index], value
        return before

    def call_plain(address: int) -> None:
        time.sleep(0)

    def read_clock(address: int) -> int:
        return time.time_ns()


compiled = njit(cache=True, nogil=True)


@compiled
def slot(worker: int) -> int:
    return FLAGS + SLOT * worker


@compiled
def wait_for(flags: Array, index: int, number: int, worker: int) -> None:
    """Return when flags[index] is at least `number`, or a thread has failed; long waits of `worker` are noted."""
    looks = 0
    while load(flags, index) < number and looks < PATIENCE:
        looks += 1
    if looks < PATIENCE:
        return
    start = read_clock(flags[CLOCK]) if flags[CLOCK] else 0
    while load(flags, index) < number and not load(flags, FAILED):
        if flags[YIELD]:
            call_plain(flags[YIELD])
    if flags[CLOCK]:
        flags[slot(worker) + WAITED] += read_clock(flags[CLOCK]) - start


@compiled
def look(flags: Array, index: int, number: int, limit: int) -> None:
    """Return when flags[index] is at least `number`, or after reading it `limit` times."""
    looks = 0
    while load(flags, index) < number and looks < limit:
        looks += 1


@compiled
def begin(flags: Array, size: int) -> None:
    """Clear failures, meetings and waits; no thread may have work."""
    flags[FAILED] = 0
    for worker in range(size):
        flags[slot(worker) + MET] = flags[slot(worker) + WAITED] = 0


@compiled
def meet(flags: Array, worker: int, count: int) -> None:
    """Wait until each of `count` threads has reached as many meetings as this one."""
    mine = slot(worker) + MET
    number = flags[mine] + 1
    store(flags, mine, number)
    for other in range(count):
        wait_for(flags, slot(other) + MET, number, worker)


@compiled
def give(flags: Array, worker: int, address: int, rows: int) -> bool:
    """Give a thread a table of calls or, without rows, work in Python; return whether it must be woken."""
    place = slot(worker)
    flags[place + WORK], flags[place + WORK + 1] = address, rows
    store(flags, place + GIVEN, flags[place + GIVEN] + 1)
    return exchange(flags, place + ASLEEP, 0) == 1


@compiled
def serve(flags: Array, worker: int, ticket: int, limit: int) -> tuple[int, bool]:
    """Make calls until there is work in Python, or no work after reading the flag `limit` times.

    Returns the last ticket, and whether to sleep.
    """
    place = slot(worker)
    while True:
        looks = 0
        while load(flags, place + GIVEN) <= ticket:
            looks += 1
            if looks > limit:
                exchange(flags, place + ASLEEP, 1)
                # For work given in the meantime this thread is not woken, unless the giver has already seen it asleep.
                if load(flags, place + GIVEN) <= ticket or exchange(flags, place + ASLEEP, 0) == 0:
                    return ticket, True
                break
        ticket += 1
        if flags[place + WORK + 1] == 0:
            return ticket, False
        play_at(flags[place + WORK], flags[place + WORK + 1])
        store(flags, place + DONE, ticket)


@compiled
def hand_out(flags: Array, size: int, tables: Array) -> bool:
    """Give each thread of a team except the caller its table; return whether a thread must be woken.

    tables (threads, 3): address, rows, and LEFT, which is written here: whether the thread must be woken or, for the
    caller, whether it must still `finish`.
    """
    begin(flags, size)
    tables[0, LEFT] = 1
    asleep = False
    for worker in range(1, tables.shape[0]):
        must_wake = give(flags, worker, tables[worker, 0], tables[worker, 1])
        tables[worker, LEFT] = must_wake
        asleep |= must_wake
    return asleep


@compiled
def finish(flags: Array, tables: Array) -> None:
    """Make the caller's calls, and wait for those of the other threads."""
    tables[0, LEFT] = 0
    play_at(tables[0, 0], tables[0, 1])
    for worker in range(1, tables.shape[0]):
        place = slot(worker)
        wait_for(flags, place + DONE, flags[place + GIVEN], 0)


@compiled
def play_all(flags: Array, size: int, tables: Array) -> None:
    """Hand out and, if no thread must be woken first, finish."""
    if not hand_out(flags, size, tables):
        finish(flags, tables)
