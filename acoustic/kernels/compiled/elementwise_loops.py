"""Loops of the compiled kernels: float32 arrays and scalars, no checks; see elementwise.py.

x and the like are flat, a matrix column by column; frames and the like are (T, rows) in C order, a frame a row, which
is the transposed view of a matrix (rows, T) in Fortran order.

Kernels work in place: if a kernel reads one array and writes another, vector instructions need a check that the two do
not overlap, and in-place use, the common case, then ran four times slower. Sums may be reordered and products fused
with sums, but NaN and infinity keep their meaning.
"""

import numpy as np
from numba import float32, int32, uint32

from acoustic.runtime.call_registry import LOOSE, matrix, table_calls, vector
from readers.common.arrays import Array
from readers.common.kernels import njit

# A call that is not inlined is resolved to whichever kernel was compiled or loaded first. Because sums may be reordered
# in each kernel differently, the process that compiles the kernels would compute other bits than later ones.
loop = njit(cache=True, nogil=True, fastmath=LOOSE, error_model="numpy", forceinline=True)
inline = njit(cache=True, nogil=True, fastmath=LOOSE, error_model="numpy", inline="always")

ZERO, ONE, TWO = float32(0), float32(1), float32(2)


@inline
def exp32(x: float) -> float:
    """exp(x) with a relative error of about 1e-7; x is limited to +-87, NaN stays NaN.

    2^n times a polynomial on [-ln 2 / 2, ln 2 / 2], with the coefficients of Cephes' expf. Plain arithmetic lets the
    compiler vectorise the surrounding loop, which a library call would prevent.
    """
    if x < float32(-87):
        x = float32(-87)
    if x > float32(87):
        x = float32(87)
    n = np.floor(x * float32(1.44269504) + float32(0.5))
    r = x - n * float32(0.693359375)
    r = r + n * float32(2.12194440e-4)
    p = float32(1.9875691500e-4)
    p = p * r + float32(1.3981999507e-3)
    p = p * r + float32(8.3334519073e-3)
    p = p * r + float32(4.1665795894e-2)
    p = p * r + float32(1.6666665459e-1)
    p = p * r + float32(5.0000001201e-1)
    p = p * r * r + r + ONE
    return p * np.int32((np.int32(n) + int32(127)) << int32(23)).view(np.float32)


@loop
def copy(x: Array, out: Array) -> None:
    """out = x."""
    for i in range(out.shape[0]):
        out[i] = x[i]


@loop
def add(total: Array, x: Array) -> None:
    """total += x."""
    for i in range(total.shape[0]):
        total[i] += x[i]


@loop
def scale(x: Array, factor: Array) -> None:
    """x *= the one element of factor."""
    for i in range(x.shape[0]):
        x[i] *= factor[0]


@loop
def add_column(frames: Array, column: Array) -> None:
    """frames += column."""
    for t in range(frames.shape[0]):
        for i in range(frames.shape[1]):
            frames[t, i] += column[i]


@loop
def normalise(frames: Array, mean: Array, factor: Array) -> None:
    """frames = (frames - mean) * factor."""
    for t in range(frames.shape[0]):
        for i in range(frames.shape[1]):
            frames[t, i] = (frames[t, i] - mean[i]) * factor[i]


@loop
def sigmoid(x: Array) -> None:
    for i in range(x.shape[0]):
        x[i] = ONE / (ONE + exp32(-x[i]))


@loop
def tanh(x: Array) -> None:
    for i in range(x.shape[0]):
        x[i] = TWO / (ONE + exp32(-TWO * x[i])) - ONE


@loop
def relu(x: Array) -> None:
    for i in range(x.shape[0]):
        x[i] = ZERO if x[i] < ZERO else x[i]  # NaN stays NaN


@loop
def relu_gradient(grad: Array, value: Array) -> None:
    for i in range(grad.shape[0]):
        grad[i] = grad[i] if value[i] > ZERO else ZERO


@loop
def sigmoid_gradient(grad: Array, value: Array) -> None:
    for i in range(grad.shape[0]):
        grad[i] *= value[i] * (ONE - value[i])


@loop
def tanh_gradient(grad: Array, value: Array) -> None:
    for i in range(grad.shape[0]):
        grad[i] *= ONE - value[i] * value[i]


@loop
def sum_frames(frames: Array, total: Array) -> None:
    """total = the sum over frames."""
    total[:] = float32(0)
    for t in range(frames.shape[0]):
        for i in range(frames.shape[1]):
            total[i] += frames[t, i]


