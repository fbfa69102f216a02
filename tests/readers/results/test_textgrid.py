"""Reading TextGrids, compared with praatio, which reads and writes them by other code."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.errors import FormatError
from readers.results import Interval, Tier, Word, read_textgrid
from readers.results.timed_words import write_textgrid

SHORT = """File type = "ooTextFile"
Object class = "TextGrid"

0
2.5
<exists>
2
"IntervalTier"
"Ann ""A"" Lee"
0
2.5
2
0
1.25
"say ""so""
twice"
1.25
2.5
""
"TextTier"
"bell"
0
2.5
1
5e-1
"ding"
"""
LONG = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0 ! comment "with a quote
xmax = 2.5
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "Ann ""A"" Lee"
        xmin = 0
        xmax = 2.5
        intervals: size = 2
        intervals [1]:
            xmin = 0
            xmax = 1.25
            text = "say ""so""
twice"
        intervals [2]:
            xmin = 1.25
            xmax = 2.5
            text = ""
    item [2]:
        class = "TextTier"
        name = "bell"
        xmin = 0
        xmax = 2.5
        points: size = 1
        points [1]:
            number = 5e-1
            mark = "ding"
"""


def tiers(first, second, point):
    intervals = (Interval(0.0, 1.25, 'say "so"\ntwice', first), Interval(1.25, 2.5, "", second))
    return (
        Tier('Ann "A" Lee', False, intervals),
        Tier("bell", True, (Interval(0.5, 0.5, "ding", point),)),
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-16-le"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_both_forms_in_all_encodings(tmp_path, encoding, newline):
    mark = "\ufeff" if encoding.endswith("e") else ""
    for text, expected in ((SHORT, tiers(13, 17, 25)), (LONG, tiers(16, 21, 31))):
        (tmp_path / "a.TextGrid").write_bytes((mark + text).replace("\n", newline).encode(encoding))
        assert read_textgrid(tmp_path / "a.TextGrid") == expected


def test_a_textgrid_of_this_project(tmp_path):
    write_textgrid(tmp_path / "a.TextGrid", [Word("a", 0.5, 1.0), Word("“b”", 1.0, 1.25)], duration=2.0)
    ((name, has_points, intervals, *_),) = read_textgrid(tmp_path / "a.TextGrid")
    assert (name, has_points) == ("words", False)
    assert [one[:3] for one in intervals] == [(0, 0.5, ""), (0.5, 1, "a"), (1, 1.25, "“b”"), (1.25, 2, "")]


texts = (
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp")), max_size=8)
    .map(str.strip)
    .map(canonical)
)


@settings(max_examples=40, deadline=None)
@given(found=st.dictionaries(texts.filter(bool), st.lists(texts, min_size=1, max_size=4), min_size=1, max_size=3),
       form=st.sampled_from(["short_textgrid", "long_textgrid"]))  # fmt: skip
def test_what_praatio_writes(found, form, tmp_path_factory):
    textgrid = pytest.importorskip("praatio.textgrid")
    grid, path = textgrid.Textgrid(), tmp_path_factory.mktemp("grid") / "a.TextGrid"
    for name, labels in found.items():
        grid.addTier(textgrid.IntervalTier(name, [(n / 2, n / 2 + 0.5, text) for n, text in enumerate(labels)], 0, 2))
    grid.save(str(path), form, includeBlankSpaces=True)
    read = {tier.name: [one[:3] for one in tier.intervals if one.text] for tier in read_textgrid(path)}
    assert read == {
        " ".join(name.split()): [(n / 2, n / 2 + 0.5, text) for n, text in enumerate(labels) if text]
        for name, labels in found.items()
    }


BROKEN = [
    ("", "a.TextGrid:1: ''; expected a TextGrid that Praat has saved as a text file"),
    ("words of a transcript\n", "a.TextGrid:1: 'words of a transcript\\n'; expected a TextGrid"),
    (SHORT.replace("TextGrid", "PitchTier"), "a.TextGrid:2: a file of type 'ooTextFile', class 'PitchTier'"),
    (SHORT[:-8], "a.TextGrid:25: the file ends here; expected a text in double quotes; it is truncated"),
    (LONG[:-3], "a.TextGrid:32: a quote is not closed; expected another one"),
    (SHORT.split("1.25")[0], "a.TextGrid:13: the file ends here; expected a number; it is truncated"),
    (SHORT.replace("IntervalTier", "WordTier"), "a.TextGrid:8: tier of class 'WordTier'; expected IntervalTier or"),
    (
        SHORT.replace("\n1.25\n2.5", "\n1.0\n2.5"),
        "a.TextGrid:17: from 1 to 2.5 s in tier 'Ann \"A\" Lee'; expected interval",
    ),
    (SHORT.replace("\n0\n1.25", "\n3\n1.25"), "a.TextGrid:13: from 3 to 1.25 s in tier"),
    (SHORT.replace("\n5e-1", "\n5e999"), "a.TextGrid:25: '5e999'; expected a number"),
    (SHORT.replace("<exists>\n2", "<exists>\n2.5"), "a.TextGrid:7: 2.5; expected the number of tiers or intervals"),
    (SHORT.replace("<exists>\n2", "<exists>\n99999999999"), "a.TextGrid:26: the file ends here"),
    (SHORT.replace("<exists>\n2", '"x"'), "a.TextGrid:6: '\"x\"'; expected <exists>"),
    (SHORT.replace('"bell"', "4"), "a.TextGrid:21: '4'; expected a text in double quotes"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_broken_files(text, message, tmp_path):
    (tmp_path / "a.TextGrid").write_text(text, encoding="utf-8")
    with pytest.raises(FormatError) as fault:
        read_textgrid(tmp_path / "a.TextGrid")
    assert message in str(fault.value)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00\xd8x\x00", "damaged UTF-16"),
        (b"ooBinaryFile\x08TextGrid", "a binary file of Praat"),
        ("Grüße".encode("latin-1"), "a.TextGrid:1: byte 0xfc is not UTF-8"),
        (SHORT.replace("ding", "d\0ng").encode("utf-16"), "a.TextGrid:26: byte 0x00 is not text"),
    ],
)
def test_other_bytes(content, message, tmp_path):
    (tmp_path / "a.TextGrid").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read_textgrid(tmp_path / "a.TextGrid")


def test_a_huge_file_is_refused_without_reading_it(tmp_path):
    with (tmp_path / "a.TextGrid").open("wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(FormatError, match=r"a\.TextGrid: 104857600 bytes; expected a TextGrid of at most 33554432"):
        read_textgrid(tmp_path / "a.TextGrid")


def test_no_tiers(tmp_path):
    (tmp_path / "a.TextGrid").write_text('File type = "ooTextFile"\nObject class = "TextGrid"\n0\n1\n<absent>\n')
    assert read_textgrid(tmp_path / "a.TextGrid") == ()
