"""A recogniser as one thing: model, graph, language model, features and options, from a bundle or from parts.

Open recognizer.py first: the class Recognizer.  bundle.py opens and checks bundles, description.py is their
bundle.json, packing.py writes them, assembly.py opens their parts, transcript.py holds what was recognised,
recording.py opens audio of any form, front_end.py turns it into scores, calibration.py maps posteriors to confidences,
forced_aligner.py finds the times of known words.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
