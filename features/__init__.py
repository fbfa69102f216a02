"""Waveforms to feature matrices in HTK's arithmetic; knows nothing of networks or search."""
