"""Every node type; importing the package registers them, in the order of the book's section 2.4."""

from acoustic.nodes import leaves  # noqa: F401  isort: skip
from acoustic.nodes import elementwise  # noqa: F401  isort: skip
from acoustic.nodes import softmax  # noqa: F401  isort: skip
from acoustic.nodes import products  # noqa: F401  isort: skip
from acoustic.nodes import sums  # noqa: F401  isort: skip
from acoustic.nodes import dropout  # noqa: F401  isort: skip
from acoustic.nodes import criteria  # noqa: F401  isort: skip
from acoustic.nodes import statistics  # noqa: F401  isort: skip
