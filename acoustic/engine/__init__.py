"""Executes a network: values of its roots, and gradients of a criterion.

Open engine.py first. planning/ decides which steps run, in which order and in which memory; execution/ runs one pass.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "engine": ["Engine"],
        "execution.gradient_sink": ["GradientSink", "LayerUpdate"],
        "inputs": ["check_inputs"],
        "pair_engine": ["PairEngine", "make_engine"],
        "gradient_check": ["GradientComparison", "check_gradients", "compare_with_forward_mode"],
        "forward_mode": ["Dual", "jacobian_vector_product"],
    },
)
