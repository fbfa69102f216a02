"""One pass over a network: arrays bound to steps, inputs, and where gradients go.

Open bound_pass.py first, then steps.py and gradient_sinks.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "gradient_sinks": ["GradientSink"],
    },
)
