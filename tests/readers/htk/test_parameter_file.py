"""HTK parameter files: round trips, byte layout by hand, both byte orders, every message."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import FormatError, ShapeError
from readers.htk import parameter_file as htk
from readers.htk.parameter_file import kind_name, parse_kind, read_htk, read_htk_header, write_htk


def random_frames(seed, dim, num_frames):
    return np.asfortranarray(np.random.default_rng(seed).normal(size=(dim, num_frames)).astype(np.float32))


def put(path, header, body=b"", order=">"):
    path.write_bytes(struct.pack(order + "iiHH", *header) + body)
    return path


# --- kinds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [  # numbers as they stand in files of HTK and CNTK
        ("USER", 0x0009),
        ("MFCC_D_A_0", 0x2306),
        ("MFCC_E_D_A", 0x0346),
        ("PLP_D_A_0", 0x230B),
        ("FBANK_D_A_Z", 0x0B07),
        ("MFCC_E_D_N_A_T_C_K_Z_0", 0xBFC6),
        ("WAVEFORM", 0),
    ],
)
def test_parse_kind_and_kind_name_agree_with_known_numbers(name, kind):
    assert parse_kind(name) == kind
    assert kind_name(kind) == name


def test_parse_kind_takes_qualifiers_in_any_order_and_case():
    assert parse_kind("fbank_Z_A_d") == parse_kind("FBANK_D_A_Z")


def test_kind_name_of_an_unknown_base_still_says_something():
    assert kind_name(0o77 | htk.HAS_D) == "KIND63_D"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MFC_D", r"parameter kind 'MFC_D': unknown base 'MFC'; expected one of WAVEFORM, LPC,"),
        ("MFCC_Q", r"parameter kind 'MFCC_Q': unknown qualifier _Q; expected some of _E _D"),
        ("MFCC_D_D", r"parameter kind 'MFCC_D_D': qualifier _D is given twice; expected once"),
        ("MFCC_A", r"parameter kind 'MFCC_A': _A without _D; expected both"),
        ("MFCC_D_T", r"parameter kind 'MFCC_D_T': _T without _A; expected both"),
        ("MFCC_E_N", r"parameter kind 'MFCC_E_N': _N needs _D and one of _E and _0; expected all of them"),
    ],
)
def test_parse_kind_refuses(name, message):
    with pytest.raises(FormatError, match=message):
        parse_kind(name)


# --- layout --------------------------------------------------------------------------------------------------------


def test_read_htk_of_bytes_written_by_hand(tmp_path):
    path = put(tmp_path / "a.fb", (2, 100000, 12, 7), struct.pack(">6f", 1, 2, 3, 4, 5, 6))
    file = read_htk(path)
    assert file.frames.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert file.frames.dtype == np.float32
    assert file.frames.flags.f_contiguous
    assert (file.period, file.kind) == (100000, 7)


def test_write_htk_gives_the_bytes_of_the_format(tmp_path):
    write_htk(tmp_path / "a.mfc", np.array([[1.0, 2.0]]), parse_kind("MFCC"), 50000)
    assert (tmp_path / "a.mfc").read_bytes() == struct.pack(">iihhff", 2, 50000, 4, 6, 1, 2)


def test_write_htk_takes_the_name_of_a_kind(tmp_path):
    write_htk(tmp_path / "a", np.ones((2, 3)), "user_K")
    assert read_htk(tmp_path / "a").kind == htk.USER | htk.HAS_K
    with pytest.raises(FormatError, match=r"/b: parameter kind 'USR': unknown base 'USR'; expected one of WAVEFORM,"):
        write_htk(tmp_path / "b", np.ones((2, 3)), "USR")
    assert not (tmp_path / "b").exists()


def test_third_differentials_use_the_sign_bit_of_the_kind(tmp_path):
    kind = parse_kind("MFCC_D_A_T")
    write_htk(tmp_path / "a", np.ones((4, 3)), kind)
    assert struct.unpack(">h", (tmp_path / "a").read_bytes()[10:12])[0] < 0
    assert read_htk(tmp_path / "a").kind == kind == 0x8306


@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("kind", ["FBANK", "MFCC_E_D_A", "USER_C", "PLP_D_A_0_C_K", "FBANK_K"])
def test_either_byte_order_is_found_by_itself(tmp_path, order, kind):
    frames = random_frames(1, 39, 20)
    write_htk(tmp_path / "a", frames, parse_kind(kind), byte_order=order)
    assert read_htk_header(tmp_path / "a").byte_order == order
    file = read_htk(tmp_path / "a", verify=True)
    np.testing.assert_allclose(file.frames, frames, atol=1e-4 if "_C" in kind else 0)
    assert file.frames.flags.f_contiguous


@pytest.mark.parametrize("order", [">", "<"])
def test_a_period_that_reads_the_same_in_both_orders_is_decided_by_the_size(tmp_path, order):
    put(tmp_path / "a", (3, 0x01000001, 8, 9), bytes(24), order)
    header = read_htk_header(tmp_path / "a")
    assert (header.byte_order, header.num_frames, header.dim) == (order, 3, 2)


def test_compressed_values_decode_as_the_book_says(tmp_path):
    # A = (2, 4), B = (1, -3), one frame of shorts (7, 11): x = (s + B) / A = (4, 2); the header counts 4 frames more
    body = struct.pack(">4f2h", 2, 4, 1, -3, 7, 11)
    path = put(tmp_path / "a", (5, 100000, 4, parse_kind("MFCC_C")), body)
    assert read_htk_header(path).num_frames == 1
    assert read_htk(path).frames.tolist() == [[4.0], [2.0]]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [0, 1e-38, np.nan])
def test_compressed_values_with_a_damaged_scale_are_not_finite(tmp_path, scale):
    body = struct.pack(">4f2h", scale, 4, 1, -3, 700, 11)
    frames = read_htk(put(tmp_path / "a", (5, 100000, 4, parse_kind("MFCC_C")), body)).frames
    assert np.isfinite(frames).tolist() == [[False], [True]]


def test_iref_values_are_scaled_as_htk_scales_them(tmp_path):
    path = put(tmp_path / "a", (2, 100000, 2, htk.IREFC), struct.pack(">2h", 32767, -16384))
    np.testing.assert_allclose(read_htk(path).frames, [[1.0, -16384 / 32767]], rtol=1e-7)
    write_htk(tmp_path / "b", np.array([[1.0, -16384 / 32767]]), htk.IREFC)
    assert (tmp_path / "b").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", [htk.WAVEFORM, htk.DISCRETE])
def test_integer_kinds_keep_their_integers(tmp_path, kind):
    frames = np.array([[-32768, 32767, 0, 5]], np.float32)
    write_htk(tmp_path / "a", frames, kind, 625)
    file = read_htk(tmp_path / "a")
    np.testing.assert_array_equal(file.frames, frames)
    assert (tmp_path / "a").stat().st_size == 12 + 2 * 4
    assert file.period == 625


def test_kind_12_may_carry_an_identifier_of_16_bytes(tmp_path):
    values = struct.pack(">2f", 1, 2)
    plain = put(tmp_path / "plain", (2, 100000, 4, 12), values)
    stream = put(tmp_path / "stream", (2, 100000, 4, 12), b"\xff" * 16 + values)
    assert read_htk(plain).frames.tolist() == read_htk(stream).frames.tolist() == [[1.0, 2.0]]


def test_frames_of_65532_bytes_are_read_as_unsigned_size(tmp_path):
    frames = random_frames(2, 16383, 2)
    write_htk(tmp_path / "a", frames, htk.USER)
    np.testing.assert_array_equal(read_htk(tmp_path / "a").frames, frames)


# --- ranges --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["FBANK", "FBANK_C_K", "WAVEFORM"])
@pytest.mark.parametrize(("start", "end"), [(0, 0), (3, 7), (9, 9), (0, None), (4, None)])
def test_a_range_is_the_same_columns_of_the_whole(tmp_path, kind, start, end):
    frames = np.rint(random_frames(3, 1 if kind == "WAVEFORM" else 5, 10) * 100)
    write_htk(tmp_path / "a", frames, parse_kind(kind))
    whole = read_htk(tmp_path / "a").frames
    part = read_htk(tmp_path / "a", start, end).frames
    np.testing.assert_array_equal(part, whole[:, start : 10 if end is None else end + 1])


def test_a_range_reads_only_its_own_bytes(tmp_path, monkeypatch):
    write_htk(tmp_path / "a", random_frames(4, 10, 5000), htk.USER)
    sizes = []
    original = htk._read_array

    def spy(file, shape, *rest):
        sizes.append(shape)
        return original(file, shape, *rest)

    monkeypatch.setattr(htk, "_read_array", spy)
    read_htk(tmp_path / "a", 4000, 4004)
    assert sizes == [(5, 10)]


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (5, 4, r"a: frames \[5,4\]; expected 0 <= first <= last"),
        (-1, 4, r"a: frames \[-1,4\]; expected 0 <= first <= last"),
        (3, 10, r"a: frames \[3,10\] of a file with 10 frames; expected a last frame of at most 9"),
    ],
)
def test_a_range_outside_the_file_is_refused(tmp_path, start, end, message):
    write_htk(tmp_path / "a", random_frames(5, 3, 10), htk.USER)
    with pytest.raises(FormatError, match=message):
        read_htk(tmp_path / "a", start, end)


# --- broken files --------------------------------------------------------------------------------------------------


def test_a_file_shorter_than_the_header_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    with pytest.raises(FormatError, match=r"a: 5 bytes; expected at least the 12-byte HTK header"):
        read_htk(tmp_path / "a")


@pytest.mark.parametrize("lost", [1, 4, 100])
def test_a_truncated_body_names_file_and_sizes(tmp_path, lost):
    write_htk(tmp_path / "a", random_frames(6, 10, 20), htk.FBANK)
    whole = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(whole[:-lost])
    message = rf"a: truncated, {812 - lost} bytes; expected 812 for 20 frames of 40 bytes of kind FBANK"
    with pytest.raises(FormatError, match=message):
        read_htk_header(tmp_path / "a")


def test_bytes_too_many_are_refused(tmp_path):
    write_htk(tmp_path / "a", random_frames(6, 10, 20), htk.FBANK)
    with (tmp_path / "a").open("ab") as file:
        file.write(b"xx")
    with pytest.raises(FormatError, match=r"a: too long, 814 bytes; expected 812"):
        read_htk(tmp_path / "a")


def test_a_huge_frame_count_is_refused_before_memory_is_asked_for(tmp_path):
    put(tmp_path / "a", (2**31 - 1, 100000, 65532, 9), bytes(100))
    with pytest.raises(FormatError, match=r"a: truncated, 112 bytes; expected 140728898355"):
        read_htk(tmp_path / "a")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ((0, 100000, 4, 9), r"a: 0 frames in the header; expected at least 1"),
        ((4, 100000, 4, 9 | htk.HAS_C), r"a: 4 frames in the header; expected at least 5"),
        ((-1, 100000, 4, 9), r"a: -1 frames, period 100000, kind 0o11; expected the header of an HTK file"),
        ((1, 100000, 4, 13), r"a: 1 frames, period 100000, kind 0o15; expected the header of an HTK file"),
        ((1, 100000, 6, 9), r"a: 6 bytes per frame of kind USER; expected a multiple of 4, not 0"),
        ((1, 100000, 0, 9), r"a: 0 bytes per frame of kind USER; expected a multiple of 4, not 0"),
        ((5, 100000, 3, 9 | htk.HAS_C), r"a: 3 bytes per frame of kind USER_C; expected a multiple of 2, not 0"),
        ((1, 100000, 4, 9 | htk.HAS_V), r"a: kind USER_V; expected one without _V"),
        (
            (5, 100000, 2, htk.HAS_C),
            r"a: kind WAVEFORM_C; expected one without _V, and WAVEFORM or DISCRETE without _C",
        ),
    ],
)
def test_a_header_that_cannot_be_is_refused(tmp_path, header, message):
    put(tmp_path / "a", header, bytes(4))
    with pytest.raises(FormatError, match=message):
        read_htk(tmp_path / "a")


def test_a_file_that_shrinks_while_it_is_read_is_a_fault_not_garbage(tmp_path, monkeypatch):
    write_htk(tmp_path / "a", random_frames(7, 4, 10), htk.USER)
    header = read_htk_header(tmp_path / "a")
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:100])
    monkeypatch.setattr(htk, "_read_header", lambda file, path: header)
    with pytest.raises(FormatError, match=r"a: ended while being read; expected 72 bytes more"):
        read_htk(tmp_path / "a")


def test_a_damaged_body_is_found_by_its_checksum_when_asked(tmp_path):
    write_htk(tmp_path / "a", random_frames(8, 4, 10), parse_kind("USER_K"))
    raw = bytearray((tmp_path / "a").read_bytes())
    raw[50] ^= 1
    (tmp_path / "a").write_bytes(raw)
    read_htk(tmp_path / "a")
    with pytest.raises(FormatError, match=r"a: checksum \d+, but the data gives \d+; expected the same"):
        read_htk(tmp_path / "a", verify=True)


# --- writing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frames", "kind", "period", "error", "message"),
    [
        (
            np.zeros(3),
            9,
            1,
            ShapeError,
            r"a: matrix of shape \(3,\); expected \(dim, frames\) with at least one of each",
        ),
        (np.zeros((3, 0)), 9, 1, ShapeError, r"a: matrix of shape \(3, 0\); expected"),
        (np.zeros((3, 2)), 9, 0, ShapeError, r"a: period 0; expected 1 to 2147483647 \(100 ns units\)"),
        (np.zeros((16384, 1)), 9, 1, ShapeError, r"a: 16384 values per frame; expected at most 65535 bytes per frame"),
        (np.zeros((3, 2)), 2**16, 1, FormatError, r"a: kind WAVEFORM \(0o200000\) cannot be written"),
        (np.zeros((3, 2)), 9 | htk.HAS_V, 1, FormatError, r"a: kind USER_V \(0o40011\) cannot be written"),
        (
            np.zeros((3, 2)),
            htk.HAS_C,
            1,
            FormatError,
            r"a: kind WAVEFORM_C cannot be compressed; expected it without _C",
        ),
        (np.full((1, 2), np.nan), 9 | htk.HAS_C, 1, FormatError, r"a: infinite values or NaN; expected finite values"),
        (
            np.full((1, 2), 0.5),
            0,
            1,
            FormatError,
            r"a: values from 0.5 to 0.5; expected 16-bit integers in kind WAVEFORM",
        ),
        (np.full((1, 2), 32768), 0, 1, FormatError, r"a: values from 32768 to 32768; expected 16-bit integers"),
        (np.full((1, 2), 1.5), htk.IREFC, 1, FormatError, r"a: values from 1.5 to 1.5; expected -1 to 1 in kind IREFC"),
    ],
)
def test_write_htk_refuses_and_leaves_the_old_file(tmp_path, frames, kind, period, error, message):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(error, match=message):
        write_htk(tmp_path / "a", frames, kind, period)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_plain_kinds_may_hold_values_that_are_not_finite(tmp_path):
    frames = np.array([[np.inf, np.nan]], np.float32)
    write_htk(tmp_path / "a", frames, htk.USER)
    np.testing.assert_array_equal(read_htk(tmp_path / "a").frames, frames)


# --- properties ----------------------------------------------------------------------------------------------------

QUALIFIERS = st.sampled_from(["", "_E", "_D_A", "_E_D_A_T", "_D_N_0", "_Z_0", "_K", "_D_A_K_Z"])


@settings(max_examples=40, deadline=None)
@given(
    base=st.sampled_from(["LPC", "LPREFC", "LPCEPSTRA", "LPDELCEP", "MFCC", "FBANK", "MELSPEC", "USER", "PLP", "ANON"]),
    qualifiers=QUALIFIERS,
    dim=st.integers(1, 8),
    num_frames=st.integers(1, 9),
    period=st.integers(1, 2**24 - 1),
    order=st.sampled_from("<>"),
    seed=st.integers(0, 2**32 - 1),
)
def test_round_trip_of_plain_kinds_is_exact(tmp_path_factory, base, qualifiers, dim, num_frames, period, order, seed):
    path = tmp_path_factory.mktemp("htk") / "a"
    frames = random_frames(seed, dim, num_frames)
    kind = parse_kind(base + qualifiers)
    # A period must be a smaller number in its own order than in the other, or the reader takes the other.
    swapped = int.from_bytes(period.to_bytes(4, "big"), "little")
    period = min(period, swapped) if 0 < swapped < 2**31 else period
    write_htk(path, frames, kind, period, order)
    file = read_htk(path, verify=True)
    np.testing.assert_array_equal(file.frames, frames)
    assert (file.kind, file.period) == (kind, period)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 6),
    num_frames=st.integers(1, 30),
    scale=st.sampled_from([1e-6, 1.0, 1e4]),
    shift=st.sampled_from([0.0, 1.0, -300.0]),
    checked=st.booleans(),
)
def test_round_trip_of_compressed_kinds_is_within_half_a_step(
    tmp_path_factory, seed, dim, num_frames, scale, shift, checked
):
    path = tmp_path_factory.mktemp("htk") / "a"
    frames = random_frames(seed, dim, num_frames) * np.float32(scale) + np.float32(shift)
    write_htk(path, frames, parse_kind("MFCC_C_K" if checked else "MFCC_C"))
    decoded = read_htk(path, verify=True).frames
    # A step is spread / 65534; beside its half there is float32 rounding of A, B and the result.
    spread = np.ptp(frames.astype(np.float64), axis=1, keepdims=True)
    bound = spread / 65534 / 2 + 4 * np.finfo(np.float32).eps * np.abs(frames).max(axis=1, keepdims=True) + 1e-12
    assert np.all(np.abs(decoded.astype(np.float64) - frames) <= bound)


@pytest.mark.corpus
def test_files_of_htk_itself_are_rewritten_byte_for_byte(htk_reference_dir, tmp_path):
    paths = sorted(htk_reference_dir.glob("test.wav.*"))
    assert len(paths) == 6
    for path in paths:
        file = read_htk(path)
        write_htk(tmp_path / "copy", file.frames, file.kind, file.period)
        assert (tmp_path / "copy").read_bytes() == path.read_bytes(), path


@pytest.mark.parametrize(("begin", "name"), [(b"fLaC", "FLAC"), (b"RIFF", "WAV"), (b"NIST_1A", "NIST SPHERE")])
def test_audio_in_place_of_features_is_told(tmp_path, begin, name):
    (tmp_path / "a").write_bytes(begin + bytes(range(100)))
    for read in (read_htk, read_htk_header):
        with pytest.raises(FormatError, match=rf"a: {name} audio; expected an HTK feature file; argonaut hcopy makes"):
            read(tmp_path / "a")
