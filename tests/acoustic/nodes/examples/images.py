"""Examples of convolution, pooling and batch normalisation; test_images has the direct formulas and more cases."""

import numpy as np

from acoustic.kernels.image_geometry import Image
from tests.acoustic.nodes.examples.base import Example, normal, positive
from tests.acoustic.nodes.image_formulas import convolution, convolution_options, pooled, pooling_options


def convolved(image, kernel, steps, padded, maps=2):
    def value(w, y):
        return convolution(w, y, Image(*image), kernel, steps, padded)

    shapes = ((maps, kernel[0] * kernel[1] * image[2]), (int(np.prod(image)), 5))
    options = convolution_options(maps, kernel, steps, padded)
    return Example("Convolution", shapes, value, frames=(1,), images={1: image}, options=options)


def padded_convolution(image, kernel, steps, lower, upper):
    width, height, channels = image

    def value(w, y):
        pixels = y.reshape((channels, height, width, -1), order="F")
        padded = np.pad(pixels, ((0, 0), (lower, upper), (0, 0), (0, 0)))
        taller = Image(width, height + lower + upper, channels)
        return convolution(w, padded.reshape((taller.size, -1), order="F"), taller, kernel, steps, False)

    shapes = ((2, kernel[0] * kernel[1] * channels), (int(np.prod(image)), 5))
    options = convolution_options(2, kernel, steps, False) | {"padTop": lower, "padBottom": upper}
    return Example("Convolution", shapes, value, frames=(1,), images={1: image}, options=options)


def pooling(type_name, function, image, window, steps):
    def value(y):
        return pooled(y, Image(*image), window, steps, function)

    shapes, options = ((int(np.prod(image)), 5),), pooling_options(window, steps)
    return Example(type_name, shapes, value, frames=(0,), images={0: image}, options=options)


def over_time(dim, frames, maps, offsets, step):
    def value(w, x):
        times = [t for t in range(0, frames) if all(0 <= t + offset < frames for offset in offsets)][::step]
        rows = [w @ np.concatenate([x[(t + o) * dim : (t + o + 1) * dim] for o in offsets]) for t in times]
        return np.concatenate(rows)

    shapes = ((maps, len(offsets) * dim), (frames * dim, 5))
    options = {"offsets": ":".join(map(str, offsets)), "step": step}
    return Example("TimeConvolution", shapes, value, frames=(1,), options=options)


def by_stored_statistics(x, scale, bias, mean, invstd):
    """What evaluation does; what training does is in test_batch_normalization."""
    return scale * (x - mean) * invstd + bias


def batch_normalisation(rows, cols, **options):
    shapes = ((rows, cols), *[(rows, 1)] * 4)
    fills = (normal, normal, normal, normal, positive)
    more = {"fixed": (3, 4), "frames": (0,), "whole": True, "options": options}
    return Example("BatchNormalization", shapes, by_stored_statistics, fills, **more)


EXAMPLES = [
    convolved((3, 4, 2), (2, 3), (1, 1), False),
    convolved((5, 4, 1), (3, 2), (2, 1), True),
    padded_convolution((3, 4, 2), (3, 2), (1, 2), 1, 2),
    pooling("MaxPooling", max, (4, 6, 2), (1, 3), (1, 3)),
    pooling("MaxPooling", max, (4, 4, 1), (3, 2), (1, 1)),
    pooling("AveragePooling", np.mean, (4, 6, 2), (1, 3), (1, 3)),
    pooling("AveragePooling", np.mean, (4, 4, 1), (3, 2), (1, 1)),
    over_time(2, 5, 3, (-1, 0, 1), 1),
    over_time(1, 7, 2, (-3, 1), 2),
    batch_normalisation(3, 5),
    batch_normalisation(2, 4, blendTimeConstant=3.0, epsilon=0.1),
]

BAD_SHAPES = [
    ("Convolution", ((2, 7), (24, None)), convolution_options(2, (2, 3), (1, 1), False)),
    ("Convolution", ((2, 4), (24, None)), convolution_options(2, (2, 1), (1, 1), True) | {"padTop": 1}),
    ("MaxPooling", ((24, None),), pooling_options((2, 2), (1, 1))),
    ("AveragePooling", ((24, None),), pooling_options((2, 2), (1, 1))),
    ("TimeConvolution", ((2, 5), (10, None)), {"offsets": "-1:1"}),
    ("BatchNormalization", ((3, None), (3, 1), (2, 1), (3, 1), (3, 1)), {}),
]
ANY_SHAPE = set()
