# From the table in __init__.py, by `python -m tests.structure.test_faces`
from acoustic.engine.engine import Engine as Engine
from acoustic.engine.execution.gradient_sink import GradientSink as GradientSink
from acoustic.engine.execution.gradient_sink import LayerUpdate as LayerUpdate
from acoustic.engine.forward_mode import Dual as Dual
from acoustic.engine.forward_mode import jacobian_vector_product as jacobian_vector_product
from acoustic.engine.gradient_check import GradientComparison as GradientComparison
from acoustic.engine.gradient_check import check_gradients as check_gradients
from acoustic.engine.gradient_check import compare_with_forward_mode as compare_with_forward_mode
from acoustic.engine.inputs import check_inputs as check_inputs
from acoustic.engine.pair_engine import PairEngine as PairEngine
from acoustic.engine.pair_engine import make_engine as make_engine
