"""Compiled elementwise kernels for float32 on the CPU."""

import numpy as np

from acoustic.array_kernels import ArrayKernels


class CompiledKernels(ArrayKernels):
    def __init__(self):
        super().__init__(np)


def momentum_step(weight, gradient, smoothed, learning_rate, momentum):
    smoothed *= momentum
    smoothed += (1 - momentum) * learning_rate * gradient
    weight -= smoothed
