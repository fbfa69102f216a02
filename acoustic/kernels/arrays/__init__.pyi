from acoustic.kernels.arrays.elementwise import ArrayKernels as ArrayKernels
from acoustic.kernels.arrays.sequence import SequenceMarks as SequenceMarks
from acoustic.kernels.arrays.word import ClassLabels as ClassLabels
from acoustic.kernels.arrays.word import NoiseLabels as NoiseLabels
