"""Archives and script files of Kaldi."""

import random
import struct

import numpy as np

from acoustic.descriptions.kaldi_nnet import read_kaldi_network
from readers.errors import ArgonautError
from readers.kaldi.alignments import parse_tokens, read_alignment, read_alignments
from readers.kaldi.ark import read_ark_scp, read_matrix, read_matrix_header, scan_ark, write_matrix
from readers.kaldi.audio_archive import read_wav_archive, read_wav_at
from readers.kaldi.fst import read_fst
from readers.kaldi.hmm.gaussians import read_gaussians
from readers.kaldi.hmm.phones import read_align_lexicon, read_word_boundary
from readers.kaldi.hmm.tree import read_tree
from readers.kaldi.lattice import read_word_table
from readers.kaldi.objects import KaldiObjects
from readers.kaldi.transition_model import read_transition_model
from tests.fuzz.format import Format, text, written
from tests.readers.kaldi.fst_files import lookahead_file, ngram_file, vector_file
from tests.readers.kaldi.layers import attention_network, convolutional_network, lstm_network, old_lstm_network
from tests.readers.kaldi.models import Writer, put_gaussians, put_model, put_transitions, put_tree


def matrices(rng: random.Random) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(rng.randrange(1000))
    dim = rng.choice((1, 3, 5))
    return {f"u{k}": numbers.normal(size=(rng.choice((1, 2, 9)), dim)).astype("f4") for k in range(rng.choice((1, 3)))}


def archive(path, rng: random.Random) -> None:
    """An archive of float, double, compressed or text matrices."""
    import kaldiio

    found = matrices(rng)
    kind = rng.randrange(6)
    if kind < 2:
        with path.open("wb") as file:
            for key, frames in found.items():
                write_matrix(file, key, frames.astype("f8") if kind else frames)
    else:
        kaldiio.save_ark(str(path), found, compression_method=(2, 3, 5)[kind % 3], append=False)


def text_archive(path, rng: random.Random) -> None:
    with path.open("wb") as file:
        for key, frames in matrices(rng).items():
            write_matrix(file, key, frames, text=True)


def read_archive(path) -> None:
    entries = scan_ark(path)
    for entry in entries[:5]:
        header = read_matrix_header(path, entry.offset)
        read_matrix(path, entry.offset)
        read_matrix(path, entry.offset, 0, 0)
        read_matrix(path, entry.offset, header.num_frames - 1)


def read_script(path) -> None:
    with (path.parent / "a.ark").open("wb") as file:
        write_matrix(file, "u1", np.ones((3, 2), "f4"))
    for entry in read_ark_scp(path)[:5]:
        name = path.parent / "a.ark" if entry.path.endswith("a.ark") else entry.path
        read_matrix(name, entry.offset, entry.start or 0, entry.end)


def header_sizes(content: bytes, rng: random.Random) -> bytes:
    """Change the type or the sizes of an object."""
    places = [at for at in range(len(content)) if content.startswith(b"\0B", at)]
    if not places:
        return content
    place = rng.choice(places)
    if rng.random() < 0.2:
        kind = rng.choice((b"FM ", b"DM ", b"CM ", b"CM2", b"CM3", b"FV ", b"\4\0\0", b"SM "))
        return content[: place + 2] + kind + content[place + 5 :]
    value = rng.choice((0, 1, -1, 2, 4, 2**31 - 1, -(2**31), 2**30, 65536, len(content), 0x7F7FFFFF, 0x7FC00000))
    at = place + rng.choice((3, 5, 6, 9, 10, 11, 13, 14, 17))
    return content[:at] + struct.pack("<i", value) + content[at + 4 :]


def alignments(path, rng: random.Random) -> None:
    import kaldiio

    vectors = {f"u{k}": np.array([rng.randrange(9) for _ in range(rng.choice((0, 1, 7)))], "i4") for k in range(3)}
    kaldiio.save_ark(str(path), vectors)


def use_alignments(path) -> None:
    for key, found in read_alignments(path):
        if isinstance(found, list):
            for ids in (None, {"1": 0, "a": 1}):
                try:
                    parse_tokens(found, ids, f"{path}: {key}")
                except ArgonautError:
                    continue
    try:
        read_alignment(path, 3)
    except ArgonautError:
        return


