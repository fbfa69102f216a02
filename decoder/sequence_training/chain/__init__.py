"""Numerator and denominator graphs of lattice-free MMI.

Open job.py, and denominator.py first: it composes the phone language model (phone_lm.py) with the outputs of the chain
topology (outputs.py).  alignment.py makes numerators from alignments.  readers.sources.chain has the files, and cuts
numerators into chunks.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "options": [
            "ChainDictionary",
            "ChainOptions",
            "ChainStates",
            "ChainTiming",
            "PhoneLmOptions",
            "SilenceOptions",
        ],
        "job": ["ChainResult", "make_chain"],
        "alignment": ["PhoneSegments", "aligned_numerator", "chain_labels", "phone_segments"],
        "denominator": ["build_denominator"],
        "outputs": ["ChainOutputs", "monophone_outputs", "read_tied_outputs"],
        "system": ["ChainSystem", "chain_models"],
        "transcripts": ["Lexicon", "transcript_numerator"],
        "phone_lm": ["PhoneLm", "estimate_phone_lm"],
    },
)
