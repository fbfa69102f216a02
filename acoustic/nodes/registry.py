"""All node types of the project by name; every node module has a line in the list of imports.

Importing this module registers the types in the order of the book's section 2.4.
"""

from collections.abc import Iterator
from types import ModuleType

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
from acoustic.nodes import noise_contrastive  # noqa: F401  isort: skip
from acoustic.nodes import crf  # noqa: F401  isort: skip
from acoustic.nodes import sequence_criterion  # noqa: F401  isort: skip
from acoustic.nodes import lattice_free  # noqa: F401  isort: skip
from acoustic.nodes import ctc  # noqa: F401  isort: skip
from acoustic.nodes import statistics  # noqa: F401  isort: skip
from acoustic.nodes import class_statistics  # noqa: F401  isort: skip
from acoustic.nodes import convolution  # noqa: F401  isort: skip
from acoustic.nodes import pooling  # noqa: F401  isort: skip
from acoustic.nodes import batch_normalization  # noqa: F401  isort: skip
from acoustic.nodes import time_convolution  # noqa: F401  isort: skip
from acoustic.nodes import delays  # noqa: F401  isort: skip
from acoustic.nodes import time_reverse  # noqa: F401  isort: skip
from acoustic.nodes import time_splice  # noqa: F401  isort: skip
from acoustic.nodes import pair_network  # noqa: F401  isort: skip
from acoustic.nodes.base import REGISTRY, Node
from acoustic.nodes.option import name_hint
from readers.common.extensions import OPTION, extension_modules
from readers.errors import ModelError

# Names of CNTK's node types that are refused with a message, and what each type is for.
NOT_BUILT = (
    {"StrideTimes": "recurrent networks", "LSTM": "an LSTM as a single node; the macro LSTM(x, dim) is built"}
    | dict.fromkeys(("SparseImageInput", "SparseImage"), "sparse images")
    | dict.fromkeys(("ReconcileDynamicAxis", "LCPastValue"), "recurrent networks")
    | {"ROIPooling": "object detection"}
)


def node_class(name: str) -> type[Node]:
    """Return the node type of a name or alias, in any case.

    Parameters
    ----------
    name : str

    Returns
    -------
    type of Node

    Raises
    ------
    ModelError
        For an unknown name, with the nearest known names.
    """
    if name.lower() not in REGISTRY:
        extension_modules()
    if name.lower() in REGISTRY:
        return REGISTRY[name.lower()]
    for not_built, purpose in NOT_BUILT.items():
        if name.lower() == not_built.lower():
            raise ModelError(f"node type {not_built} is not built yet ({purpose}); expected another type")
    known_names = [label for kind in registered_nodes() for label in (kind.type_name, *kind.aliases)]
    hint = name_hint(name, known_names)
    raise ModelError(f"unknown node type {name!r}; {hint}; types of an extension need {OPTION} FILE.py")


def registered_nodes() -> Iterator[type[Node]]:
    """Yield every node type once, in the order of the imports above; those of other packages come last."""
    extension_modules()
    # A module may have been imported, and its types registered, before this one.
    modules = [module.__name__ for module in globals().values() if isinstance(module, ModuleType)]
    ranks = {name: rank for rank, name in enumerate(modules)}
    yield from sorted(dict.fromkeys(REGISTRY.values()), key=lambda kind: ranks.get(kind.__module__, len(ranks)))
