"""NDL, the network description language (CNTK book, section 4.1).

The network of an NDLNetworkBuilder block is built by::

    network = build_network(config.block("NDLNetworkBuilder"), precision, device, seed)

Scripts can also be evaluated in steps on an existing network::

    macros = read_macros(config)                    # the macros of ndlMacros and of the program
    scope = Scope(network, macros)                  # existing nodes are operands by their names
    scope.evaluate(Source.from_text("L2 = SBFF(L1.S, HDim, 512)", "edit.mel"))
    scope.find("l2.s")                              # the node, by its name in the script or in the network

The model editing language has one `Scope` per model, all on one `MacroTable`, because macros are global (book 4.2.1.5).
It passes in-line statements to ``evaluate(span, define_macros=False)`` when the next command needs them, all waiting
ones at once, so that they may refer to later ones; it passes a snippet to `evaluate` of a Scope on a new Network. A
failed `evaluate` leaves the network and the names unchanged; a successful one does not validate the network.

Open `parse.py` for the grammar, then `evaluate.py`.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