def audio_archive(path, rng: random.Random) -> None:
    import wave

    with path.open("wb") as file:
        for key in ("u1", "u2"):
            file.write(f"{key} ".encode())
            with wave.open(file, "wb") as sound:
                sound.setparams((1, 2, 8000, 0, "NONE", ""))
                sound.writeframes(rng.randbytes(2 * rng.choice((0, 1, 50))))
            file.seek(0, 2)


def use_audio_archive(path) -> None:
    for _key, _content in read_wav_archive(path):
        pass
    read_wav_at(path, 3)


def model(path, rng: random.Random) -> None:
    """A final.mdl of nnet3, binary or text."""
    writer = Writer(rng.random() < 0.7)
    network = rng.choice((None, lstm_network, old_lstm_network, convolutional_network, attention_network))
    if network is None:
        path.write_bytes(put_model(writer, rng.randrange(9)).content)
        return
    lines, components, context = network(rng.randrange(9))
    path.write_bytes(put_model(writer, lines=lines, components=components, context=context).content)


def gaussian_model(path, rng: random.Random) -> None:
    """A final.mdl of Gaussian mixtures, binary or text."""
    numbers = np.random.default_rng(rng.randrange(9))
    mixtures = [(np.full(2, 0.5), numbers.normal(size=(2, 3)), numbers.uniform(0.5, 2, (2, 3))) for _ in range(3)]
    writer = put_transitions(Writer(rng.random() < 0.7), 3, old=True)
    path.write_bytes(put_gaussians(writer, mixtures).content)


def tree(path, rng: random.Random) -> None:
    """A tree of triphones, binary or text."""
    root = (1, [None, 0, (-1, [1, (0, {1, 2}, 3, (2, {3}, None, 4))])])
    path.write_bytes(put_tree(Writer(rng.random() < 0.7), 3, 1, root).content)


def use_tree(path) -> None:
    found = read_tree(path)
    found.pdfs(np.ones((2, found.width), int), [0, 1])


def use_gaussian_model(path) -> None:
    objects = KaldiObjects(path)
    read_transition_model(objects)
    read_gaussians(objects)


def use_model(path) -> None:
    """Convert the network; the sizes of a damaged one may be odd, but not larger than the file."""
    read_kaldi_network(path, 3)


def transducer(path, rng: random.Random) -> None:
    """A transducer of the type vector, olabel_lookahead or ngram."""
    kind = rng.randrange(3)
    if kind == 2:
        histories = {(): (0.0, 1.0, {1: 0.5, 2: 0.25}), (1,): (0.5, None, {2: 0.125}), (2,): (0.25, 1.5, {})}
        path.write_bytes(ngram_file(histories, {0: "<eps>", 1: "a", 2: "b"}, (1,)))
        return
    arcs = [(rng.randrange(3), rng.randrange(5), rng.randrange(5), rng.random(), rng.randrange(3)) for _ in range(5)]
    content = vector_file([float("inf"), 0.5, 0.0], arcs)
    path.write_bytes(lookahead_file(content) if kind else content)


FORMATS = (
    Format("openfst transducer", written(transducer), read_fst, (header_sizes,), True),
    Format("kaldi model", written(model), use_model, (header_sizes,), True),
    Format("kaldi gaussian model", written(gaussian_model), use_gaussian_model, (header_sizes,), True),
    Format("kaldi audio archive", written(audio_archive), use_audio_archive, (), True),
    Format("kaldi archive", written(archive), read_archive, (header_sizes,), True),
    Format("kaldi text archive", written(text_archive), read_archive),
    Format("kaldi scp", text("u1 a.ark:3\nu2 a.ark:3[0:1]\nu3 a.ark:3[1:2]\n", "u a.ark:3\n"), read_script),
    Format("kaldi alignments", written(alignments), use_alignments, (header_sizes,), True),
    Format("kaldi text alignments", text("u1 1 1 2 0\nu2 3\nu3\n", "u a b a\n"), use_alignments),
    Format("kaldi tree", written(tree), use_tree, (header_sizes,), True),
    Format(
        "kaldi align lexicon",
        text("<eps> <eps> SIL\nAB ab a_B b_E\n", "A A a_S\n"),
        lambda path: read_align_lexicon(path, {}, {}),
    ),
    Format(
        "kaldi word boundary",
        text("1 nonword\n2 begin\nb_S singleton\n", "3 internal\n"),
        lambda path: read_word_boundary(path, {"1": 1, "2": 2, "3": 3, "b_S": 9}),
    ),
    Format("word table", text("<eps> 0\na 1\n#0 2\n"), read_word_table),
)
