"""All faults of a reader's data in one go: each with its file and line, none that only follows from another."""

import numpy as np
import pytest

from readers.config.check import CheckedConfig
from readers.htk.parameter_file import FBANK, USER, WAVEFORM, write_htk
from readers.sources.frames.data_check import check_reader


def check(corpus, options: str = "", write: bool = False, read=None):
    """(faults without the directory of the corpus, figures)."""
    text = "\n".join(["reader=[", options, *corpus.blocks.values(), "]"])
    config = CheckedConfig.from_text(text, "r.cntk")
    figures = check_reader(config, ["reader"], write, read, lambda done, total, **figures: None)
    faults = [text for texts in config.findings.faults.values() for text in texts]
    return [fault.replace(f"{corpus.directory}/", "") for fault in faults], figures


def test_sound_data_have_no_faults_and_tell_what_they_hold(tiny):
    corpus = tiny((5, 2, 9))
    faults, figures = check(corpus, read=set())
    assert faults == []
    assert (figures.num_usable, figures.num_frames, figures.period) == (3, 16, 100000)
    assert figures.streams == {"features": 15, "labels": 4}
    assert figures.keys == ["set/u0", "set/u1", "set/u2"]


def test_faults_of_several_kinds_come_together(tiny):
    corpus = tiny((5, 4, 9, 4, 7))
    corpus.edit("features.scp", "features/u0.htk[0,4]", "features/nothere.htk[0,4]")
    corpus.edit("features.scp", "u2.htk[0,8]", "u2.htk[0,99]")
    (corpus.directory / "features/u3.htk").write_bytes((corpus.directory / "features/u3.htk").read_bytes()[:-3])
    corpus.write("features.scp", (corpus.directory / "features.scp").read_text() + "=x\n")
    corpus.edit("labels.mlf", '"*/set/u4.lab"', '"*/set/u5.lab"')
    faults, figures = check(corpus)
    assert len(faults) == 5
    assert faults[0] == "features.scp:6: '=x' has no logical name; expected path, name=path or name=path[first,last]"
    assert faults[1] == "features.scp:1: features/nothere.htk: No such file or directory; expected a file"
    assert faults[2].startswith("features.scp:3: frames [0,99] of features/u2.htk, which has 9; expected")
    assert faults[3].startswith("features/u3.htk: ")
    assert faults[4] == "features.scp:5: no labels in labels.mlf; expected an entry 'set/u4'"
    assert figures.num_usable == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_found_when_values_are_read(tiny, value):
    corpus = tiny((5, 4))
    frames = corpus.frames["features"][1].copy()
    frames[1, 2] = value
    write_htk(corpus.directory / "features/u1.htk", frames, USER)
    assert check(corpus)[0] == []
    faults, figures = check(corpus, read=set())
    assert faults[0].startswith("features/u1.htk: frame 2 has a value that is infinite or NaN; expected finite")
    assert (len(faults), figures.num_usable) == (1, 1)


def test_files_of_another_kind_are_each_named(tiny):
    corpus = tiny((5, 4, 6))
    for u in (1, 2):
        write_htk(corpus.directory / f"features/u{u}.htk", corpus.frames["features"][u], FBANK)
    faults, _ = check(corpus)
    assert [fault.split(":")[0] for fault in faults] == ["features/u1.htk", "features/u2.htk"]
    assert all("kind FBANK" in fault for fault in faults)


def test_waveforms_are_no_features(tiny):
    corpus = tiny((5,))
    write_htk(corpus.directory / "features/u0.htk", np.round(corpus.frames["features"][0]), WAVEFORM)
    assert "features/u0.htk: kind WAVEFORM; expected features" in check(corpus)[0]


def test_an_utterance_that_comes_twice_is_named_with_both_lines(tiny):
    corpus = tiny((5, 4))
    text = (corpus.directory / "features.scp").read_text()
    corpus.write("features.scp", text + text.splitlines()[0] + "\n")
    message = "features.scp:3: set/u0 is already at features.scp:1; expected each utterance once"
    assert check(corpus)[0] == [message]
    first, _, path = text.splitlines()[0].partition("=")
    assert first.startswith("set/u0.")
    corpus.write("features.scp", text + f"set/u0.other={path}\n")
    assert check(corpus)[0] == [message + "; an extension is not part of the name"]


def test_two_lists_in_different_order_are_told_line_by_line(tiny):
    corpus = tiny((5, 5, 5))
    corpus.add_features("more", [5, 5, 5], 2)
    corpus.write("more.scp", (corpus.directory / "more.scp").read_text().replace("set/", "other/"))
    assert check(corpus)[0] == []  # the same order under other directories
    lines = (corpus.directory / "more.scp").read_text().splitlines()
    corpus.write("more.scp", "\n".join([lines[0], lines[2], lines[1]]) + "\n")
    faults, _ = check(corpus)
    assert [fault.split(";")[0] for fault in faults] == ["more.scp:2: u2", "more.scp:3: u1"]


