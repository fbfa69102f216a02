"""Compiled loops over numbered words; see word.py, and elementwise_loops.py for how they are written.

frames (T, rows), weight (words, rows), q (T, classes): transposed views of matrices in Fortran order.
"""

import numpy as np
from numba import float32

from acoustic.kernels.compiled.elementwise_loops import ONE, exponentials, first_largest, inline, loop, sum_exponentials
from readers.common.arrays import Array


@loop
def add_rows(frames: Array, place: Array, block: Array) -> None:
    """block[place[t]] += frames[t] if the block has such a row."""
    for t in range(frames.shape[0]):
        if 0 <= place[t] < block.shape[0]:
            row = block[place[t]]
            frame = frames[t]
            for i in range(frame.shape[0]):
                row[i] += frame[i]


@loop
def cross_entropy_numbers(numbers: Array, z: Array) -> float:
    """-sum of log softmax(z)[numbers], in double; frames with the number -1 are left out."""
    loss = 0.0
    lanes = np.empty(16, np.float32)
    for t in range(z.shape[0]):
        if numbers[t] < 0:
            continue
        top, total = sum_exponentials(z[t], lanes)
        loss += np.log(total) - (z[t, numbers[t]] - top)
    return loss


@loop
def cross_entropy_numbers_error(numbers: Array, z: Array, error: Array) -> float:
    """The same, and error = softmax(z) less 1 at the number; zeros for frames that are left out."""
    loss = 0.0
    lanes = np.empty(16, np.float32)
    for t in range(z.shape[0]):
        if numbers[t] < 0:
            error[t, :] = float32(0)
            continue
        top, total = exponentials(z[t], error[t], lanes)
        loss += np.log(total) - (z[t, numbers[t]] - top)
        scale = ONE / total
        for i in range(z.shape[1]):
            error[t, i] *= scale
        error[t, numbers[t]] -= ONE
    return loss


@loop
def count_errors_numbers(numbers: Array, z: Array) -> int:
    """The number of frames whose largest element is not the one of the number."""
    errors = 0
    lanes = np.empty(16, np.float32)
    for t in range(z.shape[0]):
        errors += first_largest(z[t], lanes) != max(numbers[t], 0)
    return errors


@inline
def class_scores(frame: Array, weight: Array, first: int, behind: int, scores: Array) -> None:
    """scores[j] = the inner product of a frame and word first + j."""
    count = behind - first
    for j in range(0, count - 3, 4):  # four at a time, which load each element of the frame once
        a = weight[first + j]
        b = weight[first + j + 1]
        c = weight[first + j + 2]
        d = weight[first + j + 3]
        s = float32(0)
        t = float32(0)
        u = float32(0)
        v = float32(0)
        for i in range(frame.shape[0]):
            x = frame[i]
            s += x * a[i]
            t += x * b[i]
            u += x * c[i]
            v += x * d[i]
        scores[j] = s
        scores[j + 1] = t
        scores[j + 2] = u
        scores[j + 3] = v
    for j in range(count - count % 4, count):
        row = weight[first + j]
        total = float32(0)
        for i in range(frame.shape[0]):
            total += frame[i] * row[i]
        scores[j] = total


@loop
def class_loss(
    word: Array, word_class: Array, first: Array, behind: Array, frames: Array, q: Array, weight: Array
) -> float:
    """-sum of log softmax(q)[class] + log softmax(scores of the words of the class)[word], in double."""
    loss = 0.0
    lanes = np.empty(16, np.float32)
    scores = np.empty(max(1, np.max(behind - first)), np.float32)
    for t in range(frames.shape[0]):
        count = behind[t] - first[t]
        if count <= 0:
            continue
        top, total = sum_exponentials(q[t], lanes)
        loss += np.log(total) - (q[t, word_class[t]] - top)
        class_scores(frames[t], weight, first[t], behind[t], scores)
        top, total = sum_exponentials(scores[:count], lanes)
        loss += np.log(total) - (scores[word[t] - first[t]] - top)
    return loss


