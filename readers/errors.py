"""Faults of the user's input.

Each message stands alone on one line: where, what was found, what was expected and, when known, how to fix it.
Command lines print that line and exit with status 2; everything else that is raised is a bug of ours.
"""


class ArgonautError(ValueError):
    """Base of every fault that the user can mend."""


class FormatError(ArgonautError):
    """A file does not hold what its format asks for."""


class ConfigError(FormatError):
    """A configuration name or value is wrong; the message names file and line."""


class ShapeError(ArgonautError):
    """Matrices whose dimensions do not fit together."""


class GraphError(ArgonautError):
    """A decoding graph, dictionary or language model that cannot be used together."""


class ModelError(ArgonautError):
    """An acoustic model that is damaged or does not fit its inputs or its graph."""
