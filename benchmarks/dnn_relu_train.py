"""Training frames per second of a 1320-768x4-132 network of rectified linear units with dropout against PyTorch.

    python -m benchmarks.dnn_relu_train [--one-thread]

Minibatches of 256 frames, dropout 0.2 after every hidden layer; otherwise as benchmarks/dnn_train.py.  Whether both
sides do the same is seen without dropout: each draws masks of its own.
"""

import sys

from benchmarks.layers import layers_case
from benchmarks.training import main

SIZES = (1320, 768, 768, 768, 768, 132)
CASES = [layers_case("dnn-relu-train", SIZES, "RectifiedLinear", 256, dropout=0.2)]

if __name__ == "__main__":
    sys.exit(main("benchmarks.dnn_relu_train", CASES))