@loop
def class_errors(
    word: Array, first: Array, behind: Array, starts: Array, frames: Array, weight: Array, errors: Array
) -> None:
    """errors[starts[t] + j] = the probability of word first[t] + j within its class, less 1 for the word itself."""
    lanes = np.empty(16, np.float32)
    for t in range(frames.shape[0]):
        count = behind[t] - first[t]
        if count <= 0:
            continue
        probabilities = errors[starts[t] : starts[t] + count]
        class_scores(frames[t], weight, first[t], behind[t], probabilities)
        _, total = exponentials(probabilities, probabilities, lanes)
        scale = ONE / total
        for j in range(count):
            probabilities[j] *= scale
        probabilities[word[t] - first[t]] -= ONE


@loop
def class_hidden_gradient(
    first: Array, behind: Array, starts: Array, out: Array, errors: Array, weight: Array, scale: float
) -> None:
    """out[t] = scale times the sum of errors times the words' weights."""
    for t in range(out.shape[0]):
        frame_gradient = out[
            t
        ]  # a view of the row: with two indices the loop is not vectorised, and takes five times as long
        frame_gradient[:] = float32(0)
        for j in range(behind[t] - first[t]):
            row = weight[first[t] + j]
            e = scale * errors[starts[t] + j]
            for i in range(frame_gradient.shape[0]):
                frame_gradient[i] += e * row[i]


@loop
def class_weight_gradient(
    numbers: Array,
    block: Array,
    first: Array,
    behind: Array,
    starts: Array,
    place: Array,
    errors: Array,
    frames: Array,
    scale: float,
) -> None:
    """block = the sum over t of scale * errors * frames[t] in row place[t] + j of all blocks, of which it has some.

    numbers: of its rows, ascending.
    """
    block[:] = float32(0)
    for t in range(frames.shape[0] if block.shape[0] else 0):
        # A class may begin before the block or end behind it: other threads have those of its rows.
        frame = frames[t]
        begin = place[t] - numbers[0]
        for j in range(max(0, -begin), min(behind[t] - first[t], block.shape[0] - begin)):
            row = block[begin + j]
            e = scale * errors[starts[t] + j]
            for i in range(frame.shape[0]):
                row[i] += e * frame[i]


@loop
def class_posterior_gradient(
    word_class: Array, first: Array, behind: Array, q: Array, out: Array, scale: float
) -> None:
    """out[t] = scale * (softmax(q[t]) less 1 for the class); zeros for frames without a word."""
    lanes = np.empty(16, np.float32)
    for t in range(q.shape[0]):
        if behind[t] <= first[t]:
            out[t, :] = float32(0)
            continue
        _, total = exponentials(q[t], out[t], lanes)
        factor = scale / total
        for i in range(q.shape[1]):
            out[t, i] *= factor
        out[t, word_class[t]] -= scale


@loop
def noise_margins(words: Array, costs: Array, frames: Array, margins: Array, weight: Array, bias: Array) -> None:
    """margins[t, k] = the inner product of frame t and the weights of words[t, k], plus its bias, less its cost."""
    for t in range(frames.shape[0]):
        frame = frames[t]
        for k in range(words.shape[1]):
            row = weight[words[t, k]]
            total = bias[words[t, k]] - costs[t, k]
            for i in range(frame.shape[0]):
                total += frame[i] * row[i]
            margins[t, k] = total


@loop
def noise_hidden_gradient(words: Array, errors: Array, out: Array, weight: Array, scale: float) -> None:
    """out[t] = scale times the sum over k of errors[t, k] times the weights of words[t, k]."""
    for t in range(out.shape[0]):
        frame_gradient = out[t]
        frame_gradient[:] = float32(0)
        for k in range(words.shape[1]):
            row = weight[words[t, k]]
            e = scale * errors[t, k]
            for i in range(frame_gradient.shape[0]):
                frame_gradient[i] += e * row[i]


@loop
def noise_weight_gradient(
    numbers: Array, block: Array, starts: Array, order: Array, errors: Array, frames: Array, scale: float
) -> None:
    """block[r] = scale times the sum of errors[t, k] * frames[t] over the entries t * K + k of the column numbers[r].

    order: the entries by column, those of column n from starts[n] to starts[n + 1].
    """
    for r in range(block.shape[0]):
        row = block[r]
        row[:] = float32(0)
        # The entries are in the order of the frames, so a sum is the same for any number of threads.
        for position in range(starts[numbers[r]], starts[numbers[r] + 1]):
            t = order[position] // errors.shape[1]
            k = order[position] % errors.shape[1]
            frame = frames[t]
            e = scale * errors[t, k]
            for i in range(frame.shape[0]):
                row[i] += e * frame[i]
