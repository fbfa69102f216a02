"""HTK's file formats: features, labels, script files, lattices, dictionaries, model definitions, decision trees.

Open parameter_file.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "parameter_file": ["HTKFile", "HTKHeader", "read_htk", "read_htk_header", "write_htk"],
        "mlf": ["Label", "MLF", "read_mlf", "write_mlf"],
        "scp": ["ScpEntry", "read_list", "read_scp", "write_scp"],
        "slf": ["Lattice", "read_slf", "write_slf"],
        "dictionary": ["Pronunciation", "read_dictionary", "write_dictionary"],
        "mmf": ["read_mmf"],
        "mmf_writer": ["write_mmf"],
        "hmm_list": ["read_hmm_list", "write_hmm_list"],
        "hmm_set": [
            "GaussianComponent",
            "Hmm",
            "HmmOptions",
            "HmmSet",
            "HmmState",
            "MacroVector",
            "StreamMixture",
            "TransitionMatrix",
        ],
        "trees": ["DecisionTree", "DecisionTrees", "Question", "read_trees", "write_trees"],
        "edit_script": ["Clustering", "EditScript", "read_edit_script", "write_edit_script"],
        "frame_labels": ["read_state_list"],
        "units": ["TICKS_PER_SECOND"],
    },
)
