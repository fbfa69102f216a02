"""Kaldi's decoding graphs and grammars as ours."""
