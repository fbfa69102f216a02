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


@njit(cache=True, nogil=True)
def wait(flags, index, ticket, limit):
    """Return when flags[index] is at least ticket, or after `limit` looks; at once where nothing is compiled."""
    if NOT_COMPILED:
        return
    looks = 0
    while load(flags, index) < ticket and looks < limit:
        looks += 1


NOT_COMPILED = bool(config.DISABLE_JIT)  # then the lock that follows does all the waiting