@loop
def moments(frames: Array, first: int, mean: Array, variance: Array) -> None:
    """mean and variance (float64) of columns from `first` on; the variance in a second pass, about the mean."""
    count = frames.shape[0]
    mean[:] = 0.0
    for t in range(count):
        for i in range(mean.shape[0]):
            mean[i] += frames[t, first + i]
    for i in range(mean.shape[0]):
        mean[i] /= count
    variance[:] = 0.0
    for t in range(count):
        for i in range(mean.shape[0]):
            d = frames[t, first + i] - mean[i]
            variance[i] += d * d
    for i in range(mean.shape[0]):
        variance[i] /= count


@loop
def scale_shift(frames: Array, centre: Array, factor: Array, bias: Array) -> None:
    """frames = (frames - centre) * factor + bias."""
    for t in range(frames.shape[0]):
        for i in range(frames.shape[1]):
            frames[t, i] = (frames[t, i] - centre[i]) * factor[i] + bias[i]


@loop
def gradient_moments(grad: Array, frames: Array, first: int, centre: Array, total: Array, match: Array) -> None:
    """total = the sum of grad, match = that of grad * (frames - centre), float64, of columns from `first` on."""
    total[:] = 0.0
    match[:] = 0.0
    for t in range(grad.shape[0]):
        for i in range(total.shape[0]):
            g = grad[t, first + i]
            total[i] += g
            match[i] += g * (frames[t, first + i] - centre[i])


@loop
def centred_gradient(grad: Array, frames: Array, centre: Array, factor: Array, shift: Array, slope: Array) -> None:
    """grad = factor * (grad - shift - slope * (frames - centre))."""
    for t in range(grad.shape[0]):
        for i in range(grad.shape[1]):
            grad[t, i] = factor[i] * (grad[t, i] - shift[i] - slope[i] * (frames[t, i] - centre[i]))


@inline
def largest(frame: Array, lanes: Array) -> float:
    """The largest element of a frame without NaN; lanes (16,) is scratch memory.

    The compiler does not vectorise a single running maximum, but it does vectorise sixteen of them.
    """
    width = lanes.shape[0]
    num_blocks = frame.shape[0] // width
    lanes[:] = frame[0]
    for block in range(num_blocks):
        part = frame[block * width : (block + 1) * width]
        for k in range(16):
            lanes[k] = part[k] if part[k] > lanes[k] else lanes[k]
    top = lanes[0]
    for k in range(16):
        top = lanes[k] if lanes[k] > top else top
    for i in range(num_blocks * width, frame.shape[0]):
        top = frame[i] if frame[i] > top else top
    return top


@inline
def sum_exponentials(frame: Array, lanes: Array) -> tuple[float, float]:
    """The largest element of a frame, and the sum of exp(frame - that element)."""
    top = largest(frame, lanes)
    total = ZERO
    for i in range(frame.shape[0]):
        total += exp32(frame[i] - top)
    return top, total


@inline
def exponentials(frame: Array, out: Array, lanes: Array) -> tuple[float, float]:
    """The same, and out = exp(frame - that element); out may be frame."""
    top = largest(frame, lanes)
    total = ZERO
    for i in range(frame.shape[0]):
        e = exp32(frame[i] - top)
        out[i] = e
        total += e
    return top, total


@loop
def softmax(frames: Array) -> None:
    lanes = np.empty(16, np.float32)
    for t in range(frames.shape[0]):
        _, total = exponentials(frames[t], frames[t], lanes)
        scale = ONE / total
        for i in range(frames.shape[1]):
            frames[t, i] *= scale


@loop
def log_softmax(frames: Array) -> None:
    lanes = np.empty(16, np.float32)
    for t in range(frames.shape[0]):
        top, total = sum_exponentials(frames[t], lanes)
        shift = top + np.log(total)
        for i in range(frames.shape[1]):
            frames[t, i] -= shift


@inline
def frame_cross_entropy(labels: Array, z: Array, out: Array, lanes: Array) -> tuple[float, float, float]:
    """out = exp(z - largest element); returns the sums of labels and of out, and -sum of labels * log softmax(z)."""
    top = largest(z, lanes)
    total = ZERO
    mass = ZERO
    match = ZERO
    for i in range(z.shape[0]):
        shifted = z[i] - top
        e = exp32(shifted)
        out[i] = e
        total += e
        mass += labels[i]
        match += labels[i] * shifted
    return mass, total, mass * np.log(total) - match


