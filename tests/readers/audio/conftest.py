"""Audio through every function that reads it."""

import io
import sys

import numpy as np
import pytest

from readers.audio.audio_file import read_audio
from readers.audio.audio_stream import open_audio
from readers.audio.data_size import NO_LENGTH
from readers.audio.header import read_audio_header


class Trickle(io.BytesIO):
    """A pipe that gives a few bytes at a time, an odd number now and then."""

    def seekable(self):
        return False

    def read1(self, size=-1):
        return super().read1(min(size, 7))

    def read(self, size=-1):
        return super().read(min(size, 3))


@pytest.fixture
def feed(monkeypatch):
    """Let standard input give bytes."""

    def give(content):
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": Trickle(content)}))

    return give


@pytest.fixture
def every_door(tmp_path, capfd, feed):
    """Returns a function that reads bytes as a file, its header, its parts, in blocks and from a pipe.

    All agree; the function returns samples and notes.  Nothing is printed.
    """

    def read(content):
        path = tmp_path / "a"
        path.write_bytes(content)
        notes = []
        samples, rate = read_audio(path, notes=notes)
        header = read_audio_header(path)
        assert (header.rate, set(header.notes) <= set(notes)) == (rate, True)
        if header.notes == tuple(notes):  # otherwise the end is only known when the samples are decoded
            assert header.num_samples == len(samples)
        stream = open_audio(path, 1000)
        np.testing.assert_array_equal(np.concatenate(list(stream.blocks)), samples)
        assert stream.notes == notes
        feed(content)
        for door, unseen in ((io.BytesIO(content), (NO_LENGTH,)), ("-", (NO_LENGTH, "no chunks"))):
            stream = open_audio(door, 1000)
            np.testing.assert_array_equal(np.concatenate(list(stream.blocks)), samples)
            assert stream.notes == [note for note in notes if not any(text in note for text in unseen)]
        begin, end = len(samples) // 3, len(samples) // 2
        np.testing.assert_array_equal(read_audio(path, first=begin, last=end, notes=[])[0], samples[begin : end + 1])
        np.testing.assert_array_equal(read_audio(path, first=begin, notes=[])[0], samples[begin:])
        assert capfd.readouterr().err == ""
        return samples, notes

    return read
