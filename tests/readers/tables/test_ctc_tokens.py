"""Tokens files in their three forms, and faults."""

import json

import pytest

from readers.errors import FormatError
from readers.tables.ctc_tokens import SPACE, CtcTokens, read_ctc_tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<blk> 0\na 1\n\u2581b 2\n", CtcTokens(("<blk>", "a", "\u2581b"), "<blk>")),
        ("b 2\r\n[PAD] 0\r\na 1\r\n", CtcTokens(("[PAD]", "a", "b"), "[PAD]")),
        ("  2\n1 1\n<pad> 0\n", CtcTokens(("<pad>", "1", SPACE), "<pad>", SPACE)),
        ("|\na\n", CtcTokens(("|", "a", "<blank>"), "<blank>", "|", has_blank=False)),
        (
            "<unk>\t0\n\u2581a\t-3.5\n",
            CtcTokens(("<unk>", "\u2581a", "<blank>"), "<blank>", has_blank=False, scores=(0.0, -3.5)),
        ),
        (json.dumps({"b": 2, " ": 1, "<pad>": 0}), CtcTokens(("<pad>", SPACE, "b"), "<pad>", SPACE)),
    ],
    ids=["icefall", "any order", "space", "list", "SentencePiece", "JSON"],
)
def test_forms(tmp_path, text, expected):
    path = tmp_path / "tokens"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_ctc_tokens(path) == expected


def test_the_blank_can_be_named(tmp_path):
    (tmp_path / "tokens").write_text("_\na\n<pad>\n<eps>\n")
    assert read_ctc_tokens(tmp_path / "tokens", "_").blank == "_"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no tokens; expected at least one"),
        (b"a 0\nb 2\n", ":2: token 'b' has the number 2; expected 0 to 1"),
        (b"a 0\nb 0\n", ":2: token 'b' 0; expected every token and number once"),
        (b"a\nb\na\n", ":3: token 'a' 2; expected every token and number once"),
        (b"<blk> 0\n<eps> 1\n", "<blk> and <eps> may be the blank; expected its name to be given"),
        (b'{"a": "0"}', "token 'a' has the number 0; expected 0 to 0"),
        (b'{"a": ', "expected a JSON object"),
        (b"{}", "0 tokens; expected 1 to"),
        (b"a\0\nb\n", r"token 'a\x00'; expected names without white space and zero bytes"),
        (b"a b c\n", "token 'a b c'; expected names without white space"),
        (b"a " + 5000 * b"1", "expected names without white space"),
        (b"\xff\xfe", "not UTF-8; expected a tokens file"),
    ],
)
def test_faults(tmp_path, content, message):
    path = tmp_path / "tokens"
    path.write_bytes(content)
    with pytest.raises(FormatError) as fault:
        read_ctc_tokens(path)
    assert str(fault.value).startswith(str(path))
    assert message in str(fault.value)


def test_a_named_blank_must_be_there(tmp_path):
    (tmp_path / "tokens").write_text("a\nb\n")
    with pytest.raises(FormatError, match="no token '_'; expected the blank, one of 2 tokens"):
        read_ctc_tokens(tmp_path / "tokens", "_")
