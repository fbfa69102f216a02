from acoustic.kernels.cuda.elementwise import CudaKernels as CudaKernels
