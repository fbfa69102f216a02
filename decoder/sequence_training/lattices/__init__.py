"""Denominator lattices and numerator alignments of training utterances, for MMI, MPE and sMBR."""
