"""Matrices of numbers as text."""

import socket

import numpy as np
import pytest

from acoustic.network.editing import read_value
from acoustic.network.network import Network
from readers.errors import FormatError
from readers.tables import read_text_matrix


def test_rows_are_lines(tmp_path):
    (tmp_path / "m").write_text("# two rows\n1 2e-3\t-3\n\n4 5 6\n")
    np.testing.assert_array_equal(read_text_matrix(tmp_path / "m"), [[1, 2e-3, -3], [4, 5, 6]])
    (tmp_path / "m").write_text("")
    assert read_text_matrix(tmp_path / "m").shape == (0, 1)


@pytest.mark.parametrize("content", [b"1 x\n", b"1 2\n3\n", b"\xff\xfe\n", b"1,2\n"])
def test_what_is_no_matrix_is_named(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(FormatError, match=r"/m: .*; expected a text matrix, one row a line"):
        read_text_matrix(tmp_path / "m")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/w", "https://example.org/w.txt", "ftp://127.0.0.1/w", "file:///w"])
def test_a_path_that_looks_like_a_url_is_a_file(tmp_path, monkeypatch, url):
    def refused(*arguments, **options):
        raise AssertionError("the network was asked")

    for name in ("getaddrinfo", "create_connection", "socket"):
        monkeypatch.setattr(socket, name, refused)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_text_matrix(url)
    with pytest.raises(FileNotFoundError):
        Network().add("Parameter", "W", rows=1, cols=1, init="fromFile", initFromFilePath=url)
    network = Network()
    network.add("Parameter", "W", rows=1, cols=1)
    with pytest.raises(FileNotFoundError):
        read_value(network, "W", url)
