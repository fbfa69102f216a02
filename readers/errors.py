"""Exceptions for faults in the user's input.

Each message is one self-contained line: place, what was found, what was expected and, if known, how to fix it.
Commands print this line and exit with status 2.  Any other exception is a bug.
"""

from collections.abc import Sequence

MAX_MESSAGE = 4000  # characters; a message may quote a line of the input, which may be of any length


class ArgonautError(ValueError):
    """Base class of all faults that the user can correct."""

    def __str__(self) -> str:
        text = super().__str__()
        return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE // 2]} ... {text[-MAX_MESSAGE // 2 :]}"

    def reworded(self, text: str) -> "ArgonautError":
        """Return an error with another text: of this class or, if it is made of more than a text, of its base."""
        kinds = [
            kind for kind in type(self).__mro__ if issubclass(kind, ArgonautError) and "__init__" not in vars(kind)
        ]
        return kinds[0](text)


class FormatError(ArgonautError):
    """The content of a file violates its format."""


class ManyFaults(FormatError):
    """Several faults of one file; `faults` are their messages, and the text is the first with the number of others."""

    def __init__(self, message: str, faults: Sequence[str] = ()):
        more = f"; and {len(faults) - 1} more" if len(faults) > 1 else ""
        super().__init__(message + more)
        self.faults = tuple(faults) or (message,)


class ConfigError(FormatError):
    """A configuration name or value is wrong; the message begins with file and line."""


class ShapeError(ArgonautError):
    """The dimensions of matrices do not match."""


class GraphError(ArgonautError):
    """A decoding graph, dictionary or language model is inconsistent or does not match another one."""


class ModelError(ArgonautError):
    """An acoustic model is damaged, or does not match its inputs or its graph."""


class KernelCacheWarning(RuntimeWarning):
    """A compiled kernel cannot be stored, for instance because the disk is full."""


class AudioWarning(UserWarning):
    """Audio is irregular, such as that of a file that ends before its header says, or little; what there is is used."""


class PictureWarning(UserWarning):
    """A picture lacks a part, such as characters that the font does not have."""


class SequenceWarning(UserWarning):
    """A sequence of a minibatch does not count in a criterion, or few of its frames do."""
