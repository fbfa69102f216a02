# From the table in __init__.py, by `python -m tests.structure.test_faces`
from acoustic.nodes.base import Node as Node
from acoustic.nodes.base import Run as Run
from acoustic.nodes.base import Shape as Shape
from acoustic.nodes.base import register_node as register_node
from acoustic.nodes.gradient_targets import GradientRoute as GradientRoute
from acoustic.nodes.gradient_targets import GradientTargets as GradientTargets
from acoustic.nodes.option import Option as Option
from acoustic.nodes.registry import node_class as node_class
from acoustic.nodes.registry import registered_nodes as registered_nodes
from acoustic.nodes.sequence_state import SequenceState as SequenceState
from acoustic.nodes.sequence_state import Sequences as Sequences
