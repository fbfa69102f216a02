"""NDL, the network description language (CNTK book, section 4.1).

    network = build_network(config.block("NDLNetworkBuilder"), precision, device, seed)

builds the network of an NDLNetworkBuilder block.  Scripts are evaluated above any network, a few statements at a time:

    macros = read_macros(config)                    # those that ndlMacros names, above the ones of the program
    scope = Scope(network, macros)                  # existing nodes are operands by their names
    scope.evaluate(Source.from_text("L2 = SBFF(L1.S, HDim, 512)", "edit.mel"))
    scope.find("l2.s")                              # the node, by the name of the script or of the network

For the model editing language: one `Scope` per model, all on one `MacroTable`, for macros are global (book 4.2.1.5);
statements in line go to `evaluate(span, define_macros=False)` when the next command needs them, all that wait at once,
so that they may refer forward to each other; a snippet goes to `evaluate` of a Scope on a new Network.  Whether a
statement is NDL can be told by `parse_ndl` of its record.  A failed `evaluate` leaves network and names as they were;
a successful one neither validates the network nor asks for special nodes.
"""

from acoustic.descriptions.ndl.builder import NdlOptions, build_ndl_network, build_network, ndl_options
from acoustic.descriptions.ndl.evaluate import Scope
from acoustic.descriptions.ndl.files import read_macros
from acoustic.descriptions.ndl.macros import MacroTable, shipped_macros
from acoustic.descriptions.ndl.parse import parse_ndl, split_sections

__all__ = [
    "MacroTable",
    "NdlOptions",
    "Scope",
    "build_ndl_network",
    "build_network",
    "ndl_options",
    "parse_ndl",
    "read_macros",
    "shipped_macros",
    "split_sections",
]
