"""I-vectors: vectors of speakers that adapt a network to them, from a mixture of Gaussians and EM.

Open model.py first: IvectorModel estimates i-vectors.  training.py makes models: mixtures.py is the background model,
extractor.py the total-variability matrix, shards.py which utterances share an i-vector, and the work on a part of the
data; background.py chooses Gaussians, frames.py is the mean subtraction before it, streaming.py
estimates online, adapted.py joins features and i-vectors, extraction.py writes files of them, kernels.py is compiled.
job.py trains and extracts, with options.py; comparison/ tells speakers apart.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
