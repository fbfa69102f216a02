"""Archives against kaldiio, which writes and reads them too; and what damage does."""

import gzip

import kaldiio
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.errors import ArgonautError, FormatError
from readers.kaldi.alignments import parse_tokens, read_alignment, read_alignments
from readers.kaldi.ark import (
    ArkEntry,
    is_ark_scp,
    read_ark_scp,
    read_matrix,
    read_matrix_header,
    scan_ark,
    write_matrix,
)

QUIET = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
KEY = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=6).map(canonical).filter(bool)


def matrices(seed: int, keys, dtype=np.float32) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 5))
    return {key: rng.standard_normal((int(rng.integers(1, 9)), dim)).astype(dtype) for key in keys}


@settings(max_examples=40, **QUIET)
@given(seed=st.integers(0, 999), keys=st.lists(KEY, min_size=1, max_size=4, unique=True), text=st.booleans())
def test_what_is_written_is_read_by_us_and_by_kaldiio(tmp_path, seed, keys, text):
    values = matrices(seed, keys)
    with (tmp_path / "a.ark").open("wb") as file:
        offsets = [write_matrix(file, key, value, text) for key, value in values.items()]
    theirs = dict(kaldiio.load_ark(str(tmp_path / "a.ark")))
    entries = scan_ark(tmp_path / "a.ark")
    assert [entry.key for entry in entries] == list(theirs) == keys
    assert [entry.offset for entry in entries] == offsets
    for entry in entries:
        ours = read_matrix(entry.path, entry.offset)
        assert (ours.dtype, ours.flags.c_contiguous) == (np.float32, True)
        np.testing.assert_array_equal(ours, values[entry.key])
        np.testing.assert_allclose(np.atleast_2d(theirs[entry.key]), ours, rtol=1e-6)


@pytest.mark.parametrize(("kind", "options"), [
    ("FM ", {}), ("DM ", {}), ("CM ", {"compression_method": 2}), ("CM2", {"compression_method": 3}),
    ("CM3", {"compression_method": 5}), ("text", {"text": True}),
])  # fmt: skip
def test_every_kind_of_matrix(tmp_path, kind, options):
    values = matrices(1, ["u1", "u2", "u3"], np.float64 if kind == "DM " else np.float32)
    kaldiio.save_ark(str(tmp_path / "a.ark"), values, scp=str(tmp_path / "a.scp"), **options)
    listed, scanned = read_ark_scp(tmp_path / "a.scp"), scan_ark(tmp_path / "a.ark")
    assert [(one.key, one.offset) for one in scanned] == [(one.key, one.offset) for one in listed]
    theirs = kaldiio.load_scp(str(tmp_path / "a.scp"))
    for entry in listed:
        header = read_matrix_header(entry.path, entry.offset)
        assert header.kind == kind.encode()
        assert (header.num_frames, header.dim) == values[entry.key].shape
        ours = read_matrix(entry.path, entry.offset)
        np.testing.assert_allclose(ours, theirs[entry.key], rtol=1e-6)
        np.testing.assert_allclose(ours, values[entry.key], atol=0.2 if kind.startswith("C") else 1e-5)
        np.testing.assert_array_equal(read_matrix(entry.path, entry.offset, 0, 0), ours[:1])
        np.testing.assert_array_equal(read_matrix(entry.path, entry.offset, 1, 2), ours[1:3])


@settings(max_examples=100, **QUIET)
@given(data=st.data(), method=st.sampled_from([None, 2, 3, 5]))
def test_damaged_archive_is_one_line_or_harmless(tmp_path, data, method):
    path = tmp_path / "a.ark"
    kaldiio.save_ark(str(path), matrices(3, ["u1", "u2"]), compression_method=method)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, min(40, len(raw) - 1)))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    message = str(path)
    try:
        for entry in scan_ark(path):
            read_matrix(entry.path, entry.offset)
    except ArgonautError as fault:
        message = str(fault)
    assert message.startswith(str(path))
    assert "\n" not in message


@settings(max_examples=100, **QUIET)
@given(raw=st.one_of(st.binary(max_size=60), st.text("u1 \n[]0123.-e\0B\4", max_size=60).map(str.encode)))
def test_any_bytes_are_one_line_or_harmless(tmp_path, raw):
    path = tmp_path / "a"
    path.write_bytes(raw)
    for read in (scan_ark, read_ark_scp, lambda path: list(read_alignments(path)), read_alignment):
        message = str(path)
        try:
            read(path)
        except ArgonautError as fault:
            message = str(fault)
        assert message.startswith(str(path))
        assert "\n" not in message


@settings(max_examples=40, **QUIET)
@given(
    vectors=st.dictionaries(KEY, st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=9), min_size=1, max_size=4),
    zipped=st.booleans(), text=st.booleans(),
)  # fmt: skip
def test_alignments_in_binary_and_as_text(tmp_path, vectors, zipped, text):
    path = tmp_path / "ali"
    if text:
        path.write_text("".join(f"{key} {' '.join(map(str, one))} \n" for key, one in vectors.items()))
    else:
        arrays = {key: np.array(one, np.int32) for key, one in vectors.items()}
        kaldiio.save_ark(str(path), arrays, scp=str(tmp_path / "scp"))
        for entry in read_ark_scp(tmp_path / "scp"):
            assert read_alignment(entry.path, entry.offset).tolist() == vectors[entry.key]
    if zipped:
        path.write_bytes(gzip.compress(path.read_bytes()))
    found = dict(read_alignments(path))
    assert list(found) == list(vectors)
    for key, one in found.items():
        classes = parse_tokens(one, None, "x") if text else one
        assert classes.dtype == np.int32
        assert classes.tolist() == vectors[key]


