"""Texts in parts: together they are the text, whatever the size of the parts."""

import gzip

import pytest

from readers.errors import FormatError
from readers.language import sentences
from readers.language.sentences import TextPart, read_part, text_parts

TEXTS = (
    "a b\nc\n\n d e f\n",
    "a b\r\nc\r\n\r\nd",
    "\ufeffa\n\ufeffb\nä ö\n",
    "one line without an end of its own",
    "\n\n\n",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_parts_are_the_text(tmp_path, monkeypatch, text, size):
    path = tmp_path / "text"
    path.write_bytes(text.encode())
    expected = read_part(TextPart(str(path)))
    assert expected == [line.split() for line in text.replace("\ufeff", "").split("\n") if line.split()]
    monkeypatch.setattr(sentences, "PART_BYTES", size)
    parts = text_parts(path)
    assert len(parts) == max(1, -(-len(text.encode()) // size))
    assert [words for part in parts for words in read_part(part)] == expected


def test_faults_have_their_line_in_the_file(tmp_path, monkeypatch):
    path = tmp_path / "text"
    path.write_bytes(b"a\nb\nc\nd \xff\ne\n")
    monkeypatch.setattr(sentences, "PART_BYTES", 3)
    with pytest.raises(FormatError, match=f"^{path}:4: byte 0xff is not UTF-8"):
        [read_part(part) for part in text_parts(path)]


def test_compressed_texts_are_one_part(tmp_path, monkeypatch):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"a b\nc\n"))
    monkeypatch.setattr(sentences, "PART_BYTES", 3)
    assert text_parts(path) == [TextPart(str(path))]
    assert read_part(*text_parts(path)) == [["a", "b"], ["c"]]
