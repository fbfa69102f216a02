"""Graphs of other kinds of models: networks with CTC outputs, and Kaldi's own decoding graphs and grammars."""
