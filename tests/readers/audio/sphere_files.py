"""NIST SPHERE files, as the corpora of the LDC have them."""

from pathlib import Path

import numpy as np


def write_sphere(path: Path, samples: np.ndarray, sample_rate: int) -> None:
    """Write samples (N,) on the scale of 16-bit integers, rounded, as 16-bit little-endian PCM in one channel."""
    data = np.round(samples).astype("<i2")
    fields = [
        ("channel_count", 1),
        ("sample_count", len(data)),
        ("sample_rate", int(sample_rate)),
        ("sample_min", int(data.min()) if len(data) else 0),
        ("sample_max", int(data.max()) if len(data) else 0),
        ("sample_n_bytes", 2),
        ("sample_byte_format", "01"),
        ("sample_sig_bits", 16),
        ("sample_coding", "pcm"),
    ]
    lines = ["NIST_1A", f"{1024:7d}"]
    lines += [f"{n} -i {v}" if isinstance(v, int) else f"{n} -s{len(v)} {v}" for n, v in fields]
    header = ("\n".join(lines) + "\nend_head\n").encode().ljust(1024, b" ")
    path.write_bytes(header + data.tobytes())
