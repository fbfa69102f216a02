"""Damaged files of every format end in one of our own faults, which names the file, or in a sound result.

Never in another exception, in a hang, or in memory without bounds.
"""

import gzip
import random

import numpy as np
import pytest

from readers.audio.audio_file import read_audio, write_sphere, write_wav
from readers.config.hcopy import read_hcopy_config
from readers.errors import ArgonautError
from readers.htk.dictionary import read_dictionary
from readers.htk.frame_labels import frame_labels, read_state_list
from readers.htk.mlf import read_mlf
from readers.htk.parameter_file import parse_kind, read_htk, write_htk
from readers.htk.scp import read_list, read_pairs, read_scp
from readers.htk.slf import read_slf
from readers.language.arpa import read_arpa
from readers.language.att import read_acceptor
from readers.results.trn import read_trn
from readers.tables.hmm_tables import read_cntkmap, read_lookahead, read_state_map, read_transitions
from readers.tables.timit import read_phone_map, read_segments

ROUNDS = 60
# Characters that mean something to one format or another.
SPICE = "\"'\\[]=.-+0123456789eEnNaiIfF \t\n\r:,#*?/>()\0é\x85\u2028"


def read_all_labels(path):
    mlf = read_mlf(path)
    for key, labels in mlf.items():
        frame_labels(labels, {"a": 0, "b": 1}, f"{path}: {key}")


TEXTS = {
    "mlf": (
        read_all_labels,
        '#!MLF!#\n"*/u.lab"\n0 100000 a -1.5 x 2 W\n100000 300000 "b"\n///\n0 1 c\n.\n"v?.lab"\n.\n',
    ),
    "state list": (read_state_list, "a_s2\na_s3\nsil[2]\n"),
    "scp": (read_scp, "u.x=/d/a.mfc[0,99]\n.../b.mfc\nv=c.mfc\n"),
    "pairs": (read_pairs, '"a b.wav" c.fb\nd.wav e.fb\n'),
    "list": (read_list, "a\nb\n"),
    "dictionary": (read_dictionary, 'A [x y] 0.5 ey\n"B C" b iy\n!NULL []\n'),
    "arpa": (
        read_arpa,
        "\\data\\\nngram 1=2\nngram 2=1\n\\1-grams:\n-1 <s> -0.5\n-2 a\n\\2-grams:\n-0.5 <s> a\n\\end\\\n",
    ),
    "acceptor": (read_acceptor, "0 1 [a_s2] 0.5\n1 2 A\n2 1 b 1e-3\n2 0.25\n"),
    "state map": (read_state_map, "a a_s2 a_s3\nsil sil[2]\n"),
    "transitions": (read_transitions, "[a_s2] -0.6931 -0.6931\n[b] -inf 0\n"),
    "cntkmap": (read_cntkmap, "[a_s2] 0\n[b] 1\n"),
    "lookahead": (read_lookahead, "a -0\nb -2.5\n"),
    "hcopy": (read_hcopy_config, "A = 1 # x\nHPARM: B = 'c d'\nHLABEL: C = 5\n"),
    "slf": (
        read_slf,
        'VERSION=1.0\nbase=10\nN=2 L=1\nI=0 t=0.0\nI=1 t=1.5 W="x"\nJ=0 S=0 E=1 a=-5 l=-1 v=0 d=:a,0.1,-3:b,0.2:\n',
    ),
    "segments": (read_segments, "0 100 h#\n100 250 sh\n"),
    "phone map": (read_phone_map, "aa aa aa\nax-h ax ah\nq\n"),
    "trn": (read_trn, "<s> A B </s> (u1)\nC (u2)\n"),
}


def damage_text(text, rng):
    characters = list(text)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(characters) + 1)
        action = rng.random()
        if action < 0.3:
            del characters[place : place + rng.randint(1, 6)]
        elif action < 0.6:
            characters[place : place + 1] = rng.choice(SPICE)
        elif action < 0.8:
            characters[place:place] = [rng.choice(SPICE) for _ in range(rng.randint(1, 3))]
        else:
            start = rng.randrange(len(characters) + 1)
            characters[place:place] = characters[start : start + rng.randint(1, 20)]
        characters = characters or ["x"]
    return "".join(characters)


def damage_bytes(raw, rng):
    raw = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(raw))
        if rng.random() < 0.2:
            del raw[place : place + rng.randint(1, 40)]
        else:
            raw[place] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        if not raw:
            return b"\0"
    return bytes(raw)


def read_or_refuse(reader, path, content):
    """Whether the reader took the file; its faults must name the file."""
    path.write_bytes(content)
    message = None
    try:
        reader(path)
    except ArgonautError as fault:
        message = str(fault)
    assert message is None or (message.startswith(str(path)) and "\n" not in message)
    return message is None


@pytest.mark.parametrize("name", TEXTS)
def test_damaged_text(tmp_path, name):
    reader, text = TEXTS[name]
    assert read_or_refuse(reader, tmp_path / "f", text.encode())
    assert read_or_refuse(reader, tmp_path / "f", gzip.compress(text.encode()))
    rng = random.Random(name)
    outcomes = {
        read_or_refuse(reader, tmp_path / "f", damage_text(text, rng).encode("utf-8", "replace")) for _ in range(ROUNDS)
    }
    if name != "list":  # any text is a list
        assert False in outcomes  # the damage was not too light to test anything


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("content", [b"", b"\n", b"\0" * 50, b"\xff\xfe\x00", b'"', b"\\", b"[", b"= = ="])
def test_files_that_are_nothing(tmp_path, name, content):
    read_or_refuse(TEXTS[name][0], tmp_path / "f", content)


BINARIES = {
    "features": (read_htk, lambda path: write_htk(path, np.ones((3, 4)), parse_kind("MFCC_E_D"))),
    "compressed": (
        lambda path: read_htk(path, verify=True),
        lambda path: write_htk(path, np.arange(12.0).reshape(3, 4), parse_kind("MFCC_C_K")),
    ),
    "wav": (read_audio, lambda path: write_wav(path, np.arange(50.0), 16000)),
    "sphere": (read_audio, lambda path: write_sphere(path, np.arange(50.0), 16000)),
    "htk waveform": (read_audio, lambda path: write_htk(path, np.arange(50.0)[None], 0, 625)),
}


READ_TO_THE_END = ("wav", "sphere")  # audio that ends early is read as far as it goes, with a note


@pytest.mark.parametrize("name", BINARIES)
@pytest.mark.filterwarnings("ignore::readers.errors.AudioWarning")
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value", "ignore:overflow")
def test_damaged_binaries(tmp_path, name):
    reader, writer = BINARIES[name]
    writer(tmp_path / "whole")
    raw = (tmp_path / "whole").read_bytes()
    assert read_or_refuse(reader, tmp_path / "f", raw)
    rng = random.Random(name)
    for _ in range(ROUNDS):
        read_or_refuse(reader, tmp_path / "f", damage_bytes(raw, rng))
    for length in range(0, len(raw), max(1, len(raw) // 60)):
        accepted = read_or_refuse(reader, tmp_path / "f", raw[:length])
        assert not accepted or name in READ_TO_THE_END
