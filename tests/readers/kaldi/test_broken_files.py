"""Every binary form of Kaldi that is read, damaged in every way that its parts allow: one clear line for each."""

import io
import struct

import kaldifst
import kaldiio
import numpy as np
import pytest
from kaldiio.matio import write_array

from readers.errors import ArgonautError
from readers.kaldi.alignments import read_alignments
from readers.kaldi.ark import read_ark_scp, read_matrix, scan_ark
from readers.kaldi.fst import read_fst
from readers.kaldi.lattice import read_kaldi_lattices
from readers.kaldi.objects import KaldiObjects
from readers.language.openfst import vector_fst
from tests.readers.kaldi.fst_files import header, ngram_file, vector_file
from tests.readers.kaldi.models import Writer, put_transitions
from tests.readers.kaldi.test_fst import HISTORIES, SYMBOLS

MATRIX = np.arange(1, 13, dtype="f4").reshape(4, 3)
WORDS = {"<eps>": 0, "a": 1}


def compressed(method):
    file = io.BytesIO()
    write_array(file, MATRIX, compression_method=method)
    return file.getvalue()


def archive(content):
    return b"u1 " + content


def lattice(arc_type, weight):
    arc = struct.pack("<ii", 1, 1) + weight + struct.pack("<i", 1)
    return b"u1 " + vector_fst(arc_type, [weight, weight], [[arc], []])


def one_object(method):
    def read(path):
        objects = KaldiObjects(path)
        getattr(objects, method)()
        objects.end()

    return read


def all_matrices(path):
    for entry in scan_ark(path):
        read_matrix(path, entry.offset)


def all_lattices(path):
    list(read_kaldi_lattices(path, WORDS))


def transitions(path):
    from readers.kaldi.transition_model import read_transition_model

    read_transition_model(KaldiObjects(path))


WEIGHT = struct.pack("<ff", 0.5, 1.5)
# Of each form: its content, its reader, and the places of its type, of a size of 32 bits and of a float32.
FORMS = {
    "float matrix": (Writer(True).matrix(MATRIX).content, one_object("matrix"), 2, 6, 19),
    "double matrix": (Writer(True).matrix(MATRIX, "f8").content, one_object("matrix"), 2, 11, None),
    "matrix with headers of columns": (compressed(2), one_object("matrix"), 2, 13, 5),
    "matrix of 16 bits": (compressed(3), one_object("matrix"), 2, 14, 6),
    "matrix of 8 bits": (compressed(5), one_object("matrix"), 2, 18, 10),
    "symmetric matrix": (Writer(True).symmetric(np.eye(3)).content, one_object("symmetric"), 2, 6, 10),
    "float vector": (Writer(True).vector(MATRIX[0]).content, one_object("vector"), 2, 6, 10),
    "double vector": (Writer(True).vector(MATRIX[0], "f8").content, one_object("vector"), 2, 6, None),
    "integers": (Writer(True).integers([1, 2, 3]).content, one_object("integers"), 2, 3, None),
    "transition model": (put_transitions(Writer(True)).content, transitions, 2, 32, -22),
    "archive of floats": (archive(Writer(True).matrix(MATRIX).content), all_matrices, 5, 9, None),
    "archive of doubles": (archive(Writer(True).matrix(MATRIX, "f8").content), all_matrices, 5, 14, None),
    "archive with headers of columns": (archive(compressed(2)), all_matrices, 5, 16, None),
    "archive of 16 bits": (archive(compressed(3)), all_matrices, 5, 17, None),
    "archive of 8 bits": (archive(compressed(5)), all_matrices, 5, 21, None),
    "alignments": (
        b"u1 \0B\4" + struct.pack("<i", 2) + struct.pack("<bibi", 4, 5, 4, 6),
        lambda path: list(read_alignments(path)), 5, 6, None,
    ),
    "posteriors": (
        b"u1 \0B\4" + struct.pack("<i", 2) + 2 * struct.pack("<bibibf", 4, 1, 4, 5, 4, 1.0),
        lambda path: list(read_alignments(path)), 5, 6, 21,
    ),
    "lattice": (lattice(b"lattice4", WEIGHT), all_lattices, 17, 77, 93),
    "compact lattice": (lattice(b"compactlattice44", WEIGHT + struct.pack("<ii", 1, 7)), all_lattices, 17, 93, 109),
    "vector transducer": (vector_file([np.inf, 0.5], [(0, 1, 1, 0.5, 1)]), read_fst, 4, 70, 86),
    "n-gram transducer": (ngram_file(HISTORIES, SYMBOLS, (0,)), read_fst, 4, 139, -8),
}  # fmt: skip
DAMAGES = (
    "cut at the end",
    "cut in the middle",
    "negative size",
    "huge size",
    "a size too large",
    "another type",
    "infinite",
    "NaN",
)


