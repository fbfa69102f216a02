"""Writes the files of a Sphinx model, independently of the readers: struct and text only."""

import struct

import numpy as np


def word_sum(words):
    """Sphinx's checksum: rotate left by 20 bits, add."""
    total = 0
    for word in words:
        total = (((total << 20) & 0xFFFFFFFF | total >> 12) + word) % 2**32
    return total


def s3(body, order="<", check=True):
    """An s3 file of a body of 32-bit words in that byte order."""
    head = b"s3\nversion 1.0\n" + (b"chksum0 yes\n" if check else b"") + b"   endhdr\n"
    tail = b""
    if check:
        tail = struct.pack(f"{order}I", word_sum(struct.unpack(f"{order}{len(body) // 4}I", body)))
    return head + struct.pack(f"{order}I", 0x11223344) + body + tail


def numbers(kind, values, order="<"):
    values = list(values)
    return struct.pack(f"{order}{len(values)}{kind}", *values)


def gaussians(streams, order="<", check=True):
    """streams: arrays (codebooks, densities, width)."""
    codebooks, densities, _ = streams[0].shape
    widths = [stream.shape[2] for stream in streams]
    body = numbers("i", [codebooks, len(streams), densities, *widths, codebooks * densities * sum(widths)], order)
    for codebook in range(codebooks):
        for stream in streams:
            body += numbers("f", stream[codebook].ravel().tolist(), order)
    return s3(body, order, check)


def cube(values, order="<", check=True):
    """Mixture weights or transitions, of three dimensions."""
    values = np.asarray(values)
    return s3(
        numbers("i", [*values.shape, values.size], order) + numbers("f", values.ravel().tolist(), order), order, check
    )


def sendump(codes, order="<", texts=()):
    """codes: (streams, densities, senones) uint8."""
    streams, densities, senones = codes.shape
    content = b""
    for text in ("a title", *texts, f"feature_count {streams}"):
        raw = text.encode() + b"\0"
        content += numbers("i", [len(raw)], order) + raw
    return content + numbers("i", [0, densities, senones], order) + codes.tobytes()


def text_definition(phones, fillers, triphones, matrices, senones):
    """triphones: (phone, left, right, position letter) by names."""
    lines = ["# a comment", "0.3", f"{len(phones)} n_base", f"{len(triphones)} n_tri", "0 n_state_map"]
    count = max(map(max, senones)) + 1
    num_ci = len(phones) * len(senones[0])
    lines += [f"{count} n_tied_state", f"{num_ci} n_tied_ci_state", f"{max(matrices) + 1} n_tied_tmat"]
    rows = [(phone, "-", "-", "-") for phone in phones] + list(triphones)
    for row, matrix, states in zip(rows, matrices, senones):
        kind = "filler" if row[0] in fillers else "n/a"
        lines.append(" ".join([*row, kind, str(matrix), *map(str, states), "N"]))
    return "\n".join(lines) + "\n"


def binary_definition(phones, fillers, triphones, matrices, senones, order="<"):
    description = b"BEGIN FILE FORMAT DESCRIPTION\n\0\0"
    sequences = sorted(set(map(tuple, senones)))
    names = b"".join(phone.encode() + b"\0" for phone in phones)
    names += bytes(-len(names) % 4)
    content = (b"BMDF" if order == "<" else b"FDMB") + numbers("i", [1, len(description)], order) + description
    sizes = [len(phones), len(senones), len(senones[0]), len(phones) * len(senones[0]), max(map(max, senones)) + 1]
    content += numbers("i", [*sizes, max(matrices) + 1, len(sequences), 3, 1, 0], order) + names + bytes(8)
    for row, (matrix, states) in enumerate(zip(matrices, senones)):
        content += numbers("i", [sequences.index(tuple(states)), matrix], order)
        if row < len(phones):
            content += bytes([phones[row] in fillers, 0, 0, 0])
        else:
            phone, left, right, position = triphones[row - len(phones)]
            content += bytes(["ibes".index(position), *(phones.index(name) for name in (phone, left, right))])
    content += numbers("i", [len(sequences) * len(senones[0])], order)
    return content + numbers("h", [senone for states in sequences for senone in states], order)
