"""Numerator and denominator graphs of lattice-free MMI.

Open job.py, and denominator.py first: it composes the phone language model (phone_lm.py) with the outputs of the chain
topology (outputs.py).  alignment.py makes numerators from alignments.  readers.sources.chain has the files, and cuts
numerators into chunks.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