def damaged(content, damage, type_at, size_at, float_at):
    def with_bytes(at, value):
        at %= len(content)
        return content[:at] + value + content[at + len(value) :]

    match damage:
        case "cut at the end":
            return content[:-3]
        case "cut in the middle":
            return content[: 1 + len(content) // 2]
        case "negative size":
            return with_bytes(size_at, struct.pack("<i", -2))
        case "huge size":
            return with_bytes(size_at, struct.pack("<i", 2**31 - 2))
        case "a size too large":
            (size,) = struct.unpack_from("<i", content, size_at)
            return with_bytes(size_at, struct.pack("<i", size + 1))
        case "another type":
            return with_bytes(type_at, b"XQ")
        case "infinite":
            return with_bytes(float_at, struct.pack("<f", -np.inf))
        case "NaN":
            return with_bytes(float_at, struct.pack("<f", np.nan))


CASES = [
    (form, damage)
    for form, (*_, float_at) in FORMS.items()
    for damage in (DAMAGES if float_at is not None else DAMAGES[:-2])
]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_damaged_is_read(tmp_path, form):
    content, read, *_ = FORMS[form]
    (tmp_path / "file").write_bytes(content)
    read(tmp_path / "file")


@pytest.mark.parametrize(("form", "damage"), CASES)
def test_damage_is_refused_in_one_clear_line(tmp_path, form, damage):
    content, read, *places = FORMS[form]
    path = tmp_path / "file"
    path.write_bytes(damaged(content, damage, *places))
    with pytest.raises(ArgonautError) as fault:
        read(path)
    message = f"{fault.value}"
    assert message.startswith(f"{path}")
    assert "; expected " in message
    assert "\n" not in message
    assert len(message) < len(f"{path}") + 300
    assert len(CASES) >= 60


TEXTS = {
    "matrix": ("[\n 1 2\n 3 4 ]", one_object("matrix")),
    "vector": ("[ 1 2 3 ]", one_object("vector")),
    "integers": ("[ 1 2 3 ]", one_object("integers")),
    "archive": ("u1 [\n 1 2\n 3 4 ]\n", all_matrices),
    "lattice": ("u1\n0 1 1 0.5,1.5,3_4\n1 2 1 0.5,1.5,3\n2\n\n", all_lattices),
}


@pytest.mark.parametrize(
    ("form", "old", "new"),
    [
        *((form, "]", "") for form in ("matrix", "vector", "integers", "archive")),
        *((form, "[", "") for form in ("matrix", "vector", "integers", "archive")),
        *((form, "2", "x") for form in TEXTS),
        *((form, "1 2", "1") for form in ("matrix", "archive", "lattice")),
        *((form, "2", "nan") for form in ("matrix", "vector", "integers")),
        *((form, "2", "1e999") for form in ("matrix", "vector", "integers")),
        *((form, "]", "] 5") for form in ("matrix", "vector", "integers", "archive")),
        ("integers", "2", "2.5"),
        ("integers", "2", "99999999999"),
        ("lattice", "0.5", "nan"),
        ("lattice", "0 1", "0 -1"),
        ("lattice", "0 1", "0 999999999"),
        ("lattice", "2\n", ""),
        ("lattice", "3_4", "3__4"),
    ],
)
def test_damaged_text_is_refused_in_one_clear_line(tmp_path, form, old, new):
    text, read = TEXTS[form]
    path = tmp_path / "file"
    path.write_text(text)
    read(path)
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ArgonautError) as fault:
        read(path)
    message = f"{fault.value}"
    assert message.startswith(f"{path}")
    assert "; expected " in message
    assert "\n" not in message


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_vectors_of_kaldiio_are_read(tmp_path, dtype):
    values = np.random.default_rng(1).normal(size=7).astype(dtype)
    kaldiio.save_ark(str(tmp_path / "a.ark"), {"u": values})
    content = (tmp_path / "a.ark").read_bytes().removeprefix(b"u ")
    np.testing.assert_array_equal(KaldiObjects("a.ark", content).vector(), values)
    (tmp_path / "b.ark").write_bytes(b"u " + Writer(True).vector(values, dtype).content)
    ((_, theirs),) = kaldiio.load_ark(str(tmp_path / "b.ark"))
    np.testing.assert_array_equal(theirs, values)


@pytest.mark.parametrize("rows", ["[0:1]", "[2:2]", "[1:3]", ""])
def test_ranges_of_lists_are_those_of_kaldiio(tmp_path, rows):
    kaldiio.save_ark(str(tmp_path / "a.ark"), {"u": MATRIX, "v": MATRIX + 1}, scp=str(tmp_path / "a.scp"))
    lines = (tmp_path / "a.scp").read_text().splitlines()
    (tmp_path / "b.scp").write_text("".join(f"{line}{rows}\n" for line in lines))
    theirs = kaldiio.load_scp(str(tmp_path / "b.scp"))
    for entry in read_ark_scp(tmp_path / "b.scp"):
        ours = read_matrix(entry.path, entry.offset, entry.start or 0, entry.end)
        # Kaldi's ranges include the last row, those of kaldiio, too.
        np.testing.assert_array_equal(ours, theirs[entry.key])


@pytest.mark.parametrize("kind", [kaldifst.StdVectorFst, kaldifst.StdConstFst])
def test_transducers_are_written_and_read_by_openfst(tmp_path, kind):
    content, read, *_ = FORMS["vector transducer"]
    (tmp_path / "a.fst").write_bytes(content)
    kind(kaldifst.StdVectorFst.read(str(tmp_path / "a.fst"))).write(str(tmp_path / "b.fst"))
    first = read(tmp_path / "a.fst")
    again = read(tmp_path / "b.fst")
    for name in ("final_cost", "first_arc", "input", "output", "target", "cost"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))


def test_aligned_const_files_are_read(tmp_path):
    finals = np.array([(np.inf, 0, 1, 0, 0), (0.5, 1, 0, 0, 0)], "f4,u4,u4,u4,u4").tobytes()
    arcs = np.array([(1, 2, 0.25, 1)], "i4,i4,f4,i4").tobytes()
    content = header("const", 0, 2, 1, version=2, flags=4)
    for block in (finals, arcs):
        content += b"\0" * (-len(content) % 16) + block
    (tmp_path / "a.fst").write_bytes(content)
    fst = read_fst(tmp_path / "a.fst")
    assert fst.final_cost.tolist() == [np.inf, 0.5]
    assert (fst.input.tolist(), fst.output.tolist(), fst.cost.tolist(), fst.target.tolist()) == ([1], [2], [0.25], [1])
    assert kaldifst.StdConstFst.read(str(tmp_path / "a.fst")).num_states == 2