def test_every_damaged_entry_of_a_label_file_is_told_and_no_label_missed_for_it(tiny):
    corpus = tiny((5, 4, 6))
    lines = (corpus.directory / "labels.mlf").read_text().splitlines()
    lines[2] = "9" + lines[2].removeprefix("0").replace(" ", "00000000 ", 1)  # start behind end
    second = lines.index('"*/set/u1.lab"')
    lines.insert(second, '"*/set/u0.lab"\n0 100000 labels_0\n.')
    corpus.write("labels.mlf", "\n".join(lines) + "\n")
    faults, figures = check(corpus)
    assert len(faults) == 2
    assert faults[0].startswith("labels.mlf:3: ")
    assert "entry 'set/u0' is already at labels.mlf:2" in faults[1]
    assert figures.num_usable == 2


def test_labels_of_another_length_name_both_files(tiny):
    corpus = tiny((5, 4))
    corpus.edit("features.scp", "u0.htk[0,4]", "u0.htk[0,3]")
    faults, _ = check(corpus)
    assert faults == ["labels.mlf:2: 5 frames of labels in labels; expected 4, as in the features (features.scp:1)"]


def test_an_unknown_state_is_told_once_however_often_it_stands_there(tiny):
    corpus = tiny((5, 4, 6, 7))
    text = (corpus.directory / "labels.mlf").read_text()
    count = sum("labels_1" in entry for entry in text.split(".\n"))
    corpus.write("labels.mlf", text.replace("labels_1", "odd"))
    faults, _ = check(corpus)
    assert len(faults) == 1
    assert f"state 'odd', here and in {count - 1} more utterances, is missing in the labelMappingFile" in faults[0]


def test_state_lists_are_checked_for_repetitions_blank_lines_and_number(tiny):
    corpus = tiny((5, 4))
    corpus.write("labels.list", "labels_0\n\nlabels_1\nlabels_2\nlabels_0\nlabels_3\nlabels_4\n\n")
    faults, _ = check(corpus)
    assert [fault.split(";")[0] for fault in faults] == [
        "labels.list:2: blank line before a name",
        "labels.list:5: 'labels_0' is already at line 1",
        "r.cntk:10: labelDim of labels is 4",
    ]


def test_a_wrong_dimension_is_told_once_and_the_files_are_still_looked_at(tiny):
    corpus = tiny((5, 4, 6))
    corpus.blocks["features"] = corpus.blocks["features"].replace("dim=15", "dim=14")
    corpus.edit("features.scp", "u2.htk[0,5]", "u2.htk[0,99]")
    faults, _ = check(corpus)
    assert len(faults) == 2
    assert "dim of features is 14, but " in faults[0]
    assert "which has 6" in faults[1]


def test_misspelled_names_and_missing_lists_stand_beside_faults_of_the_data(tiny):
    corpus = tiny((5, 4))
    corpus.blocks["labels"] = corpus.blocks["labels"].replace("labelMappingFile", "labelMapingFile")
    corpus.blocks["more"] = "more=[\n  scpFile=nothere.scp\n  dim=x\n]"
    faults, _ = check(corpus, "randomise=none")
    assert [fault.split(";")[0].split(": ", 1)[1] for fault in faults][:4] == [
        "reader.randomise is not known here",
        "reader.labels.labelMapingFile is not known here",
        "reader.more.dim is 'x'",
        "reader.more.scpFile: nothere.scp: No such file or directory",
    ]
    assert all("labels.mlf" in fault for fault in faults[4:])  # class numbers are expected without a mapping


def test_action_write_needs_no_labels(tiny):
    corpus = tiny((5, 4))
    (corpus.directory / "labels.mlf").unlink()
    assert check(corpus, write=True)[0] == []
    assert len(check(corpus)[0]) == 1


def test_progress_counts_utterances(tiny):
    corpus = tiny((5, 4, 3))
    config = CheckedConfig.from_text("\n".join(["reader=[", *corpus.blocks.values(), "]"]), "r.cntk")
    seen = []
    check_reader(config, ["reader"], False, None, lambda done, total, **figures: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("masks", "faults"),
    [
        ("timeWidth=5;frequencyWidth=2", []),
        ("frequencyWidth=4", ["frequencyWidth is 4; expected at most 3, the number of channels"]),
        ("timeMaks=3;frequencyWidth=2", ["specAugment.timeMaks is not known here; did you mean timeMasks"]),
        ("timeMasks=-1;frequencyWidth=2", ["timeMasks is -1; expected 0 to 100"]),
    ],
)
def test_masks_are_checked(tiny, masks, faults):
    corpus = tiny((5, 4))
    for number, frames in enumerate(corpus.frames["features"]):
        write_htk(corpus.directory / "features" / f"u{number}.htk", frames, FBANK)
    corpus.blocks["features"] = corpus.blocks["features"].removesuffix("]") + f"specAugment=[{masks}]\n]"
    found = check(corpus)[0]
    assert len(found) == len(faults)
    for one, expected in zip(found, faults):
        assert expected in one
