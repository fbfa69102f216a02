"""Loops over images, float32: packing windows into columns, adding them back, pooling; see image.py.

frames (T, rows) in C order hold an image per row, packed (T windows, size) a window per row. Windows are described by
their first rows and columns, their height and the offsets of their columns; see Windows in image_geometry.py.
"""

from numba import float32

from acoustic.kernels.compiled.elementwise_loops import loop


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
def max_pool(pixels, col_step, image_step, rows, cols, height, offsets, pooled, winner):
    """pooled = the largest element of every window and channel; winner = its place in the window, the first of equals.

    pixels (n, channels): row r and column q of image t is pixel r + q col_step + t image_step; pooled (T, rows).
    """
    channels = pixels.shape[1]
    for t in range(pooled.shape[0]):
        place = 0
        for first_col in cols:
            for first_row in rows:
                best, best_at = pooled[t, place : place + channels], winner[t, place : place + channels]
                place += channels
                start = t * image_step + first_col * col_step + first_row
                pixel = pixels[start + offsets[0] * col_step]
                for c in range(channels):
                    best[c], best_at[c] = pixel[c], float32(0)
                k = 0
                for offset in offsets:
                    for r in range(height):
                        pixel, number = pixels[start + offset * col_step + r], float32(k)
                        for c in range(channels):
                            x = pixel[c]
                            larger = x > best[c] or x != x  # not a number stays
                            best[c] = x if larger else best[c]
                            best_at[c] = number if larger else best_at[c]
                        k += 1


@loop
def max_pool_gradient(grad, winner, col_step, image_step, rows, cols, height, offsets, pixels):
    """pixels = the gradient at the winners, 0 elsewhere."""
    channels = pixels.shape[1]
    pixels[:] = float32(0)
    for t in range(grad.shape[0]):
        place = 0
        for first_col in cols:
            for first_row in rows:
                part, best_at = grad[t, place : place + channels], winner[t, place : place + channels]
                place += channels
                start = t * image_step + first_col * col_step + first_row
                k = 0
                for offset in offsets:
                    for r in range(height):
                        pixel, number = pixels[start + offset * col_step + r], float32(k)
                        for c in range(channels):
                            pixel[c] += part[c] if best_at[c] == number else float32(0)
                        k += 1


@loop
def average_pool(pixels, col_step, image_step, rows, cols, height, offsets, pooled):
    """pooled = the mean of every window and channel."""
    channels = pixels.shape[1]
    scale = float32(1 / (height * offsets.shape[0]))
    for t in range(pooled.shape[0]):
        place = 0
        for first_col in cols:
            for first_row in rows:
                total = pooled[t, place : place + channels]
                place += channels
                start = t * image_step + first_col * col_step + first_row
                total[:] = float32(0)
                for offset in offsets:
                    for r in range(height):
                        pixel = pixels[start + offset * col_step + r]
                        for c in range(channels):
                            total[c] += pixel[c]
                for c in range(channels):
                    total[c] *= scale


@loop
def average_pool_gradient(grad, col_step, image_step, rows, cols, height, offsets, pixels):
    """pixels = each window's gradient, divided evenly among its places."""
    channels = pixels.shape[1]
    scale = float32(1 / (height * offsets.shape[0]))
    pixels[:] = float32(0)
    for t in range(grad.shape[0]):
        place = 0
        for first_col in cols:
            for first_row in rows:
                part = grad[t, place : place + channels]
                place += channels
                start = t * image_step + first_col * col_step + first_row
                for offset in offsets:
                    for r in range(height):
                        pixel = pixels[start + offset * col_step + r]
                        for c in range(channels):
                            pixel[c] += scale * part[c]
