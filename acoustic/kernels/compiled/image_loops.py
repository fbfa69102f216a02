"""Loops over images, float32: packing windows into columns, adding them back, pooling; see image.py.

frames (T, rows) in C order hold an image per row, packed (T windows, size) a window per row. Windows to pack are
described by their first rows and columns, their height and the offsets of their columns; see ImageWindows in
image_geometry.py.
"""

from numba import float32

from acoustic.kernels.compiled.elementwise_loops import loop
from readers.common.arrays import Array


@loop
def pack(
    frames: Array,
    rows: Array,
    cols: Array,
    height: int,
    offsets: Array,
    image_width: int,
    image_height: int,
    channels: int,
    packed: Array,
) -> None:
    """packed = the windows of every image, 0 outside it."""
    run = height * channels  # a column of a window is one run of memory
    k = 0
    for t in range(frames.shape[0]):
        frame = frames[t]
        for first_col in cols:
            for first_row in rows:
                window = packed[k]
                k += 1
                rows_inside = first_row >= 0 and first_row + height <= image_height
                position = 0
                for offset in offsets:
                    col = first_col + offset
                    start = (first_row + image_height * col) * channels
                    if col < 0 or col >= image_width:
                        window[position : position + run] = float32(0)
                    elif rows_inside:
                        for i in range(run):
                            window[position + i] = frame[start + i]
                    else:
                        # Elements of the run from `above` to `within` are inside the image.
                        above = min(max(-first_row, 0), height) * channels
                        within = max(min(height, image_height - first_row), 0) * channels
                        window[position : position + run] = float32(0)
                        for i in range(above, within):
                            window[position + i] = frame[start + i]
                    position += run


@loop
def unpack(
    packed: Array,
    rows: Array,
    cols: Array,
    height: int,
    offsets: Array,
    image_width: int,
    image_height: int,
    channels: int,
    frames: Array,
) -> None:
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
                position = 0
                for offset in offsets:
                    col = first_col + offset
                    start = (first_row + image_height * col) * channels
                    if col >= 0 and col < image_width:
                        for i in range(above, within):
                            frame[start + i] += window[position + i]
                    position += run


# Pooling: pixels (n, channels), where image t begins at pixel t image_step; its window k begins starts[k] pixels later,
# and holds the pixels `inside` after its first one. pooled, grad and winner are (T, windows channels).


@loop
def max_pool(pixels: Array, image_step: int, starts: Array, inside: Array, pooled: Array, winner: Array) -> None:
    """pooled = the largest pixel of each window and channel; winner = its place in the window, the first of equals."""
    channels = pixels.shape[1]
    for t in range(pooled.shape[0]):
        for k in range(starts.shape[0]):
            window_channels = slice(k * channels, (k + 1) * channels)
            start = t * image_step + starts[k]
            best = pooled[t, window_channels]
            best_at = winner[t, window_channels]
            pixel = pixels[start + inside[0]]
            for c in range(channels):
                best[c] = pixel[c]
                best_at[c] = float32(0)
            # Pixel by pixel, so that the innermost loop, over the channels, runs along memory and is vectorised.
            for position in range(inside.shape[0]):
                pixel = pixels[start + inside[position]]
                number = float32(position)
                for c in range(channels):
                    x = pixel[c]
                    larger = x > best[c] or x != x  # not a number stays
                    best[c] = x if larger else best[c]
                    best_at[c] = number if larger else best_at[c]


@loop
def max_pool_gradient(grad: Array, winner: Array, image_step: int, starts: Array, inside: Array, pixels: Array) -> None:
    """pixels = the gradient at the winners, 0 elsewhere."""
    channels = pixels.shape[1]
    pixels[:] = float32(0)
    for t in range(grad.shape[0]):
        for k in range(starts.shape[0]):
            window_channels = slice(k * channels, (k + 1) * channels)
            start = t * image_step + starts[k]
            part = grad[t, window_channels]
            best_at = winner[t, window_channels]
            for position in range(inside.shape[0]):
                pixel = pixels[start + inside[position]]
                number = float32(position)
                for c in range(channels):
                    pixel[c] += part[c] if best_at[c] == number else float32(0)


@loop
def average_pool(pixels: Array, image_step: int, starts: Array, inside: Array, pooled: Array) -> None:
    """pooled = the mean of every window and channel."""
    channels = pixels.shape[1]
    scale = float32(1 / inside.shape[0])
    for t in range(pooled.shape[0]):
        for k in range(starts.shape[0]):
            total = pooled[t, k * channels : (k + 1) * channels]
            start = t * image_step + starts[k]
            total[:] = float32(0)
            for offset in inside:
                pixel = pixels[start + offset]
                for c in range(channels):
                    total[c] += pixel[c]
            for c in range(channels):
                total[c] *= scale


@loop
def average_pool_gradient(grad: Array, image_step: int, starts: Array, inside: Array, pixels: Array) -> None:
    """pixels = each window's gradient, divided evenly among its places."""
    channels = pixels.shape[1]
    scale = float32(1 / inside.shape[0])
    pixels[:] = float32(0)
    for t in range(grad.shape[0]):
        for k in range(starts.shape[0]):
            part = grad[t, k * channels : (k + 1) * channels]
            start = t * image_step + starts[k]
            for offset in inside:
                pixel = pixels[start + offset]
                for c in range(channels):
                    pixel[c] += scale * part[c]
