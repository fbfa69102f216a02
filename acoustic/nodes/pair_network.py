"""PairNetwork: the socket by which one network takes the values of another (book 2.7.1)."""

from acoustic.nodes.base import Node, Option, Shape, register_node

FIRST, LAST, ALL = "first", "last", "all"


@register_node("PairNetwork", "PairNetworkNode")
class PairNetwork(Node):
    """What another network holds at one frame, the last, of the sequence that belongs to one of this network.

    m: a node of the other network, whose columns are sequences of their own: the k-th of a slot there belongs to the
    k-th of that slot here.  Its column of the last frame, or of the first with frame=first, where a layer backward in
    time has seen everything, stands at the first step of the sequence here and zeros at the others, so that, added to a
    PastValue with defaultHiddenActivity=0, it is what that begins with; with steps=all it stands at every step.
    The gradient goes back to that frame.  See acoustic.engine.pair_engine.
    """

    operand_names = ("m",)
    options = (
        Option("steps", str, FIRST, choices=(FIRST, ALL)),
        Option("frame", str, LAST, choices=(LAST, FIRST)),
    )
    is_socket = True

    def infer_shape(self, m: Shape) -> Shape:
        if not m.has_frames:
            raise self.shape_error([m], "a node with one column per frame")
        return Shape(m.rows, None)
