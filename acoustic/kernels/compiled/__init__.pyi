from acoustic.kernels.compiled.elementwise import CompiledKernels as CompiledKernels
