"""CUDA C++ of the kernels, for float or double: `real`.

ArrayKernels describes what each one computes. The compiled kernels of the CPU are no common source: their loops go
through the columns one after the other, in an order that vector instructions need; here a thread has one element, or a
block of threads one column. What both have in common, a network's list of calls and the plan of a loop, comes before.

Every kernel takes any number of blocks and any power of two of threads, and blocks of at most THREADS. Matrices are in
Fortran order without gaps between columns, so that element i is in row i % rows. Sums are made in a fixed order: equal
launches give equal bits.
"""

from collections.abc import Mapping

import numpy as np

THREADS = 256

HEAD = """
#define THREADS %d
#define EACH(i, count) \\
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)

struct Sum { template <class T> static __device__ T of(T a, T b) { return a + b; } };
struct Larger { template <class T> static __device__ T of(T a, T b) { return b > a ? b : a; } };

// An element and its number; of equal elements the first one is larger.
struct Numbered {
    real value;
    long long number;
    __device__ bool operator>(const Numbered &other) const {
        return value > other.value || (value == other.value && number < other.number);
    }
};

// The result of all threads of a block, in every thread.
template <class Operation, class T> __device__ T of_block(T value) {
    __shared__ T shared[THREADS];
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] = Operation::of(shared[threadIdx.x], shared[threadIdx.x + half]);
        __syncthreads();
    }
    T result = shared[0];
    __syncthreads();
    return result;
}

// out[0] = the sum of one number of each block: the block that ends last adds them up.
__device__ void add_blocks(double number, double *parts, int *ended, real *out) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = number;
        __threadfence();
        is_last = atomicAdd(ended, 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    double total = 0;
    for (int block = threadIdx.x; block < gridDim.x; block += blockDim.x) total += ((volatile double *)parts)[block];
    total = of_block<Sum>(total);
    if (threadIdx.x == 0) {
        out[0] = (real)total;
        *ended = 0;
    }
}

__device__ unsigned mixed(unsigned word) {
    word ^= word >> 16;
    word *= 0x21F0AAADu;
    word ^= word >> 15;
    word *= 0x735A2D97u;
    return word ^ (word >> 15);
}
"""

# Parameters after the number of elements and of rows, and the statement for element i in row r.
ELEMENTWISE = {
    "sigmoid": ("const real *x, real *out", "out[i] = (tanh(x[i] * real(0.5)) + 1) * real(0.5);"),
    "sigmoid_gradient": (
        "const real *grad, const real *value, real *out",
        "out[i] = grad[i] * (value[i] * (1 - value[i]));",
    ),
    "tanh_gradient": (
        "const real *grad, const real *value, real *out",
        "out[i] = grad[i] * (1 - value[i] * value[i]);",
    ),
    "relu_gradient": ("const real *grad, const real *value, real *out", "out[i] = value[i] > 0 ? grad[i] : 0;"),
    "log": (
        "const real *x, real *out",
        "out[i] = x[i] < real(1e-37) ? real(-85.1) : log(x[i]);",
    ),
    "normalise": (
        "const real *x, const real *mean, const real *factor, real *out",
        "out[i] = (x[i] - mean[r]) * factor[r];",
    ),
    "scale_shift": (
        "const real *x, const real *centre, const real *factor, const real *bias, real *out",
        "out[i] = (x[i] - centre[r]) * factor[r] + bias[r];",
    ),
    "centred_gradient": (
        "const real *grad, const real *x, const real *centre, const real *factor, const real *shift, "
        "const real *slope, real *out",
        "out[i] = factor[r] * (grad[i] - shift[r] - slope[r] * (x[i] - centre[r]));",
    ),
    "dropout": (
        "const real *x, unsigned low, unsigned high, unsigned limit, unsigned first, real scale, real *out",
        """
        unsigned word = mixed(mixed((first + (unsigned)i) * 0x9E3779B9u ^ low) + high);
        out[i] = word >= limit ? x[i] * scale : 0;
        """,
    ),
    # before: the values of the last steps before the minibatch, or none
    "delay": (
        "const real *x, const real *before, const bool *usable, long long shift, real default_value, real *out",
        """
        long long source = i - shift * rows;
        if (!usable[i / rows] || source >= size) out[i] = default_value;
        else if (source >= 0) out[i] = x[source];
        else out[i] = before ? before[i] : default_value;
        """,
    ),
    "delay_gradient": (
        "const real *grad, const bool *usable, long long shift, real *out",
        """
        long long target = i + shift * rows;
        out[i] = target >= 0 && target < size && usable[target / rows] ? grad[target] : 0;
        """,
    ),
    # elements: of the windows of an image; index: the row of each, or -1 outside
    "pack": (
        "const long long *index, long long elements, const real *x, long long image_rows, real *out",
        """
        long long row = index[i % elements];
        out[i] = row < 0 ? 0 : x[i / elements * image_rows + row];
        """,
    ),
    # index (count, rows): the row of the image of each element of a window, see rows_per_channel
    "max_pool_strips": (
        "const long long *index, long long count, long long strip, const real *products, real *out, real *winner",
        """
        long long frame = i / rows, frames = size / rows, best = 0;
        real largest = 0;
        for (long long k = 0; k < count; ++k) {
            long long row = index[k * rows + r];
            real value = products[row % strip + strip * (frame + frames * (row / strip))];
            if (k == 0 || value > largest) { largest = value; best = k; }
        }
        out[i] = largest;
        winner[i] = (real)best;
        """,
    ),
    "max_pool_strips_gradient": (
        "const long long *index, long long strip, const real *winner, const real *grad, real *products",
        """
        long long row = index[(long long)winner[i] * rows + r];
        products[row % strip + strip * (i / rows + size / rows * (row / strip))] = grad[i];
        """,
    ),
}

