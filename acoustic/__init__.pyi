from acoustic.engine.engine import Engine as Engine
from acoustic.network.model_file import load_model as load_model
from acoustic.network.model_file import save_model as save_model
from acoustic.network.network import Network as Network
from acoustic.scoring.scorer import AcousticScorer as AcousticScorer
