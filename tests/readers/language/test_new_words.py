"""Lists of new words."""

from readers.language import read_new_words


def test_words_have_several_pronunciations_or_none(tmp_path):
    (tmp_path / "words").write_text("# names\nTALLINN T AA L IH N\n\nOSLO\nTALLINN t a\nOSLO\nTALLINN t a\n")
    expected = {"TALLINN": [("T", "AA", "L", "IH", "N"), ("t", "a")], "OSLO": []}
    assert read_new_words(tmp_path / "words") == expected
