"""What compiled code runs on: BLAS, threads, recorded calls."""
