"""What can be done with lattices: posteriors, confidences, consensus, n-best lists, rescoring, OpenFst.

Open links.py first: every walk through a lattice begins there.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "posteriors": ["best_path", "confident_words", "oracle"],
        "rescoring": ["rescore_lattice"],
        "nbest_rescoring": ["RescoringOptions", "rescore"],
        "links": ["weigh"],
    },
)
