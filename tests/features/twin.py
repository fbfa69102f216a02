"""A slow, literal twin of the feature arithmetic: float64, one frame, one bin, one coefficient at a time.

Written from the HTK Book's formulas alone; it shares no code with features/.  Options are a plain dict under HTK's
names, all of them given.
"""

import math

import numpy as np

DEFAULTS = {
    "TARGETKIND": "MFCC",
    "TARGETRATE": 100000,
    "WINDOWSIZE": 256000,
    "USEHAMMING": True,
    "DOUBLEFFT": False,
    "PREEMCOEF": 0.97,
    "NUMCHANS": 20,
    "NUMCEPS": 12,
    "CEPLIFTER": 22,
    "LOFREQ": -1.0,
    "HIFREQ": -1.0,
    "USEPOWER": False,
    "ZMEANSOURCE": False,
    "RAWENERGY": True,
    "ENORMALISE": True,
    "ESCALE": 0.1,
    "SILFLOOR": 50.0,
    "DELTAWINDOW": 2,
    "ACCWINDOW": 2,
    "THIRDWINDOW": 2,
    "SIMPLEDIFFS": False,
    "LPCORDER": 12,
    "COMPRESSFACT": 0.33,
    "WARPFREQ": 1.0,
    "WARPLCUTOFF": 0.0,
    "WARPUCUTOFF": 0.0,
}


