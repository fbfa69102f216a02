"""Training frames per second of a 792-512x3-183 sigmoid network with AdaGrad against PyTorch.

    python -m benchmarks.adagrad_train [--one-thread]

Minibatches of 256 frames; otherwise as benchmarks/dnn_train.py.
"""

import sys

from benchmarks.layers import layers_case
from benchmarks.training import main

CASES = [layers_case("adagrad-train", (792, 512, 512, 512, 183), "Sigmoid", 256, adagrad=True)]

if __name__ == "__main__":
    sys.exit(main("benchmarks.adagrad_train", CASES))
