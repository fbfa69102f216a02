"""Loops over images, float32: packing windows into columns, adding them back, pooling; see image_kernels.py.

frames are (T, rows) in C order, an image a row; packed (T windows, size), a window a row.  Windows are told by their
first rows and columns, their height and the offsets of their columns; see acoustic.images.Windows.
"""

import numpy as np
from numba import float32

from acoustic._kernels import loop


@loop
def pack(frames, rows, cols, height, offsets, image_width, image_height, channels, packed):
    """packed = the windows of every image, 0 outside it."""
    run = height * channels  # a column of a window is one run of memory
    k = 0
    for t in range(frames.shape[0]):
        frame = frames[t]
        for first_col in cols:
            for first_row in rows:
                window = packed[k]
                k += 1
                inside = first_row >= 0 and first_row + height <= image_height
                place = 0
                for offset in offsets:
                    col = first_col + offset
                    start = (first_row + image_height * col) * channels
                    if col < 0 or col >= image_width:
                        window[place : place + run] = float32(0)
                    elif inside:
                        for i in range(run):
                            window[place + i] = frame[start + i]
                    else:
                        above = min(max(-first_row, 0), height) * channels
                        within = max(min(height, image_height - first_row), 0) * channels
                        window[place : place + run] = float32(0)
                        for i in range(above, within):
                            window[place + i] = frame[start + i]
                    place += run


@loop
def unpack(packed, rows, cols, height, offsets, image_width, image_height, channels, frames):
    """frames = the sum of the windows where they lie on every image."""
    run = height * channels
    frames[:] = float32(0)
    k = 0
    for t in range(frames.shape[0]):
        frame = frames[t]
        for first_col in cols:
            for first_row in rows:
                window = packed[k]
                k += 1
                above = min(max(-first_row, 0), height) * channels
                within = max(min(height, image_height - first_row), 0) * channels
                place = 0
                for offset in offsets:
                    col = first_col + offset
                    start = (first_row + image_height * col) * channels
                    if col >= 0 and col < image_width:
                        for i in range(above, within):
                            frame[start + i] += window[place + i]
                    place += run


@loop
def max_pool(frames, rows, cols, height, offsets, image_height, channels, pooled, winner):
    """pooled = the largest of every window and channel; winner = its place in the image, of equals the first."""
    for t in range(frames.shape[0]):
        frame = frames[t]
        place = 0
        for first_col in cols:
            for first_row in rows:
                best = pooled[t, place : place + channels]
                best_at = winner[t, place : place + channels]
                start = (first_row + image_height * first_col) * channels
                for c in range(channels):
                    best[c] = frame[start + c]
                    best_at[c] = float32(start + c)
                for offset in offsets:
                    for r in range(height):
                        start = (first_row + r + image_height * (first_col + offset)) * channels
                        for c in range(channels):
                            x = frame[start + c]
                            larger = x > best[c] or x != x  # not a number stays
                            best[c] = x if larger else best[c]
                            best_at[c] = float32(start + c) if larger else best_at[c]
                place += channels


@loop
def max_pool_gradient(grad, winner, frames):
    """frames = the gradient at the winners, 0 elsewhere."""
    frames[:] = float32(0)
    for t in range(frames.shape[0]):
        for i in range(grad.shape[1]):
            frames[t, np.int32(winner[t, i])] += grad[t, i]


@loop
def average_pool(frames, rows, cols, height, offsets, image_height, channels, pooled):
    """pooled = the mean of every window and channel."""
    scale = float32(1 / (height * offsets.shape[0]))
    for t in range(frames.shape[0]):
        frame = frames[t]
        place = 0
        for first_col in cols:
            for first_row in rows:
                total = pooled[t, place : place + channels]
                total[:] = float32(0)
                for offset in offsets:
                    for r in range(height):
                        start = (first_row + r + image_height * (first_col + offset)) * channels
                        for c in range(channels):
                            total[c] += frame[start + c]
                for c in range(channels):
                    total[c] *= scale
                place += channels


@loop
def average_pool_gradient(grad, rows, cols, height, offsets, image_height, channels, frames):
    """frames = each window's gradient shared out evenly among its places."""
    scale = float32(1 / (height * offsets.shape[0]))
    frames[:] = float32(0)
    for t in range(frames.shape[0]):
        frame = frames[t]
        place = 0
        for first_col in cols:
            for first_row in rows:
                part = grad[t, place : place + channels]
                for offset in offsets:
                    for r in range(height):
                        start = (first_row + r + image_height * (first_col + offset)) * channels
                        for c in range(channels):
                            frame[start + c] += scale * part[c]
                place += channels
