"""A catalogue of measurements side by side with other programs; `make bench` runs them all."""

# The environment in which matrix libraries take one thread, if it is there before they are loaded.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
