# From the table in __init__.py, by `python -m tests.structure.test_faces`
from acoustic.kernels.backend import Backend as Backend
from acoustic.kernels.image_geometry import Image as Image
from acoustic.kernels.image_geometry import ImageWindows as ImageWindows
from acoustic.kernels.shape import PerFrame as PerFrame
from acoustic.kernels.shape import Shape as Shape
