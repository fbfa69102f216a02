"""One pass over a network: steps bound to arrays, inputs, and the routes of gradients.

Open bound_pass.py first, then steps.py and gradient_sink.py.
"""
