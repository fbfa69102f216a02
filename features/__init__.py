"""Waveforms to feature matrices in HTK's arithmetic: FBANK, MELSPEC, MFCC, PLP, and the HCopy job.

This room knows nothing of networks or search.  Open extraction.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "config": ["FeatureConfig"],
        "extraction": ["extract", "frame_period"],
        "job": ["hcopy"],
        "streaming": ["FeatureStream", "RunningMean"],
    },
)
