"""What of a transcript is an annotation, and how text is split beside them."""

import pytest

from readers.corpora.annotations import Annotations
from readers.corpora.words import WordForms
from readers.dictionaries.case import InCase
from readers.errors import ConfigError

OWN = Annotations.of(["yyy=unknown", "&=sniff=breath", "Abbruch=cutoff"])


@pytest.mark.parametrize(
    ("word", "kind", "cut_off"),
    [
        ("wan-", "cutoff", ("wan", True, False)),
        ("-wan-", "cutoff", ("wan", True, False)),
        ("-ing", "cutoff", ("ing", True, True)),
        ("'cau-", "cutoff", ("'cau", True, False)),
        ("th-th-", "cutoff", ("th-th", True, False)),
        ("<cutoff>", "cutoff", ("", False, False)),
        ("<cutoff-going>", "cutoff", ("going", False, False)),
        ("{CUTOFF_going_home}", "cutoff", ("going_home", False, False)),
        ("[hes-um]", "cutoff", ("um", False, False)),
        ("abbruch", "cutoff", ("", False, False)),
        ("[Laughter]", "laughter", None),
        ("{LG}", "laughter", None),
        ("<breath>", "breath", None),
        ("&=sniff", "breath", None),
        ("<unk>", "unknown", None),
        ("YYY", "unknown", None),
        ("[xxx]", "unknown", None),
        ("[door slams]", "noise", None),
        ("((laughs))", "laughter", None),
        ("((door_slams))", "noise", None),
        ("(laughs)", None, None),
        ("&=laughs", "laughter", None),
        ("&=", None, None),
        ("Xxx", "unknown", None),
        ("<s>", None, None),
        ("</s>", None, None),
        ("uh-huh", None, None),
        ("-5", None, None),
        ("-", None, None),
        ("laughter", None, None),
    ],
)
def test_kinds_of_annotations(word, kind, cut_off):
    assert OWN.kind(word) == kind
    assert OWN.cut_off(word) == cut_off
    assert (word in OWN) == (kind is not None)


def test_names_and_costs_are_checked():
    with pytest.raises(ConfigError, match="annotation xxx: kind 'unk'; expected cutoff, laughter, breath, noise, unkn"):
        Annotations.of(["xxx=unk"])
    with pytest.raises(ConfigError, match="frame_cost -1; expected a number that is not negative"):
        Annotations(frame_cost=-1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('I "wan-", want (wor-). -ing!', ["I", "wan-", "want", "wor-", "-ing"]),
        (
            "[door slams] yyy, &=sniff go-- on - well-known",
            ["[door_slams]", "yyy", "&=sniff", "go", "on", "well", "known"],
        ),
        ("[laughter]wan-", ["[laughter]", "wan-"]),
        ("well ((door slams)), ((lacht)) (known).", ["well", "((door_slams))", "((lacht))", "known"]),
    ],
)
def test_text_is_split_beside_annotations(text, words):
    assert list(WordForms(known=InCase({"WELL", "KNOWN"}, "upper", OWN)).split(text)) == words
    assert "wan" in WordForms().split("wan-, want")
