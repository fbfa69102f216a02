"""The processor's instructions for products of small matrices of bfloat16 (Intel AMX), for compiled code; see tiles.py.

Eight registers hold a tile of 16 rows of 64 bytes each: 16 x 16 float32, or 16 x 32 bfloat16, or as the second operand
of a product 32 x 16 bfloat16 whose rows lie in pairs, (16, 16, 2).
"""

from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

_target = cpu_target.target_context.codegen()
IS_KNOWN = "+amx-bf16" in getattr(_target, "_tm_features", "").split(",")  # whether numba compiles for such a processor
TILE, LONG, PLACE = ir.IntType(8), ir.IntType(64), ir.IntType(8).as_pointer()


def _emit(builder, name, kinds, arguments):
    if IS_KNOWN:  # else this is compiled, too, but never called
        kind = ir.FunctionType(ir.VoidType(), kinds)
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(function, arguments)


def _tiles(signature):
    return [ir.Constant(TILE, kind.literal_value) for kind in signature.args if isinstance(kind, types.IntegerLiteral)]


@intrinsic
def configure(typing_context, address):
    """Take the shapes of tiles from an address; see tiles.py."""

    def codegen(context, builder, signature, arguments):
        _emit(builder, "llvm.x86.ldtilecfg", [PLACE], [builder.inttoptr(arguments[0], PLACE)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def release(typing_context):
    """Leave the registers to others."""

    def codegen(context, builder, signature, arguments):
        _emit(builder, "llvm.x86.tilerelease", [], [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic(prefer_literal=True)
def clear(typing_context, tile):
    """tile = 0."""

    def codegen(context, builder, signature, arguments):
        _emit(builder, "llvm.x86.tilezero", [TILE], _tiles(signature))
        return context.get_dummy_value()

    return types.void(tile), codegen


def _mover(name):
    def codegen(context, builder, signature, arguments):
        place = builder.inttoptr(arguments[1], PLACE)
        _emit(builder, name, [TILE, PLACE, LONG], [*_tiles(signature), place, arguments[2]])
        return context.get_dummy_value()

    return codegen


@intrinsic(prefer_literal=True)
def load(typing_context, tile, address, stride):
    """tile = the matrix at an address; stride: bytes from one of its rows to the next."""
    return types.void(tile, types.int64, types.int64), _mover("llvm.x86.tileloadd64")


@intrinsic(prefer_literal=True)
def store(typing_context, tile, address, stride):
    return types.void(tile, types.int64, types.int64), _mover("llvm.x86.tilestored64")


@intrinsic(prefer_literal=True)
def add_product(typing_context, tile, first, second):
    """tile += first second, of tiles."""

    def codegen(context, builder, signature, arguments):
        _emit(builder, "llvm.x86.tdpbf16ps", [TILE, TILE, TILE], _tiles(signature))
        return context.get_dummy_value()

    return types.void(tile, first, second), codegen