# An element of a column, by its largest element `top` and the sum `total` of exp(column[r] - top).
NORMALISED = """
        for (long long t = blockIdx.x; t < cols; t += gridDim.x) {
            const real *column = x + t * rows;
            real top = column[0], total = 0;
            for (long long r = threadIdx.x; r < rows; r += blockDim.x) top = Larger::of(top, column[r]);
            top = of_block<Larger>(top);
            for (long long r = threadIdx.x; r < rows; r += blockDim.x) total += exp(column[r] - top);
            total = of_block<Sum>(total);
            for (long long r = threadIdx.x; r < rows; r += blockDim.x) out[t * rows + r] = %s;
        }
"""

# Parameters after the number of rows and columns, and the body; a block has one column after another.
REDUCTIONS = {
    "softmax": ("const real *x, real *out", NORMALISED % "exp(column[r] - top) / total"),
    "log_softmax": ("const real *x, real *out", NORMALISED % "column[r] - top - log(total)"),
    # labels, or the number of the only label in each column, negative for none; error may be missing
    "cross_entropy": (
        "const real *labels, const long long *numbers, const real *z, double *parts, int *ended, real *loss, "
        "real *error",
        """
        double losses = 0;
        for (long long t = blockIdx.x; t < cols; t += gridDim.x) {
            const real *column = z + t * rows;
            real top = column[0], total = 0, mass = 0, match = 0;
            for (long long r = threadIdx.x; r < rows; r += blockDim.x) top = Larger::of(top, column[r]);
            top = of_block<Larger>(top);
            for (long long r = threadIdx.x; r < rows; r += blockDim.x) {
                real label = labels ? labels[t * rows + r] : real(numbers[t] == r);
                total += exp(column[r] - top);
                mass += label;
                match += label * (column[r] - top);
            }
            total = of_block<Sum>(total);
            mass = of_block<Sum>(mass);
            match = of_block<Sum>(match);
            losses += mass * log(total) - match;
            for (long long r = threadIdx.x; error && r < rows; r += blockDim.x) {
                real label = labels ? labels[t * rows + r] : real(numbers[t] == r);
                error[t * rows + r] = exp(column[r] - top) * (mass / total) - label;
            }
        }
        add_blocks(losses, parts, ended, loss);
        """,
    ),
    "count_errors": (
        "const real *labels, const long long *numbers, const real *z, double *parts, int *ended, real *count",
        """
        double errors = 0;
        for (long long t = blockIdx.x; t < cols; t += gridDim.x) {
            Numbered best = {z[t * rows], 0}, label = {0, 0};
            if (labels) label.value = labels[t * rows];
            for (long long r = threadIdx.x; r < rows; r += blockDim.x) {
                best = Larger::of(best, Numbered{z[t * rows + r], r});
                if (labels) label = Larger::of(label, Numbered{labels[t * rows + r], r});
            }
            long long wanted = labels ? of_block<Larger>(label).number : numbers[t] > 0 ? numbers[t] : 0;
            errors += of_block<Larger>(best).number != wanted;
        }
        add_blocks(errors, parts, ended, count);
        """,
    ),
    # A block has one row after another; the variance is made in a second pass, about the mean.
    "batch_statistics": (
        "const real *x, const real *mean, const real *invstd, double num_frames, double blend, double epsilon, "
        "real *work",
        """
        for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
            double total = 0, squares = 0;
            for (long long t = threadIdx.x; t < cols; t += blockDim.x) total += x[t * rows + r];
            double middle = of_block<Sum>(total) / cols;
            for (long long t = threadIdx.x; t < cols; t += blockDim.x) {
                double distance = x[t * rows + r] - middle;
                squares += distance * distance;
            }
            double variance = of_block<Sum>(squares) / cols;
            if (threadIdx.x) continue;
            double stored = invstd[r] > 0 ? 1 / ((double)invstd[r] * invstd[r]) - epsilon : 0;
            double weight = invstd[r] > 0 ? 1 - blend / (blend + num_frames) : 1;
            double blended = weight * variance + (1 - weight) * (stored > 0 ? stored : 0);
            work[r] = (real)(weight * middle + (1 - weight) * mean[r]);
            work[rows + r] = (real)(1 / sqrt(blended + epsilon));
            work[2 * rows + r] = (real)middle;
            work[3 * rows + r] = (real)variance;
            work[4 * rows + r] = (real)weight;
        }
        """,
    ),
    # results: five columns side by side, or two without scale
    "batch_gradient": (
        "const real *grad, const real *x, const real *scale, double share, const real *work, real *results",
        """
        for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
            double total = 0, match = 0, inverse = work[rows + r], weight = work[4 * rows + r];
            for (long long t = threadIdx.x; t < cols; t += blockDim.x) {
                real g = grad[t * rows + r];
                total += g;
                match += g * (x[t * rows + r] - work[r]);
            }
            total = of_block<Sum>(total);
            match = of_block<Sum>(match) * inverse;
            if (threadIdx.x) continue;
            results[r] = (real)total;
            results[rows + r] = (real)match;
            if (!scale) continue;
            results[2 * rows + r] = (real)(scale[r] * inverse);
            results[3 * rows + r] = (real)(weight * share * total);
            results[4 * rows + r] = (real)(weight * share * match * inverse);
        }
        """,
    ),
}

