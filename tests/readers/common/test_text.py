"""Lines, quoting and numbers of text files."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common.names import cut_extension, key_of
from readers.common.text import (
    canonical,
    escape,
    filled_lines,
    is_count,
    is_number,
    parse_object,
    quote_name,
    read_bytes,
    read_lines,
    read_rows,
    read_text_bytes,
    split_fields,
    unescape,
)
from readers.errors import ConfigError, FormatError, ModelError


def test_read_lines_takes_all_line_ends_and_a_byte_order_mark(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n\nfive\x0bstill five")
    assert read_lines(tmp_path / "a") == ["one", "two", "three", "", "five\x0bstill five"]


def test_filled_lines_and_rows_have_their_places(tmp_path):
    (tmp_path / "a").write_text("# first\n\n one  two\t\n  # indented\nthree#\n \n")
    path = tmp_path / "a"
    assert list(filled_lines(path, comment="#")) == [(f"{path}:3", "one  two"), (f"{path}:5", "three#")]
    assert list(read_rows(path))[:2] == [(f"{path}:1", ["#", "first"]), (f"{path}:3", ["one", "two"])]
    assert list(read_rows(path, comment="# "))[1:] == [(f"{path}:5", ["three#"])]


def test_read_lines_tells_gzip_by_content(tmp_path):
    (tmp_path / "a").write_bytes(gzip.compress(b"one\ntwo\n"))
    assert read_lines(tmp_path / "a") == ["one", "two"]


def test_gzip_data_of_several_members_and_padding(tmp_path):
    (tmp_path / "a").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n") + b"\0" * 9)
    assert read_lines(tmp_path / "a") == ["one", "two"]


def test_gzip_data_that_expands_too_much_is_refused(tmp_path, monkeypatch):
    bomb = gzip.compress(bytes(5000))
    (tmp_path / "a").write_bytes(bomb + bomb)
    assert len(read_bytes(tmp_path / "a")) == 10_000
    monkeypatch.setattr("readers.common.text.ALWAYS_ALLOWED", 9_999)
    with pytest.raises(FormatError, match=rf"a: {2 * len(bomb)} bytes of gzip data that expand to more than 9999; "):
        read_bytes(tmp_path / "a")
    monkeypatch.setenv("ARGONAUT_MAX_EXPANDED", "0.001")
    assert len(read_bytes(tmp_path / "a")) == 10_000
    monkeypatch.setenv("ARGONAUT_MAX_EXPANDED", "0.000001")
    with pytest.raises(FormatError, match="expand to more than 1073; "):
        read_bytes(tmp_path / "a")
    monkeypatch.setenv("ARGONAUT_MAX_EXPANDED", "much")
    with pytest.raises(ConfigError, match="ARGONAUT_MAX_EXPANDED=much; expected a number of gigabytes"):
        read_bytes(tmp_path / "a")


@pytest.mark.parametrize("damage", [lambda raw: raw[:-6], lambda raw: raw[:15] + b"\xff" * 5 + raw[20:]])
def test_damaged_gzip_is_one_clear_fault(tmp_path, damage):
    (tmp_path / "a.gz").write_bytes(damage(gzip.compress(bytes(range(256)) * 40)))
    with pytest.raises(FormatError, match=r"a.gz: damaged gzip data \(.*\); expected a complete gzip file"):
        read_lines(tmp_path / "a.gz")


def test_text_that_is_not_utf8_is_named_by_line(tmp_path):
    (tmp_path / "a").write_bytes(b"one\nM\xfcller\n")
    with pytest.raises(
        FormatError, match=r"a:2: byte 0xfc is not UTF-8; expected UTF-8 text; convert text in another encoding"
    ):
        read_lines(tmp_path / "a")


def test_zero_bytes_are_no_text(tmp_path):
    (tmp_path / "a").write_bytes("one\ntwo\n".encode("utf-16-le"))
    with pytest.raises(FormatError, match=r"a:1: byte 0x00 is not text; expected UTF-8 text, not binary data"):
        read_lines(tmp_path / "a")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_known_by_its_byte_order_mark(encoding, tmp_path):
    (tmp_path / "a").write_bytes("\ufeffeins\r\nzwölf 𝄞\n".encode(encoding))
    assert read_lines(tmp_path / "a") == ["eins", "zwölf 𝄞"]
    assert read_text_bytes(tmp_path / "a") == "eins\nzwölf 𝄞\n".encode()
    (tmp_path / "a").write_bytes("\ufeff\ud800x".encode(encoding, "surrogatepass"))
    with pytest.raises(FormatError, match=r"a: damaged UTF-16 \(illegal .*\); expected text"):
        read_lines(tmp_path / "a")


@pytest.mark.parametrize("token", ["0", "-1", "+2.5", ".5", "1e-3", "-3239.01", "7.", "-inf"])
def test_is_number(token):
    assert is_number(token)


@pytest.mark.parametrize(
    ("token", "expected"),
    [("0", True), ("9" * 18, True), ("9" * 19, False), ("-1", False), ("", False), ("1.0", False), ("٣", False)],
)
def test_is_count(token, expected):
    assert is_count(token) is expected


@pytest.mark.parametrize("token", ["", "nan", "inf", "-", ".", "1_000", "1a", "infinity", "e5", "0x10", "1٢", "-1_0"])
def test_is_number_of_words_is_false(token):
    assert not is_number(token)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"caf\303\251", "café"),  # UTF-8 bytes
        (r"caf\351", "café"),  # Latin-1, as old dictionaries have it
        (r"\"quoted\"", '"quoted"'),
        (r"back\\slash", "back\\slash"),
        (r"\[x", "[x"),
        (r"\777", "777"),  # no byte has this code
    ],
)
def test_unescape(text, expected):
    assert unescape(text) == expected


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=0, max_size=12))
def test_quoted_names_come_back(name):
    assert split_fields(quote_name(name), "x:1", exact=True)[0][0] == name
    assert unescape(escape(name), exact=True) == name
    assert split_fields(quote_name(name), "x:1")[0][0] == unescape(escape(name)) == canonical(name)


def test_quote_name_leaves_plain_names_alone():
    assert quote_name("sil[2]") == "sil[2]"
    assert quote_name("a b") == '"a b"'
    assert quote_name("") == '""'


def test_split_fields_tells_which_were_quoted():
    assert split_fields("""0 "a b" 'c"d' e\\"f""", "x:1") == [
        ("0", False),
        ("a b", True),
        ('c"d', True),
        ('e"f', False),
    ]


