from acoustic.kernels.backend import Backend as Backend
from acoustic.kernels.image_geometry import Image as Image
from acoustic.kernels.image_geometry import ImageWindows as ImageWindows
from acoustic.kernels.shape import PerFrame as PerFrame
from acoustic.kernels.shape import Shape as Shape
