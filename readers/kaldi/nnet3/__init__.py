"""Kaldi's nnet3 networks: nodes of configuration lines, descriptors of their inputs, and components with parameters.

Open nnet.py first.
"""