def test_split_fields_names_an_open_quote():
    with pytest.raises(FormatError, match=r"x:1: quote \" in .* is not closed; expected another \""):
        split_fields('0 "abc', "x:1")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("a.mfc", "a"),
        ("dir.x/a", "dir.x/a"),
        ("dir.x/a.b.fea", "dir.x/a.b"),
        (r"c:\data.d\utt.fb", r"c:\data.d\utt"),
        ('"*/a.lab"', "a"),
        ("*/dir/*/a.lab", "dir/*/a"),
        ("a", "a"),
    ],
)
def test_key_of(name, key):
    assert key_of(name) == key


def test_cut_extension_takes_only_the_last():
    assert cut_extension("a.b.c") == "a.b"


def test_an_object_is_read():
    assert parse_object('{"a": [1]}', "here") == parse_object(b'{"a": [1]}', "here") == {"a": [1]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", r"here: '\[1\]'; expected a JSON object"),
        ("{", "here: .*line 1 column 2.*; expected a JSON object"),
        (b"\xff", "here: .*can't decode byte 0xff.*; expected a JSON object"),
        ("[" * 100_000, "here: nested too deeply; expected a JSON object"),
    ],
)
def test_what_is_no_object_is_said(text, message):
    with pytest.raises(FormatError, match=message):
        parse_object(text, "here")
    with pytest.raises(ModelError, match="; expected a model"):
        parse_object(text, "here", "a model", ModelError)
