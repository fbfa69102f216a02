"""Script files and lists."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import FormatError
from readers.htk.scp import ScpEntry, frame_counts, read_list, read_pairs, read_scp, write_pairs, write_scp


def put(path, text):
    path.write_text(text)
    return path


def parts(entries):
    return [entry[:4] for entry in entries]


def test_the_three_forms_and_the_range_without_a_name(tmp_path):
    path = put(
        tmp_path / "a.scp",
        "feat/a.mfc\nspk1-utt7.fb=/data/part0.chunk[120,430]\r\nlogical.x=/data/b.mfc\n\n  c.fb[0,9] \n",
    )
    entries = read_scp(path)
    assert parts(entries) == [
        ("feat/a.mfc", "feat/a.mfc", None, None),
        ("spk1-utt7.fb", "/data/part0.chunk", 120, 430),
        ("logical.x", "/data/b.mfc", None, None),
        ("c.fb", "c.fb", 0, 9),
    ]
    assert [entry.key for entry in entries] == ["feat/a", "spk1-utt7", "logical", "c"]
    assert [entry.num_frames for entry in entries] == [None, 311, None, 10]
    assert [entry.line for entry in entries] == [1, 2, 3, 5]
    assert entries[1].where == f"{path}:2"


def test_a_path_may_hold_equals_signs_brackets_and_blanks(tmp_path):
    path = put(tmp_path / "a.scp", "u=/data/x=1/a.mfc[3,4]\nv=/da ta/sil[2]\n")
    assert parts(read_scp(path)) == [("u", "/data/x=1/a.mfc", 3, 4), ("v", "/da ta/sil[2]", None, None)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('#!MLF!#\n"*/u.lab"\na\n.\n', "a master label file"),
        ("utt1 /data/raw.1.ark:5\nutt2 /data/raw.1.ark:99\n", "'utt1 /data/raw.1.ark:5', a line of a Kaldi scp file"),
    ],
)
def test_other_lists_are_told_as_what_they_are(tmp_path, text, found):
    path = put(tmp_path / "a.scp", text)
    faults = []
    assert read_scp(path, on_fault=faults.append) == []
    with pytest.raises(FormatError) as caught:
        read_scp(path)
    assert [str(caught.value)] == [str(fault) for fault in faults]
    assert str(caught.value).startswith(f"{path}:1: {found}")


def test_a_prefix_goes_before_paths_only(tmp_path):
    path = put(tmp_path / "a.scp", "u=a.mfc[0,1]\nb/c.mfc\n.../d\n")
    entries = read_scp(path, prefix="\\\\host\\data\\\\")
    assert [entry.path for entry in entries] == ["//host/data/a.mfc", "//host/data/b/c.mfc", "//host/data/.../d"]
    assert entries[0].logical == "u"


def test_three_dots_stand_for_the_directory_of_the_scp(tmp_path, monkeypatch):
    put(tmp_path / "a.scp", "u=.../feat/a.mfc[0,1]\n.../b.mfc\n/x/.../c/...\n")
    assert [entry.path for entry in read_scp(tmp_path / "a.scp")] == [
        f"{tmp_path}/feat/a.mfc",
        f"{tmp_path}/b.mfc",
        f"/x/{tmp_path}/c/...",
    ]
    assert read_scp(tmp_path / "a.scp", expand=False)[0].path == ".../feat/a.mfc"
    monkeypatch.chdir(tmp_path)
    assert read_scp("a.scp")[0].path == "./feat/a.mfc"  # never the root directory


def test_three_dots_in_the_name_of_a_file_are_part_of_it(tmp_path):
    path = put(tmp_path / "um...er.wav", "")
    put(tmp_path / "a.scp", f"u={path}\nv={path}[0,9]\n")
    assert [entry.path for entry in read_scp(tmp_path / "a.scp")] == [str(path)] * 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("u=a[120,98]", r"a.scp:2: frames \[120,98\]; expected first <= last"),
        ("u=a[0,x]", r"a.scp:2: 'u=a\[0,x\]' ends in a malformed range; expected \[first,last\] with whole numbers"),
        ("u=a[-1,5]", r"a.scp:2: 'u=a\[-1,5\]' ends in a malformed range"),
        ("u=a[0, 5]", r"a.scp:2: .* ends in a malformed range"),
        (f"u=a[0,{'9' * 5000}]", r"a.scp:2: .* ends in a malformed range"),
        ("u=", r"a.scp:2: 'u=' has no path; expected path, name=path or name=path\[first,last\]"),
        ("u=[0,5]", r"a.scp:2: 'u=\[0,5\]' has no path"),
        ("=a.mfc", r"a.scp:2: '=a.mfc' has no logical name; expected path"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, message):
    with pytest.raises(FormatError, match=message):
        read_scp(put(tmp_path / "a.scp", f"x.mfc\n{line}\n"))


NAMES = st.text(st.characters(blacklist_characters="=\r\n", blacklist_categories=["Cs"]), min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            NAMES, NAMES, st.booleans(), st.one_of(st.none(), st.tuples(st.integers(0, 999), st.integers(0, 99)))
        ),
        max_size=5,
    )
)
def test_what_can_be_written_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("scp") / "a.scp"
    entries = [
        ScpEntry(
            physical if same else logical, physical, *((s, s + n) if span and (s := span[0], n := span[1]) else ())
        )
        if span
        else ScpEntry(physical if same else logical, physical)
        for logical, physical, same, span in rows
    ]
    try:
        write_scp(path, entries)
    except FormatError:
        return
    assert parts(read_scp(path, expand=False)) == parts(entries)


def test_ordinary_entries_can_be_written(tmp_path):
    write_scp(tmp_path / "b.scp", [ScpEntry("u", "a b:1")])
    assert parts(read_scp(tmp_path / "b.scp")) == parts([ScpEntry("u", "a b:1")])
    entries = [ScpEntry("a.mfc", "a.mfc"), ScpEntry("u.x", "/d/p=1", 3, 4), ScpEntry("u", "sil[2]")]
    write_scp(tmp_path / "a.scp", entries)
    assert (tmp_path / "a.scp").read_text() == "a.mfc\nu.x=/d/p=1[3,4]\nu=sil[2]\n"


@pytest.mark.parametrize(
    "entry",
    [
        ScpEntry("a=b", "c"),
        ScpEntry("a\nb", "c"),
        ScpEntry("", ""),
        ScpEntry("a", "b[1,2]"),
        ScpEntry("a b:1", "a b:1"),  # a line of a Kaldi scp
        ScpEntry("#!MLF!#", "#!MLF!#"),
    ],
)
def test_write_scp_refuses_names_that_would_read_as_something_else(tmp_path, entry):
    with pytest.raises(FormatError, match=r"a.scp: entry .* cannot be written as an SCP line; expected names without"):
        write_scp(tmp_path / "a.scp", [entry])


def test_hcopy_pairs_with_quotes(tmp_path):
    path = put(tmp_path / "a.scp", 'in/a.wav  out/a.fb\n\n"in/b c.wav" out/b.fb\n')
    assert read_pairs(path) == [("in/a.wav", "out/a.fb"), ("in/b c.wav", "out/b.fb")]
    write_pairs(tmp_path / "b.scp", read_pairs(path))
    assert read_pairs(tmp_path / "b.scp") == read_pairs(path)


@pytest.mark.parametrize(("line", "count"), [("a.wav", 1), ("a b c", 3)])
def test_hcopy_line_that_is_no_pair(tmp_path, line, count):
    message = rf"a.scp:1: found {count}; expected two names, source and target"
    with pytest.raises(FormatError, match=message):
        read_pairs(put(tmp_path / "a.scp", line + "\n"))


def test_hcopy_line_with_an_open_quote(tmp_path):
    with pytest.raises(FormatError, match=r"a.scp:1: quote \" in .* is not closed"):
        read_pairs(put(tmp_path / "a.scp", '"a.wav b.fb\n'))


def test_read_list_strips_and_skips_blank_lines(tmp_path):
    assert read_list(put(tmp_path / "a", " one \n\ntwo words\n")) == ["one", "two words"]


def test_names_of_files_with_byte_0_are_refused(tmp_path):
    with pytest.raises(FormatError, match=r"a.scp:2: a name with the escape \\000; expected names of files"):
        read_pairs(put(tmp_path / "a.scp", 'a.wav a.fb\nb.wav "dir\\000/b.fb"\n'))


def test_frame_counts(tmp_path):
    path = tmp_path / "train.scp"
    path.write_text("a.fbank=x/a.fbank[0,99]\nb.fbank=x/b.fbank[5,9]\n")
    assert frame_counts(path) == {"a": 100, "b": 5}
    path.write_text("a.fbank=x/a.fbank[0,99]\nb.fbank=x/b.fbank\n")
    with pytest.raises(FormatError, match=rf"^{re.escape(str(path))}:2: x/b.fbank without frame range; expected"):
        frame_counts(path)
