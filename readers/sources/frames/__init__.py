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
        "htk_mlf_options": ["ReaderOptions"],
        "stream_options": ["FeatureOptions", "HTKFeatureOptions", "LabelOptions"],
        "streams": ["CorpusFeatures", "CorpusLabels"],
        "data_check": ["ReaderSummary", "check_reader"],
    },
)
