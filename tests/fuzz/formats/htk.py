"""Files of HTK: parameter files, lists, labels, lattices."""

import contextlib
import random
import struct

import numpy as np

from decoder.lattices.consensus import consensus
from decoder.lattices.determinise import determinise
from decoder.lattices.links import weigh
from decoder.lattices.nbest import nbest
from decoder.lattices.openfst import lattice_acceptor
from decoder.lattices.posteriors import best_path, confident_words, link_posteriors, oracle
from decoder.lattices.rescoring import rescore_lattice
from decoder.lm.language_model import LanguageModel
from decoder.scoring.words import read_words
from readers.errors import ArgonautError
from readers.htk.frame_labels import frame_labels, read_state_list
from readers.htk.mlf import read_mlf, write_mlf
from readers.htk.parameter_file import parse_kind, read_htk, read_htk_header, write_htk
from readers.htk.scp import read_list, read_pairs, read_scp, write_scp
from readers.htk.slf import read_slf, write_slf
from readers.htk.storage.coding import checksum
from readers.kaldi.lattice import word_table, write_kaldi_lattices
from tests.decoder.graphs import make_arpa
from tests.fuzz.format import Format, text, written

KINDS = ("FBANK", "MFCC_E_D", "USER", "MFCC_0_D_A_Z", "PLP_E_N_D", "LPC", "ANON", "MFCC_T_D_A")
PACKED_KINDS = ("MFCC_C", "FBANK_C_K", "USER_K", "PLP_C_K_E")


def features(*kinds: str):
    def write(path, rng):
        values = np.random.default_rng(rng.randrange(100)).normal(
            size=(rng.choice((1, 4, 6, 12)), rng.choice((1, 2, 7)))
        )
        write_htk(path, values, parse_kind(rng.choice(kinds)), 100000, rng.choice("<>"))

    return written(write)


def read_features(path) -> None:
    header = read_htk_header(path)
    read_htk(path, verify=True)
    read_htk(path, 0, 0)
    read_htk(path, max(0, header.num_frames - 1))


def header_field(content: bytes, rng: random.Random) -> bytes:
    """Change a field of the header, in either byte order."""
    place, kind = rng.choice(((0, "i"), (4, "i"), (8, "h"), (10, "H")))
    size = struct.calcsize("<" + kind)
    choices = (
        0,
        1,
        2,
        4,
        12,
        -1,
        2**15 - 1,
        2**31 - 1,
        -(2**31),
        0o100,
        0o2000,
        0o10000,
        0o12000,
        9,
        10,
        11,
        len(content),
    )
    value = rng.choice(choices) & (1 << 8 * size) - 1
    return content[:place] + value.to_bytes(size, rng.choice(("big", "little"))) + content[place + size :]


def with_checksum(content: bytes, rng: random.Random) -> bytes:
    """Change the frames and correct the checksum behind them."""
    changed = bytearray(content)
    if len(changed) < 22:
        return content
    for _ in range(rng.choice((1, 3))):
        changed[rng.randrange(12, len(changed))] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    if rng.random() < 0.3:  # scales of compressed values
        struct.pack_into(
            rng.choice("<>") + "f",
            changed,
            12 + 4 * rng.randrange(2),
            rng.choice((0.0, float("nan"), float("inf"), 1e38)),
        )
    order = ">" if changed[0] == 0 else "<"
    changed[-2:] = struct.pack(order + "H", checksum(bytes(changed[12:-2]), order))
    return bytes(changed)


MLFS = (
    '#!MLF!#\n"*/u.lab"\n0 100000 a -1.5 x 2 W\n100000 300000 "b"\n///\n0 1 c\n.\n"v?.lab"\n.\n',
    '#!MLF!#\n"*/a.rec"\n0 200000 sil -10.5\n200000 500000 a_s2 -3 a\n500000 600000 a_s3 -4\n.\n"c.lab"\nA\nB\n.\n',
    '#!MLF!#\n"*/a.lab"\nTHE\nCAT\n.\n"*/b.lab"\n0 300000 a_s2\n300000 900000 b_s2\n.\n',
    '#!MLF!#\n"*/a.lab"\n0 100000 [0] 0\n100000 300000 [1] 1 "w \'x\\""\n.\n',
)


