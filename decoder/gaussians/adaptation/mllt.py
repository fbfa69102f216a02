"""MLLT: the linear transform with which diagonal covariances fit best, also called semi-tied covariances.

References
----------
Gales, Semi-tied covariance matrices for hidden Markov models, IEEE Transactions on Speech and Audio Processing 7, 1999.
"""

import numpy as np

ITERATIONS = 20


def estimate_mllt(statistics: np.ndarray, count: float, iterations: int = ITERATIONS) -> np.ndarray:
    """The transform of greatest auxiliary function, row by row, beginning with the unit matrix.

    The function of a transform A with rows a_i is, for each of n frames, `ln |det A| - sum_i a_i G_i a_i' / 2 n`.

    Parameters
    ----------
    statistics : (d, d, d) float64
        G_i, symmetric: sums of (x - mean)(x - mean)' / variance[i].
    count : float
        Number of frames.
    iterations : int
        How often every row is estimated.

    Returns
    -------
    (d, d) float64

    Raises
    ------
    numpy.linalg.LinAlgError
        For statistics of fewer frames than values.
    """
    dim = len(statistics)
    inverses = np.linalg.inv(statistics)
    matrix = np.eye(dim)
    for _ in range(iterations):
        for i in range(dim):
            cofactor = np.linalg.inv(matrix)[:, i]
            row = inverses[i] @ cofactor
            matrix[i] = row * np.sqrt(count / (cofactor @ row))
    return matrix
