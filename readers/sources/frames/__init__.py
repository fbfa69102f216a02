"""Readers of frames of utterances, HTKMLFReader, KaldiReader and Kaldi2Reader: context windows, randomisation, paging.

Open htk_mlf_reader.py first, then frame_reader.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "htk_mlf_reader": ["HTKMLFReader"],
        "kaldi_reader": ["KaldiReader"],
        "kaldi2_reader": ["Kaldi2Options", "Kaldi2Reader"],
        "frame_reader": ["FrameReader"],
        "htk_mlf_options": ["ChainOptions", "HmmOptions", "LatticeOptions", "ReaderOptions"],
        "stream_options": [
            "AlignmentOptions",
            "FeatureOptions",
            "HTKFeatureOptions",
            "Kaldi2FeatureOptions",
            "Kaldi2LabelOptions",
            "KaldiFeatureOptions",
            "LabelOptions",
        ],
        "streams": ["CorpusFeatures", "CorpusLabels"],
        "data_check": ["ReaderSummary", "check_reader"],
    },
)