def labels(path) -> None:
    mlf = read_mlf(path)
    for key, found in mlf.items():
        for ids in ({"a": 0, "b": 1, "a_s2": 0, "b_s2": 1}, None):
            try:
                frame_labels(found, ids, f"{path}: {key}")
            except ArgonautError:
                continue
    mlf.lookup("a")
    mlf.lookup("d/v1")
    write_mlf(path.with_suffix(".out"), list(mlf.items()))
    read_mlf(path.with_suffix(".out"))
    for level in (0, 1):
        with contextlib.suppress(ArgonautError):
            read_words(str(path), level)


SCPS = (
    "u.x=/d/a.mfc[0,99]\n.../b.mfc\nv=c.mfc\n",
    "a.fb\n\n  b.fb  \n'c d.fb'\n\"e f\"=g.fb[3,9]\n",
    "s/u1.mfc=../data/big.mfc[0,10]\ns/u2.mfc=../data/big.mfc[11,20]\n",
)


def scripts(path) -> None:
    entries = read_scp(path)
    for entry in entries:
        _ = entry.key, entry.where, entry.num_frames
    write_scp(path.with_suffix(".out"), entries)


LM = LanguageModel.from_arpa(
    make_arpa(
        ["<s>", "</s>", "A", "B", "<UNK>"],
        [
            {
                ("<s>",): (-99.0, -0.3),
                ("</s>",): (-1.0, 0.0),
                ("A",): (-0.5, -0.2),
                ("B",): (-0.7, 0.0),
                ("<UNK>",): (-2.0, 0.0),
            },
            {("<s>", "A"): (-0.2, 0.0), ("A", "B"): (-0.4, 0.0)},
        ],
    )
)


def lattice(rng: random.Random, directory) -> bytes:
    size = rng.randrange(2, 7)
    pairs = [(i, j) for i in range(size - 1) for j in range(i + 1, size) if j == i + 1 or rng.random() < 0.4]
    on_nodes = rng.random() < 0.2
    scale, base = rng.choice((1, 10)), rng.choice(("10", "2.718"))
    lines = ["VERSION=1.0\nUTTERANCE=u1", f"lmscale={scale} wdpenalty=0 acscale=0.1 base={base}"]
    lines.append(f"N={size} L={len(pairs)}")
    words = ("A", "B", "!NULL", "<s>", "</s>", "!SENT_END", '"x y"')
    lines += [f"I={i} t={i * 0.1:.2f}" + (f" W={rng.choice(words)}" if on_nodes else "") for i in range(size)]
    for k, (i, j) in enumerate(pairs):
        word = "" if on_nodes else f" W={rng.choice(words)}"
        rest = rng.choice(("", " v=1", " d=:a,0.05,-3:b,0.05:", " n=-1 r=-0.5 p=0.3"))
        lines.append(f"J={k} S={i} E={j}{word} a={-100 * rng.random():.3f} l={-9 * rng.random():.3f}{rest}")
    return "\n".join([*lines, ""]).encode()


def use_lattice(path) -> None:
    """Do what `argonaut lattice` does."""
    found = read_slf(path)
    out = path.with_suffix(".out")
    for step in (
        lambda: consensus(found),
        lambda: consensus(found, 0.1),
        lambda: link_posteriors(weigh(found), 1.0),
        lambda: best_path(weigh(found)),
        lambda: confident_words(found),
        lambda: nbest(found, 5),
        lambda: oracle(found, ["A", "B"]),
        lambda: (write_slf(out, determinise(found)), read_slf(out)),
        lambda: (write_slf(out, rescore_lattice(found, LM)), read_slf(out)),
        lambda: (write_slf(out, found), read_slf(out)),
        lambda: lattice_acceptor(found),
        lambda: write_kaldi_lattices(out, [("u", found)], word_table(found.word)),
    ):
        try:
            step()
        except ArgonautError:
            continue


FORMATS = (
    Format("htk features", features(*KINDS), read_features, (header_field,), True),
    Format(
        "htk features packed",
        features(*PACKED_KINDS),
        read_features,
        (header_field, with_checksum, with_checksum),
        True,
    ),
    Format("mlf", text(*MLFS), labels),
    Format("scp", text(*SCPS), scripts),
    Format("pairs of files", text('"a b.wav" c.fb\nd.wav e.fb\n'), read_pairs),
    Format("list", text("a\nb\n"), read_list),
    Format("state list", text("a_s2\na_s3\nsil[2]\n", "a\nb\n"), read_state_list),
    Format("slf lattice", lattice, use_lattice),
)
