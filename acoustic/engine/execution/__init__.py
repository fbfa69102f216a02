"""One pass over a network: arrays bound to steps, inputs, and where gradients go.

Open bound_pass.py first, then steps.py and gradient_sink.py.
"""
