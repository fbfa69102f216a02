"""The configuration language (CNTK book, chapter 3), whose syntax NDL and MEL share, and HCopy configurations.

Values are stored as text and converted when they are read.  Open config.py first, then syntax.py and scope.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "config": ["Config", "UnknownName", "load_config"],
        "check": ["CheckedConfig"],
        "hcopy": ["HCopyConfig", "read_hcopy_config"],
        "scope": ["ConfigEntry", "ConfigScope"],
        "syntax": ["Source", "Span"],
        "values": ["Schedule"],
    },
)
