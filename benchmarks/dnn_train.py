"""Training frames per second of a 792-512x3-183 sigmoid network against PyTorch, on the same data, two threads each.

    python -m benchmarks.dnn_train [--one-thread]

Minibatches of 256 and 1024 frames, cross-entropy with softmax, stochastic gradient descent with momentum, the loss read
after every minibatch.  With the extra `mkl` our products are made by MKL, as PyTorch's are; else by the OpenBLAS in
numpy's wheels.  Beside the rates stands the share of the machine's matrix multiplication rate that training reaches.
"""

import sys

from benchmarks.layers import layers_case
from benchmarks.training import main

SIZES = (792, 512, 512, 512, 183)
CASES = [layers_case(f"dnn-train-{frames}", SIZES, "Sigmoid", frames) for frames in (256, 1024)]

if __name__ == "__main__":
    sys.exit(main("benchmarks.dnn_train", CASES))