def features(samples, rate, **options):
    """(dim, T) float64."""
    o = DEFAULTS | options
    base, *qualifiers = o["TARGETKIND"].split("_")
    length, hop = int(o["WINDOWSIZE"] * rate / 1e7), int(o["TARGETRATE"] * rate / 1e7)
    rows, energies = [], []
    for t in range((len(samples) - length) // hop + 1):
        frame = [float(s) for s in samples[t * hop : t * hop + length]]
        bank, energy = filterbank(frame, rate, o)
        energies.append(-1e10 if energy == 0 else math.log(energy))
        rows.append(coefficients(bank, rate, base, "0" in qualifiers, o))
    if "E" in qualifiers:
        if o["ENORMALISE"]:
            top = max(energies)
            lowest = top - o["SILFLOOR"] * math.log(10) / 10
            energies = [1.0 - (top - max(e, lowest)) * o["ESCALE"] for e in energies]
        rows = [[*row, e] for row, e in zip(rows, energies)]
    static = [list(column) for column in zip(*rows)]  # one list per coefficient
    blocks = [static]
    for qualifier, window in (("D", "DELTAWINDOW"), ("A", "ACCWINDOW"), ("T", "THIRDWINDOW")):
        if qualifier in qualifiers:
            blocks.append([slope(track, o[window], o["SIMPLEDIFFS"]) for track in blocks[-1]])
    if "Z" in qualifiers:
        for i in range(len(static) - ("E" in qualifiers)):
            mean = sum(static[i]) / len(static[i])
            static[i] = [value - mean for value in static[i]]
    if "N" in qualifiers:
        blocks[0] = static[:-1]
    return np.array([track for block in blocks for track in block])


def filterbank(frame, rate, o):
    """(filter outputs, energy) of one frame."""
    length = len(frame)
    if o["ZMEANSOURCE"]:
        mean = sum(frame) / length
        frame = [s - mean for s in frame]
    raw = sum(s * s for s in frame)
    k = o["PREEMCOEF"]
    frame = [(1 - k) * frame[0]] + [frame[n] - k * frame[n - 1] for n in range(1, length)]
    if o["USEHAMMING"]:
        frame = [s * (0.54 - 0.46 * math.cos(2 * math.pi * n / (length - 1))) for n, s in enumerate(frame)]
    energy = raw if o["RAWENERGY"] else sum(s * s for s in frame)
    size = 1
    while size < length:
        size *= 2
    if o["DOUBLEFFT"]:
        size *= 2
    n = np.arange(length)
    bank = [0.0] * (o["NUMCHANS"] + 1)  # entry 0 unused: filters count from 1
    centre, first, last = layout(rate, size, o)
    channel = 1
    for b in range(first, last + 1):  # bins count from 1, as in HTK
        angle = 2 * np.pi * (b - 1) * n / size
        value = float(np.dot(frame, np.cos(angle))) ** 2 + float(np.dot(frame, np.sin(angle))) ** 2
        if not o["USEPOWER"]:
            value = math.sqrt(value)
        m = to_mel((b - 1) * rate / size)
        while centre[channel] < m and channel <= o["NUMCHANS"]:
            channel += 1
        below = channel - 1
        weight = (centre[channel] - m) / (centre[channel] - centre[below])
        if below > 0:
            bank[below] += weight * value
        if below < o["NUMCHANS"]:
            bank[below + 1] += (1 - weight) * value
    return bank[1:], energy


def to_mel(f):
    return 1127.0 * math.log(1.0 + f / 700.0)


def to_hertz(m):
    return 700.0 * (math.exp(m / 1127.0) - 1.0)


def layout(rate, size, o):
    """(mel centres with both limits, first bin, last bin); bins count from 1."""
    first, last, low, high = 2, size // 2, 0.0, rate / 2
    if o["LOFREQ"] >= 0:
        low = o["LOFREQ"]
        first = max(2, int(low * size / rate + 2.5))
    if o["HIFREQ"] >= 0:
        high = o["HIFREQ"]
        last = min(size // 2, int(high * size / rate + 0.5))
    step = (to_mel(high) - to_mel(low)) / (o["NUMCHANS"] + 1)
    centre = [to_mel(low) + c * step for c in range(o["NUMCHANS"] + 2)]
    if o["WARPFREQ"] != 1.0:
        centre[1:] = [to_mel(warp(to_hertz(m), low, high, o)) for m in centre[1:]]
    return centre, first, last


def warp(f, low, high, o):
    scale = 1.0 / o["WARPFREQ"]
    upper, lower = 2 * o["WARPUCUTOFF"] / (1 + scale), 2 * o["WARPLCUTOFF"] / (1 + scale)
    if f > upper:
        return (high - upper * scale) / (high - upper) * (f - upper) + scale * upper
    if f < lower:
        return (lower * scale - low) / (lower - low) * (f - low) + low
    return scale * f


def coefficients(bank, rate, base, with_c0, o):
    if base == "MELSPEC":
        return bank
    bank = [max(x, 1.0) for x in bank]
    if base == "PLP":
        return plp(bank, rate, with_c0, o)
    logs = [math.log(x) for x in bank]
    if base == "FBANK":
        return logs
    count = len(logs)
    row = []
    for j in range(1, o["NUMCEPS"] + 1):
        c = sum(m * math.cos(math.pi * j / count * (i + 0.5)) for i, m in enumerate(logs))
        row.append(lift(j, o["CEPLIFTER"]) * math.sqrt(2 / count) * c)
    return row + [math.sqrt(2 / count) * sum(logs)] * with_c0


def lift(n, length):
    return 1.0 + length / 2 * math.sin(math.pi * n / length) if length else 1.0


def plp(bank, rate, with_c0, o):
    size = 1
    while size < int(o["WINDOWSIZE"] * rate / 1e7):
        size *= 2
    centre, _, _ = layout(rate, size, o)
    spectrum = []
    for channel, x in enumerate(bank, 1):
        square = to_hertz(centre[channel]) ** 2
        loudness = (square / (square + 1.6e5)) ** 2 * (square + 1.44e6) / (square + 9.61e6)
        spectrum.append((loudness * x) ** o["COMPRESSFACT"])
    spectrum = [spectrum[0], *spectrum, spectrum[-1]]
    # An even spectrum over the whole circle; R is its inverse DFT.
    circle = spectrum + spectrum[-2:0:-1]
    order = o["LPCORDER"]
    r = [
        sum(x * math.cos(2 * math.pi * i * j / len(circle)) for j, x in enumerate(circle)) / len(circle)
        for i in range(order + 1)
    ]
    # The normal equations solved directly, not by Durbin's recursion.
    matrix = np.array([[r[abs(i - j)] for j in range(order)] for i in range(order)])
    a = np.linalg.solve(matrix, -np.array(r[1:]))
    error = r[0] + float(np.dot(a, r[1:]))
    # Cepstrum of 1 / A(z) as the series of -log A(z).
    c = []
    for n in range(1, o["NUMCEPS"] + 1):
        c.append(-a[n - 1] - sum((n - j) * a[j - 1] * c[n - j - 1] for j in range(1, n)) / n)
    row = [lift(n, o["CEPLIFTER"]) * value for n, value in enumerate(c, 1)]
    return row + [math.log(error)] * with_c0


def slope(track, window, simple):
    def at(t):
        return track[min(max(t, 0), len(track) - 1)]

    if simple:
        return [(at(t + window) - at(t - window)) / (2 * window) for t in range(len(track))]
    norm = 2 * sum(q * q for q in range(1, window + 1))
    return [sum(q * (at(t + q) - at(t - q)) for q in range(1, window + 1)) / norm for t in range(len(track))]
