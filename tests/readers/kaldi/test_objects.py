"""Kaldi's objects, binary and text: what was written is read, and damaged ones are refused in one line."""

import io
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from readers.errors import FormatError
from readers.kaldi.objects import KaldiObjects
from tests.readers.kaldi.models import Writer

FLOATS = st.floats(-1e6, 1e6, width=32)


def objects_of(content):
    return KaldiObjects("a.mdl", content)


@settings(max_examples=15, deadline=None)
@given(
    st.booleans(),
    st.sampled_from(["f4", "f8"]),
    arrays("f4", st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=FLOATS),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5),
    st.booleans(),
    FLOATS,
)
def test_objects_are_read_as_they_were_written(binary, dtype, matrix, numbers, flag, number):
    square = matrix[:, :1] @ matrix[:, :1].T
    writer = Writer(binary).token("<A>").matrix(matrix, dtype).integers(numbers).integer(*numbers).boolean(flag)
    writer.number(number).number(number, double=True).vector(matrix[0], dtype).symmetric(square, dtype).token("</A>")
    objects = objects_of(writer.content)
    assert objects.peek() == objects.token() == "<A>"
    np.testing.assert_array_equal(objects.matrix(), matrix)
    assert objects.integers().tolist() == [objects.integer() for _ in numbers] == numbers
    assert objects.boolean() is flag
    assert objects.number() == objects.number() == number
    np.testing.assert_array_equal(objects.vector(), matrix[0])
    np.testing.assert_array_equal(objects.symmetric(), square)
    assert objects.accept("<B>") is False
    assert objects.expect("<B>", "</A>") == "</A>"
    objects.end()


def test_empty_objects():
    for binary in (True, False):
        objects = objects_of(
            Writer(binary).vector([]).matrix(np.zeros((0, 0))).integers([]).symmetric(np.zeros((0, 0))).content
        )
        shapes = objects.vector().shape, objects.matrix().shape, objects.integers().shape, objects.symmetric().shape
        assert shapes == ((0,), (0, 0), (0,), (0, 0))


@pytest.mark.parametrize("method", [1, 2, 3, 4, 5, 6, 7])
def test_compressed_matrices_equal_kaldiio(method):
    from kaldiio.matio import read_matrix_or_vector, write_array

    matrix = np.random.default_rng(method).normal(size=(9, 5)).astype("f4") * 50
    file = io.BytesIO()
    write_array(file, matrix, compression_method=method)
    objects = objects_of(file.getvalue())
    np.testing.assert_allclose(objects.matrix(), read_matrix_or_vector(io.BytesIO(file.getvalue())), atol=1e-4)
    objects.end()


COMPRESSED = b"\0BCM2 " + struct.pack("<ffii", 0.0, 1.0, 2**30, 2**30)


@pytest.mark.parametrize(
    ("content", "method", "message"),
    [
        (b"\0BFM \4\xff\xff\xff\x7f\4\xff\xff\xff\x7f", "matrix", "2: 2147483647x2147483647 values end at byte"),
        (b"\0BFM \4\xff\xff\xff\xff\4\1\0\0\0", "matrix", "2: size -1x1; expected sizes of at least 0"),
        (b"\0BFM \4\1\0\0", "matrix", "6: the end of the file; expected an integer of 4 bytes"),
        (b"\0BFM \5\1\0\0\0\0", "matrix", "5: b'\\x05'; expected an integer of 4 bytes"),
        (b"\0BXM \4\1\0\0\0", "matrix", "2: b'XM '; expected a matrix"),
        (b"\0BFM ", "vector", "2: b'FM '; expected a vector"),
        (b"\0BFV \4\x09\0\0\0" + b"\0" * 8, "vector", "2: 9 values end at byte 46; expected at most 18"),
        (b"\0BFV \4\1\0\0\0\0\0\x80\x7f", "vector", "2: values that are not finite; expected numbers"),
        (b"\0BFP \4\xff\xff\xff\x7f", "symmetric", "values end at byte"),
        (b"\0BFP \4\xff\xff\xff\xff", "symmetric", "5: -1; expected 0 to"),
        (b"\0BCM4 " + b"\0" * 20, "matrix", "2: b'CM4'; expected a compressed matrix"),
        (COMPRESSED, "matrix", "2: 1073741824x1073741824 values end at byte"),
        (b"\0BCM " + COMPRESSED[6:], "matrix", "values end at byte"),
        (b"\0BCM " + b"\0" * 7, "matrix", "5: the end of the file; expected the header of a matrix"),
        (b"\0B\4\xff\xff\xff\x7f", "integers", "2: 2147483647 values end at byte"),
        (b"\0B\x08\1\0\0\0", "integers", "2: b'\\x08'; expected integers of 4 bytes"),
        (b"\0B\4\0\0\xc0\x7f", "number", "2: values that are not finite"),
        (b"\0B\3\0\0\0\0", "number", "2: b'\\x03'; expected a number of 4 or 8 bytes"),
        (b"\0BX", "boolean", "2: 'X'; expected T or F"),
        (b"\0B", "boolean", "2: the end of the file; expected T or F"),
        (b"\0B" + b"x" * 2000, "token", "expected a token"),
        (b"\0B\x01\x02 ", "token", "2: b'\\x01\\x02'; expected a token"),
        (b"\0B<A>", "token", "2: b'<A>'; expected a token"),
        (b"  ", "token", "0: the end of the file; expected a token"),
        (b"x" * 2000, "token", "expected a token"),
        (b"1.5 ", "integer", "0: '1.5'; expected an integer"),
        (b"9999999999 ", "integer", "0: '9999999999'; expected an integer"),
        (b"one ", "number", "expected numbers"),
        (b"nan ", "number", "0: values that are not finite"),
        (b"maybe ", "boolean", "0: 'maybe'; expected T or F"),
        (b" [ 1 2", "vector", "1: [ is not closed; expected ]"),
        (b"1 2 ]", "vector", "0: b'1 2 ]'; expected ["),
        (b"[ 1 x ]", "vector", "expected numbers"),
        (b"[ 1 0x1 ]", "integers", "0: '0x1'; expected an integer"),
        (b"[ 1 2\n 3 ]", "matrix", "0: 2 rows of unequal length; expected a matrix"),
        (b"[ 1 2\n 3 ]", "symmetric", "0: 2 rows that are no triangle; expected row n of n numbers"),
        (b"no end", "line", "0: no end of the line; expected a line of text"),
        (b"\xff\n", "line", "0: a line that is not UTF-8; expected a line of text"),
        (b" x", "end", "0: b' x'; expected the end of the file"),
    ],
)
def test_damaged_objects_are_refused_in_one_line(content, method, message):
    with pytest.raises(FormatError) as fault:
        getattr(objects_of(content), method)()
    text = str(fault.value)
    assert text.startswith("a.mdl:")
    assert message in text
    assert "\n" not in text
