"""Cepstra from filterbank outputs: the cosine transform of MFCC and the all-pole model of PLP.

Source: HTK Book 3.4, sections 5.3 (linear prediction), 5.4 to 5.6 (filterbank, cepstra, lifter) and 5.7 (PLP).
"""

import numpy as np

from features.config import FeatureConfig
from features.filterbank import filter_centres, hertz
from readers.common.arrays import Float64Array


def lifter_weights(config: FeatureConfig) -> Float64Array:
    """Return the factors (num_cepstra,) float64 of c1..cN: 1 + L/2 sin(pi n / L); all 1 if CEPLIFTER is 0."""
    if config.lifter == 0:
        return np.ones(config.num_cepstra)
    n = np.arange(1, config.num_cepstra + 1)
    return 1.0 + config.lifter / 2 * np.sin(np.pi * n / config.lifter)


def mfcc_matrix(config: FeatureConfig) -> Float64Array:
    """Return the matrix (num_cepstra (+ 1 with _0), num_channels) float64 from log filterbank to liftered c1..cN, then
    c0.

    c_j = sqrt(2/n) sum_k m_k cos(pi j (k - 1/2) / n), HTK Book eq. 5.14; c0 has j = 0 and is not liftered.  In Kaldi,
    c0 has the factor sqrt(1/n).
    """
    orders = np.arange(1, config.num_cepstra + 1)
    factors = lifter_weights(config)
    if config.has("0"):
        orders = np.append(orders, 0)
        factors = np.append(factors, np.sqrt(0.5) if config.kaldi else 1.0)
    middles = np.arange(config.num_channels) + 0.5
    cosines = np.cos(np.pi / config.num_channels * np.outer(orders, middles))
    return np.sqrt(2.0 / config.num_channels) * factors[:, None] * cosines


def equal_loudness(config: FeatureConfig, sample_rate: float) -> Float64Array:
    """Return the equal-loudness weight (num_channels,) float64 of each filter at its centre frequency."""
    square = hertz(filter_centres(config, sample_rate)[1:-1]) ** 2
    return (square / (square + 1.6e5)) ** 2 * ((square + 1.44e6) / (square + 9.61e6))


def autocorrelation_matrix(config: FeatureConfig) -> Float64Array:
    """Return the matrix (lpc_order + 1, num_channels) float64 from the compressed auditory spectrum to R_0..R_p.

    The first and last value of the spectrum are duplicated, for 0 Hz and the Nyquist frequency, so that it has
    M = num_channels + 2 points, and R_i = [a_0 + 2 sum_j a_j cos(pi i j / (M-1)) + a_{M-1} cos(pi i)] / (2 (M-1)).
    """
    last = config.num_channels + 1
    lags = np.arange(config.lpc_order + 1)
    points = np.arange(last + 1)
    full = np.cos(np.pi / last * np.outer(lags, points))
    full[:, 1:-1] *= 2.0
    matrix = full[:, 1:-1].copy()
    matrix[:, 0] += full[:, 0]
    matrix[:, -1] += full[:, -1]
    return matrix / (2.0 * last)


def prediction(autocorrelation: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Solve for the linear prediction of all frames with Durbin's recursion.

    autocorrelation: (p + 1, T) float64, R_0 > 0.  Returns (a (p, T), error (T,)): a_1..a_p of A(z) = 1 + sum_j a_j z^-j
    and the energy of the prediction error.
    """
    order = autocorrelation.shape[0] - 1
    a = np.zeros_like(autocorrelation[1:])
    error = autocorrelation[0].copy()
    for i in range(order):
        reflection = -(autocorrelation[i + 1] + (a[:i] * autocorrelation[i:0:-1]).sum(axis=0)) / error
        a[:i] += reflection * a[:i][::-1].copy()
        a[i] = reflection
        error *= 1.0 - reflection**2
    return a, error


def prediction_cepstra(a: Float64Array, num_cepstra: int) -> Float64Array:
    """Return the cepstra c1..cN (num_cepstra, T) of 1 / A(z), N <= p.

    c_n = -a_n - 1/n sum_{j<n} (n - j) a_j c_{n-j}.
    """
    cepstra = np.empty((num_cepstra, a.shape[1]))
    for n in range(1, num_cepstra + 1):
        j = np.arange(1, n)
        tail = ((n - j)[:, None] * a[: n - 1] * cepstra[: n - 1][::-1]).sum(axis=0)
        cepstra[n - 1] = -a[n - 1] - tail / n
    return cepstra
