"""Every node type; importing the package registers them, in the order of the book's section 2.4."""

from acoustic.nodes import leaves  # noqa: F401  isort: skip
from acoustic.nodes import elementwise  # noqa: F401  isort: skip
from acoustic.nodes import softmax  # noqa: F401  isort: skip
from acoustic.nodes import products  # noqa: F401  isort: skip
from acoustic.nodes import lookup  # noqa: F401  isort: skip
from acoustic.nodes import element_products  # noqa: F401  isort: skip
from acoustic.nodes import rows  # noqa: F401  isort: skip
from acoustic.nodes import sums  # noqa: F401  isort: skip
from acoustic.nodes import norms  # noqa: F401  isort: skip
from acoustic.nodes import distances  # noqa: F401  isort: skip
from acoustic.nodes import groups  # noqa: F401  isort: skip
from acoustic.nodes import group_sums  # noqa: F401  isort: skip
from acoustic.nodes import column_norms  # noqa: F401  isort: skip
from acoustic.nodes import mixtures  # noqa: F401  isort: skip
from acoustic.nodes import dropout  # noqa: F401  isort: skip
from acoustic.nodes import criteria  # noqa: F401  isort: skip
from acoustic.nodes import class_criterion  # noqa: F401  isort: skip
from acoustic.nodes import crf  # noqa: F401  isort: skip
from acoustic.nodes import statistics  # noqa: F401  isort: skip
from acoustic.nodes import class_statistics  # noqa: F401  isort: skip
from acoustic.nodes import convolution  # noqa: F401  isort: skip
from acoustic.nodes import pooling  # noqa: F401  isort: skip
from acoustic.nodes import batch_normalization  # noqa: F401  isort: skip
from acoustic.nodes import time_convolution  # noqa: F401  isort: skip
from acoustic.nodes import delays  # noqa: F401  isort: skip
from acoustic.nodes import time_reverse  # noqa: F401  isort: skip
from acoustic.nodes import pair_network  # noqa: F401  isort: skip

# Names that descriptions may use and that are refused by name, and what each is for.
NOT_BUILT = (
    {"StrideTimes": "recurrent networks", "LSTM": "an LSTM as one node, of which LSTM(x, dim) of NDL makes several"}
    | dict.fromkeys(("SequenceWithSoftmax", "SEWithSM"), "sequence training")
    | dict.fromkeys(("NoiseContrastiveEstimation", "NCEBasedCrossEntropyWithSoftmax", "NCE"), "large vocabularies")
    | dict.fromkeys(("SparseImageInput", "SparseImage"), "sparse images")
    | dict.fromkeys(("ReconcileDynamicAxis", "LCPastValue"), "recurrent networks")
    | {"ROIPooling": "object detection"}
)
