"""Codes in the tables of a compiled loop; see step_kernels.py for their columns.

numba compiles them into the kernels: after a change here, touch step_kernels.py, so that its cached form is renewed.
"""

COPY, NEGATE, COLUMN, TIMES, TIMES_COLUMN, SIGMOID, TANH, RELU = range(8)  # elementwise operations
SKIP, ADD, WRITE = range(3)  # what to do with the gradient of an operand
PRODUCTS, OPERATIONS = range(2)  # kinds of segments
PANELS = 0  # storage of the parameter of a product; otherwise PLAIN or TRANSPOSED of memory.py
