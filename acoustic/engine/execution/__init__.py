"""One pass over a network: steps bound to arrays, inputs, and the routes of gradients.

Open program.py first, then arrays.py, steps.py and gradient_sink.py.
"""
