"""Waiting for another thread's flag without the interpreter lock; see team.py."""

from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def load(typing_context, flags, index):
    """flags[index], read from memory every time: a plain read would be moved out of the loop."""

    def codegen(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], array, [arguments[1]])
        return builder.load_atomic(pointer, ordering="acquire", align=8)

    return types.int64(flags, index), codegen


@intrinsic
def store(typing_context, flags, index, value):
    """flags[index] = value, after all that was written before."""

    def codegen(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], array, [arguments[1]])
        builder.store_atomic(arguments[2], pointer, ordering="release", align=8)
        return context.get_dummy_value()

    return types.void(flags, index, types.int64), codegen


@njit(cache=True, nogil=True)
def wait(flags, index, ticket, limit):
    """Return when flags[index] is at least ticket, or after `limit` looks; at once where nothing is compiled."""
    if NOT_COMPILED:
        return
    looks = 0
    while load(flags, index) < ticket and looks < limit:
        looks += 1


@njit(cache=True, nogil=True)
def tell(entered, flags, mine, number, index, ticket, limit):
    """flags[mine] = number, then wait as `wait` does.

    Whoever waits for the flag finds the interpreter lock free, and need not sleep until it is.
    """
    if NOT_COMPILED:
        flags[mine] = number
        return
    store(entered, 0, load(entered, 0) + 1)
    store(flags, mine, number)
    wait(flags, index, ticket, limit)


@njit(cache=True, nogil=True)
def let_pass(entered, flags, mine, number, index, ticket, limit, patience):
    """As `tell`, but when the flag is there let another thread go first: until one has entered a product or a wait.

    Two threads that go on at the same time both want the interpreter lock; the second would sleep, and a thread takes
    longer to wake than the first one holds the lock.  patience: how many looks at most.
    """
    if NOT_COMPILED:
        flags[mine] = number
        return
    store(flags, mine, number)
    wait(flags, index, ticket, limit)
    before, looks = load(entered, 0), 0
    while load(entered, 0) == before and looks < patience:
        looks += 1


NOT_COMPILED = bool(config.DISABLE_JIT)  # then the lock that follows does all the waiting
