"""The jobs on lattices: from the lattices of an index to words, networks, other lattices and n-best lists.

Open index.py first, which reads the lattices; options.py declares the options.  words.py, writing.py, conversion.py and
nbest.py have the jobs.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "options": [
            "CombineOptions",
            "ConsensusOptions",
            "DeterminiseOptions",
            "KaldiOptions",
            "LatticeFiles",
            "NbestOptions",
            "OpenFstOptions",
            "OracleOptions",
            "RescoreListsOptions",
            "RescoreOptions",
            "WordsOptions",
            "WrittenLattices",
        ],
        "index": ["LatticeResult"],
        "words": ["ConsensusResult", "OracleResult", "WordsResult", "find_consensus", "find_oracle", "find_words"],
        "writing": ["WritingResult", "combine_lattices", "determinise_lattices", "rescore_lattices"],
        "conversion": ["AcceptorResult", "KaldiResult", "write_kaldi", "write_openfst"],
        "nbest": ["NbestResult", "RescoredLists", "extract_nbest", "rescore_nbest"],
    },
)
