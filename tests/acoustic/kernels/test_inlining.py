"""Loops whose sums may be reordered are part of each kernel that calls them."""

from acoustic.kernels.compiled import elementwise_loops


def test_loops_with_free_order_are_inlined():
    """Otherwise a training computes other bits when its kernels are compiled than when they are loaded."""
    loops = [found for found in vars(elementwise_loops).values() if hasattr(found, "targetoptions")]
    free = [found for found in loops if found.targetoptions.get("fastmath")]
    assert len(free) > 10
    for found in free:
        assert found.targetoptions.get("forceinline") or found.targetoptions.get("inline") == "always", found
