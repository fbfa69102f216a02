"""Training frames per second of a small convolutional network over 11x24 patches against PyTorch, two threads each.

    python -m benchmarks.cnn_train [--one-thread]

A patch is 11 frames of 24 filterbank outputs.  64 kernels of 9 frames by 9 filters, rectified linear units, the largest
of every 3 filters, two layers of 512, 183 outputs; minibatches of 256 patches, otherwise as benchmarks/dnn_train.py.
PyTorch gets the faster of its two memory layouts.
"""

import sys
from functools import partial
from itertools import pairwise
from typing import Any

from benchmarks import training
from benchmarks.layers import MOMENTUM, RATE_PER_FRAME, layer_operations, our_options

WIDTH, HEIGHT = 11, 24  # frames, filters
MAPS, KERNEL, POOL = 64, 9, 3
PLACES = (WIDTH - KERNEL + 1) * (HEIGHT - KERNEL + 1)
POOLED = (WIDTH - KERNEL + 1, (HEIGHT - KERNEL + 1) // POOL)  # width, height
SIZES = (MAPS * POOLED[0] * POOLED[1], 512, 512, 183)
FRAMES = 256
LAYOUTS = ("contiguous", "channels last")
LAYERS = [shape for a, b in pairwise(SIZES) for shape in ((b, a), (b, 1))]


def ours(weights: list, features: Any, labels: Any, dropout: float) -> training.Side:
    from acoustic.network.network import Network

    network = Network(device=training.device)
    network.add("ImageInput", "features", width=WIDTH, height=HEIGHT, channels=1)
    network.add("Input", "labels", rows=SIZES[-1])
    network.add("Parameter", "W0", rows=MAPS, cols=KERNEL * KERNEL)
    network.add("Parameter", "B0", rows=MAPS)
    network.add("Convolution", "C", "W0", "features", kernelWidth=KERNEL, kernelHeight=KERNEL, outputChannels=MAPS,
                horizontalSubsample=1, verticalSubsample=1)  # fmt: skip
    network.add("RectifiedLinear", "R", network.add("Plus", "C+B", "C", "B0"))
    below = network.add("MaxPooling", "H0", "R", windowWidth=1, windowHeight=POOL, stepW=1, stepH=POOL)
    for layer, (inputs, outputs) in enumerate(pairwise(SIZES), 1):
        network.add("Parameter", f"W{layer}", rows=outputs, cols=inputs)
        network.add("Parameter", f"B{layer}", rows=outputs)
        product = network.add("Times", f"W{layer}*H", f"W{layer}", below)
        below = network.add("Plus", f"Z{layer}", product, f"B{layer}")
        if outputs != SIZES[-1]:
            below = network.add("RectifiedLinear", f"H{layer}", below)
    network.criteria.append(network.add("CrossEntropyWithSoftmax", "CE", "labels", below).name)
    return training.our_side(network, our_options(FRAMES), weights, features, labels, dropout)


def theirs(torch: Any, weights: list, features: Any, labels: Any, dropout: float, way: str) -> training.Side:
    """Their images are (channel, filter, frame), frame fastest; ours, and so the weights, channel, filter, frame."""
    loop, layout = way.split(", ")
    memory = {"memory_format": torch.channels_last if layout == "channels last" else torch.contiguous_format}
    convolution = torch.nn.Conv2d(1, MAPS, KERNEL)
    layers = torch_layers(torch, weights[2:])
    with torch.no_grad():
        convolution.weight.copy_(torch.from_numpy(weights[0].reshape(MAPS, 1, KERNEL, KERNEL).swapaxes(2, 3).copy()))
        convolution.bias.copy_(torch.from_numpy(weights[1][:, 0]))
    parts = [convolution, torch.nn.ReLU(), torch.nn.MaxPool2d((POOL, 1)), torch.nn.Flatten(), *layers]
    network = torch.nn.Sequential(*parts).to(**memory)
    optimiser = training.momentum_optimiser(torch, network.parameters(), RATE_PER_FRAME, MOMENTUM, loop)
    x = torch.from_numpy(features.T.reshape(-1, 1, WIDTH, HEIGHT).swapaxes(2, 3).copy()).contiguous(**memory)

    def current() -> list:
        values = [parameter.detach().cpu().numpy() for parameter in network.parameters()]
        kernels = values[0].swapaxes(2, 3).reshape(MAPS, -1)
        first = values[2].reshape(-1, MAPS, *POOLED[::-1]).transpose(0, 3, 2, 1).reshape(values[2].shape)
        return [kernels, values[1][:, None], first] + [v if v.ndim == 2 else v[:, None] for v in values[3:]]

    return training.their_side(torch, network, optimiser, x, labels, current)


def torch_layers(torch: Any, weights: list) -> Any:
    """The layers above the pooling; flattened, their images have the frame fastest and the channel slowest."""
    first = weights[0].reshape(-1, *POOLED, MAPS).transpose(0, 3, 2, 1).reshape(weights[0].shape)
    return training.torch_layers(torch, [first, *weights[1:]], torch.nn.ReLU, 0.0)


CONVOLUTION = 4 * MAPS * KERNEL * KERNEL * PLACES * FRAMES  # forward and for the kernels' gradient
CASES = [
    training.Case(
        name="cnn-train",
        title=f"{WIDTH}x{HEIGHT} patches, {MAPS} kernels {KERNEL}x{KERNEL}, pooled by {POOL}, "
        f"{'-'.join(map(str, SIZES))} RectifiedLinear, momentum",
        frames=FRAMES,
        shapes=[(MAPS, KERNEL * KERNEL), (MAPS, 1), *LAYERS],
        operations=CONVOLUTION + layer_operations(SIZES, FRAMES) + 2 * SIZES[0] * SIZES[1] * FRAMES,
        values=FRAMES * (MAPS * PLACES + sum(SIZES)),
        data=partial(training.make_data, WIDTH * HEIGHT, SIZES[-1], FRAMES),
        ours=ours,
        theirs=theirs,
        ways=[f"{loop}, {layout}" for loop in training.LOOPS for layout in LAYOUTS],
    )
]

if __name__ == "__main__":
    sys.exit(training.main("benchmarks.cnn_train", CASES))
