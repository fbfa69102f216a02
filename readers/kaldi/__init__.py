"""Kaldi file formats."""