def test_scp_lines(tmp_path):
    (tmp_path / "a.scp").write_text("u1 dir/a.ark:12\n\nu2\t b c.mat \nu3 a.ark:7[2:4]\n")
    scp = f"{tmp_path}/a.scp"
    assert read_ark_scp(scp) == [
        ArkEntry("u1", "dir/a.ark", 12, None, None, scp, 1),
        ArkEntry("u2", "b c.mat", 0, None, None, scp, 3),
        ArkEntry("u3", "a.ark", 7, 2, 4, scp, 4),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("u1 a.ark:12", True),
        ("u1 b.mat", True),
        ("spk=1-u2 a.ark:7[2:4]", True),
        ("u1=a b.htk", False),
        ("a.htk", False),
        ("u1=a.htk[0,99]", False),
        ("", False),
    ],
)
def test_lists_of_archives_are_told_from_those_of_htk_files(tmp_path, line, expected):
    (tmp_path / "a.scp").write_text(f"\n{line}\n")
    assert is_ark_scp(tmp_path / "a.scp") is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u1 a:1\nu1 a:2\n", r"a.scp:2: 'u1' is already at line 1; expected each key once"),
        ("u1\n", r"a.scp:1: 'u1' has no archive; expected key archive:offset"),
        ("u1 copy-feats ark:x ark:- |\n", r"a.scp:1: a pipe; expected an archive"),
        ("u1 a:1[3:2]\n", r"a.scp:1: range \[3:2\]; expected \[first:last\]"),
        ("u1 a:1[0:2,0:3]\n", r"a.scp:1: range \[0:2,0:3\]; expected"),
    ],
)
def test_faults_of_scp_lines(tmp_path, text, message):
    (tmp_path / "a.scp").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_ark_scp(tmp_path / "a.scp")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"u1 \0BFM \4\xff\xff\xff\x7f\4\2\0\0\0", r"a.ark:3: 2147483647 frames of 2 values end at byte \d+; expected"),
        (b"u1 \0BFM \4\xff\xff\xff\xff\4\2\0\0\0", r"a.ark:3: -1 frames of 2 values; expected at least one of each"),
        (b"u1 \0BCM2x" + bytes(8) + b"\1\0\0\0\1\0\0\0ab", r"a.ark:3: 0 frames of 0 values"),
        (b"u1 \0B\4\1\0\0\0\4\1\0\0\0", r"a.ark:3: a vector of integers; expected a matrix of features"),
        (b"u1 \0BFV \4\1\0\0\0abcd", r"a.ark:3: an object b'FV '; expected a matrix"),
        (b"\0\0\0$", r"a.ark:1: found b'\\x00'; expected a key and a blank, as in Kaldi archives"),
        (b"u1.htk\nu2.htk\n", r"a.ark:7: found b'u1.htk\\n'; expected a key and a blank"),
        (b"u1 PKL123", r"a.ark:3: found b'PKL123'; expected a matrix"),
        (b"u1 [ 1 2\n3 ]\n", r"a.ark:3: 2 rows of unequal length"),
        (b"u1 [ 1 x ]\n", r"a.ark:3: could not convert .*; expected a matrix of numbers"),
        (b"u1 [ 1 2\n", r"a.ark:3: \[ is not closed; expected \]"),
        (b"u1 [ 1 ]\nu1 [ 1 ]\n", r"a.ark: key 'u1' is repeated"),
        (b"\xff\xfe [ 1 ]\n", r"a.ark: key b'\\xff\\xfe' is not UTF-8"),
    ],
)
def test_faults_of_archives(tmp_path, raw, message):
    (tmp_path / "a.ark").write_bytes(raw)
    with pytest.raises(FormatError, match=message):
        scan_ark(tmp_path / "a.ark")


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_float32_become_infinite(tmp_path):
    kaldiio.save_ark(str(tmp_path / "a.ark"), {"u": np.array([[1e300, 1.0]])})
    assert read_matrix(tmp_path / "a.ark", 2).tolist() == [[np.inf, 1.0]]
    (tmp_path / "a.ark").write_bytes(b"u [ 1e300 1 ]\n")
    assert read_matrix(tmp_path / "a.ark", 2).tolist() == [[np.inf, 1.0]]


def test_faults_of_alignments(tmp_path):
    with pytest.raises(FormatError, match="x: label '-1'; expected a class number"):
        parse_tokens(["1", "-1"], None, "x")
    with pytest.raises(FormatError, match="x: label 'b'; expected a label of labelMappingFile"):
        parse_tokens(["a", "b"], {"a": 0}, "x")
    (tmp_path / "a").write_bytes(b"u1 \0B\4\xff\xff\xff\x7f\4")
    with pytest.raises(FormatError, match="a:3: 2147483647 integers in a file of 11 bytes"):
        list(read_alignments(tmp_path / "a"))
    with (
        (tmp_path / "b").open("wb") as file,
        pytest.raises(FormatError, match="key 'a b'; expected a key without blanks"),
    ):
        write_matrix(file, "a b", np.zeros((1, 1)))
