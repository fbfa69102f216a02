# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.lattices.combination import combine as combine
from decoder.lattices.consensus import Consensus as Consensus
from decoder.lattices.consensus import Slot as Slot
from decoder.lattices.links import ScoredLinks as ScoredLinks
from decoder.lattices.links import weigh as weigh
from decoder.lattices.nbest_rescoring import RescoringOptions as RescoringOptions
from decoder.lattices.nbest_rescoring import rescore as rescore
from decoder.lattices.posteriors import best_path as best_path
from decoder.lattices.posteriors import confident_words as confident_words
from decoder.lattices.posteriors import oracle as oracle
from decoder.lattices.rescoring import rescore_lattice as rescore_lattice
