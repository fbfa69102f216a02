"""Kaldi's archives and script files of matrices and alignments, and lattices in Kaldi's text format.

Open ark.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "alignments": ["read_alignments"],
        "ark": ["ArkEntry", "read_ark_scp", "read_matrix", "scan_ark", "write_matrix"],
        "specifiers": ["Specifier", "parse_specifier"],
        "lattice": ["read_word_table", "write_kaldi_lattices", "write_word_table"],
    },
)
