from acoustic.runtime.engine_options import EngineOptions as EngineOptions
from acoustic.runtime.engine_options import engines_with as engines_with
from acoustic.runtime.operations import Operation as Operation
from acoustic.runtime.thread_team import ThreadTeam as ThreadTeam