@loop
def cross_entropy_softmax(labels: Array, z: Array, loss: Array) -> None:
    """loss[0] = -sum of labels * log softmax(z), summed in double over the frames."""
    total_loss = 0.0
    lanes = np.empty(16, np.float32)
    scratch = np.empty(z.shape[1], np.float32)
    for t in range(z.shape[0]):
        total_loss += frame_cross_entropy(labels[t], z[t], scratch, lanes)[2]
    loss[0] = total_loss


@loop
def cross_entropy_softmax_error(labels: Array, z: Array, error: Array, loss: Array) -> None:
    """The same, and error = softmax(z) * (sum of a frame's labels) - labels."""
    total_loss = 0.0
    lanes = np.empty(16, np.float32)
    for t in range(z.shape[0]):
        mass, total, frame_loss = frame_cross_entropy(labels[t], z[t], error[t], lanes)
        total_loss += frame_loss
        scale = mass / total
        for i in range(z.shape[1]):
            error[t, i] = error[t, i] * scale - labels[t, i]
    loss[0] = total_loss


@inline
def first_largest(frame: Array, lanes: Array) -> int:
    """Index of the first largest element, found in a second pass, which can be vectorised."""
    top = largest(frame, lanes)
    first = int32(frame.shape[0])
    for i in range(frame.shape[0]):
        first = min(first, int32(i) if frame[i] == top else int32(frame.shape[0]))
    return first


@loop
def count_errors(labels: Array, z: Array, count: Array) -> None:
    """count[0] = the number of frames whose largest elements have different indices."""
    errors = 0
    lanes = np.empty(16, np.float32)
    for t in range(z.shape[0]):
        errors += first_largest(labels[t], lanes) != first_largest(z[t], lanes)
    count[0] = errors


@inline
def mix(word: np.uint32) -> np.uint32:
    """A 32-bit finaliser (two rounds of multiply and shift) that spreads every input bit over every output bit."""
    word ^= word >> uint32(16)
    word = uint32(word * uint32(0x21F0AAAD))
    word ^= word >> uint32(15)
    word = uint32(word * uint32(0x735A2D97))
    word ^= word >> uint32(15)
    return word


@inline
def hashed(counter: np.uint32, low: np.uint32, high: np.uint32) -> np.uint32:
    """A hash of 32 bits of (key, counter); low, high: words of the key."""
    word = mix(uint32(uint32(counter * uint32(0x9E3779B9)) ^ low))
    return mix(uint32(word + high))


@loop
def dropout(x: Array, first: int, low: np.uint32, high: np.uint32, limit: np.uint32, scale: np.float32) -> None:
    """Element i becomes 0 when the hash of (key, first + i) is below limit, else x[i] * scale."""
    for i in range(x.shape[0]):
        x[i] = ZERO if hashed(uint32(first + i), low, high) < limit else x[i] * scale


table_calls(
    copy=lambda p: copy(vector(p, 0), vector(p, 2)),
    add=lambda p: add(vector(p, 0), vector(p, 2)),
    scale=lambda p: scale(vector(p, 0), vector(p, 2)),
    add_column=lambda p: add_column(matrix(p, 0), vector(p, 3)),
    normalise=lambda p: normalise(matrix(p, 0), vector(p, 3), vector(p, 5)),
    sigmoid=lambda p: sigmoid(vector(p, 0)),
    tanh=lambda p: tanh(vector(p, 0)),
    relu=lambda p: relu(vector(p, 0)),
    sigmoid_gradient=lambda p: sigmoid_gradient(vector(p, 0), vector(p, 2)),
    tanh_gradient=lambda p: tanh_gradient(vector(p, 0), vector(p, 2)),
    relu_gradient=lambda p: relu_gradient(vector(p, 0), vector(p, 2)),
    sum_frames=lambda p: sum_frames(matrix(p, 0), vector(p, 3)),
    softmax=lambda p: softmax(matrix(p, 0)),
    log_softmax=lambda p: log_softmax(matrix(p, 0)),
    cross_entropy_softmax=lambda p: cross_entropy_softmax(matrix(p, 0), matrix(p, 3), vector(p, 6)),
    cross_entropy_softmax_error=lambda p: cross_entropy_softmax_error(
        matrix(p, 0), matrix(p, 3), matrix(p, 6), vector(p, 9)
    ),
    count_errors=lambda p: count_errors(matrix(p, 0), matrix(p, 3), vector(p, 6)),
)
