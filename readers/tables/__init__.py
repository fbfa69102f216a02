"""Small tables: HMM states and transitions of a decoding graph, priors, TIMIT label files, and models of dbn.exe.

Open hmm_tables.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "dbn": ["DbnLayer", "DbnModel", "read_dbn", "write_dbn"],
        "hmm_tables": [
            "read_cntkmap",
            "read_lookahead",
            "read_silence",
            "read_state_map",
            "read_tied_states",
            "read_topology",
            "read_transitions",
            "write_state_map",
            "write_transitions",
        ],
        "priors": ["read_priors"],
        "state_names": ["state_map_of"],
        "text_matrix": ["read_text_matrix"],
        "timit": ["Segment", "read_phone_map", "read_segments"],
    },
)