Kernels = Mapping[str, tuple[str, str]]


def preamble(dtype: type, more: str = "") -> str:
    """Return what kernels for numpy.float32 or numpy.float64 begin with."""
    return f"typedef {'float' if dtype is np.float32 else 'double'} real;\n{HEAD % THREADS}{more}"


def source(dtype: type, elementwise: Kernels, reductions: Kernels) -> str:
    """Return the CUDA C++ of kernels.

    Parameters
    ----------
    dtype : type
        numpy.float32 or numpy.float64.
    elementwise, reductions : mapping of str to (str, str)
        Parameters and body of each kernel, as in ELEMENTWISE and REDUCTIONS.

    Returns
    -------
    str
        The name of a kernel has `kernel_` before it: there is a function `log` already.
    """
    parts = [preamble(dtype)]
    for name, (parameters, body) in elementwise.items():
        parts.append(f"""
extern "C" __global__ void kernel_{name}(long long size, long long rows, {parameters}) {{
    EACH(i, size) {{
        {"long long r = i % rows;" if "[r]" in body or "+ r]" in body else ""}
        {body}
    }}
}}""")
    for name, (parameters, body) in reductions.items():
        parts.append(f"""
extern "C" __global__ void kernel_{name}(long long rows, long long cols, {parameters}) {{
{body}
}}""")
    return "\n".join(parts)
