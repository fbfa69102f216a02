"""Image nodes by loops over pixels, and networks over images, for tests."""

import numpy as np

from acoustic.engine.engine import Engine
from acoustic.kernels.image_geometry import Image
from acoustic.network.network import Network


def pixels(column, image):
    """{(channel, row, column): value} of one image in a column, by the picture in kernels/image_geometry.py."""
    count = iter(range(image.size))
    return {
        (c, r, q): column[next(count)]
        for q in range(image.width)
        for r in range(image.height)
        for c in range(image.channels)
    }


def convolution(w, y, image, kernel, steps, padded):
    """Eq. 2.162 pixel by pixel; (m places, T)."""
    (k_cols, k_rows), (s_cols, s_rows) = kernel, steps

    def starts(size, window, step):
        if padded:
            return [i * step - window // 2 for i in range((size - window % 2) // step + 1)]
        return [i * step for i in range((size - window) // step + 1)]

    results = []
    for t in range(y.shape[1]):
        pixel = pixels(y[:, t], image)
        column = []
        for q in starts(image.width, k_cols, s_cols):
            for r in starts(image.height, k_rows, s_rows):
                for m in range(w.shape[0]):
                    weight = pixels(w[m], Image(k_cols, k_rows, image.channels))
                    total = sum(x * pixel.get((c, r + i, q + j), 0.0) for (c, i, j), x in weight.items())
                    column.append(total)
        results.append(column)
    return np.array(results).T


def pooled(y, image, window, steps, function):
    (k_cols, k_rows), (s_cols, s_rows) = window, steps
    results = []
    for t in range(y.shape[1]):
        pixel = pixels(y[:, t], image)
        results.append(
            [
                function([pixel[c, r + i, q + j] for j in range(k_cols) for i in range(k_rows)])
                for q in range(0, image.width - k_cols + 1, s_cols)
                for r in range(0, image.height - k_rows + 1, s_rows)
                for c in range(image.channels)
            ]
        )
    return np.array(results).T


def convolution_options(maps, kernel, steps, padded):
    names = ("kernelWidth", "kernelHeight", "outputChannels", "horizontalSubsample", "verticalSubsample", "zeroPadding")
    return dict(zip(names, (*kernel, maps, *steps, padded)))


def pooling_options(window, steps):
    return dict(zip(("windowWidth", "windowHeight", "stepW", "stepH"), (*window, *steps)))


def network_over(image, frames, rng, precision="double"):
    """features (an image) + x (a parameter) = y, an image that learns."""
    network = Network(precision, threads=1)
    network.add("ImageInput", "features", width=image.width, height=image.height, channels=image.channels)
    network.add("Parameter", "x", rows=image.size, cols=frames)
    network.set_value("x", rng.standard_normal((image.size, frames)))
    network.add("Plus", "y", "features", "x")
    return network, {"features": np.asfortranarray(rng.standard_normal((image.size, frames)))}


def add_criterion(network, name, rng, matrices):
    """J: a node's square distance from random numbers."""
    rows, frames = network.shapes[name].rows, matrices["features"].shape[1]
    network.add("Input", "numbers", rows=rows)
    matrices["numbers"] = np.asfortranarray(rng.standard_normal((rows, frames)))
    network.add("SquareError", "J", name, "numbers")
    return "J"


def values_of(network, matrices, names):
    engine = Engine(network, names)
    engine.forward(matrices)
    return [engine.value(name).copy() for name in names]
