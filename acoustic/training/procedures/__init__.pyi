from acoustic.training.procedures.adaptation import ReferenceModel as ReferenceModel
from acoustic.training.procedures.combination import CombinationResult as CombinationResult
from acoustic.training.procedures.combination import combine as combine
from acoustic.training.procedures.layerwise import grow as grow
from acoustic.training.procedures.mixing_up import mix_up as mix_up
