"""Waveforms to feature matrices in HTK's arithmetic: FBANK, MELSPEC, MFCC, PLP, and the HCopy job."""

from features.config import FeatureConfig
from features.extraction import extract, frame_period
from features.job import hcopy

__all__ = ["FeatureConfig", "extract", "frame_period", "hcopy"]
