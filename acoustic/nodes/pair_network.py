"""PairNetwork: the connection through which one network reads values of another (CNTK book 2.7.1)."""

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, register_node
from acoustic.nodes.option import Option
from acoustic.nodes.properties import SOCKET

FIRST, LAST, ALL = "first", "last", "all"


@register_node("PairNetwork", "PairNetworkNode")
class PairNetwork(Node):
    """Value of a node of another network at the last frame of the corresponding sequence.

    The sequences of the two networks correspond by number within each slot of the minibatch. The value stands at the
    first step of this network's sequence, and zeros at the others: added to a PastValue with defaultHiddenActivity=0,
    it is the initial state of a recurrent layer. The gradient flows back to the frame that was read. See
    acoustic/engine/pair_engine.py.

    Parameters
    ----------
    m : (rows, T of the other network)
        A node of the other network.
    steps : str
        ``first``: the value stands at the first step only; ``all``: at every step.
    frame : str
        ``last``: read the last frame; ``first``: read the first, which a layer running backward in time reaches last.

    References
    ----------
    CNTK book 2.7.1.
    """

    operand_names = ("m",)
    options = (
        Option("steps", str, FIRST, choices=(FIRST, ALL)),
        Option("frame", str, LAST, choices=(LAST, FIRST)),
    )
    properties = frozenset({SOCKET})

    def infer_shape(self, m: Shape) -> Shape:
        if not m.has_frames:
            raise self.shape_error([m], "a node with one column per frame")
        return Shape(m.rows, None)
