"""Tools that all readers share: atomic writing, text with line numbers, collected faults, run reports, processes.

Open files.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "environment": ["using_cores"],
        "file_part": ["FilePart"],
        "files": ["atomic_write", "held", "require_writable"],
        "report": ["RunReport"],
        "text": ["read_lines", "read_text"],
        "faults": ["Findings"],
    },
)
