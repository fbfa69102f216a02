"""The configuration language (CNTK book, chapter 3), whose syntax NDL and MEL share, and HCopy's configurations.

Values stay text until they are asked for.  Open config.py first, then syntax.py and scope.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "config": ["Config", "load_config"],
        "check": ["CheckedConfig"],
        "hcopy": ["read_hcopy_config"],
        "syntax": ["Source", "Span"],
    },
)
