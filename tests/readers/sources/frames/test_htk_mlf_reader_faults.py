"""What costs one utterance, what ends the run, and what the message says."""

import os

import numpy as np
import pytest

from readers.errors import ArgonautError, ConfigError, FormatError, ShapeError
from readers.htk.parameter_file import FBANK, HAS_C, USER, write_htk
from readers.sources.frames.htk_mlf_reader import HTKMLFReader

METHODS = ["readMethod=blockRandomize", "readMethod=rollingWindow"]


def frames_seen(reader) -> set[int]:
    """Utterances that minibatches hold."""
    values = np.concatenate([m.matrices["features"][6] for m in reader.minibatches(0, 4)])
    return {int(value) // 1000 for value in values}


def remove_file(corpus):
    (corpus.directory / "features" / "u1.htk").unlink()


def truncate_file(corpus):
    path = corpus.directory / "features" / "u1.htk"
    path.write_bytes(path.read_bytes()[:-4])


def extend_range(corpus):
    corpus.edit("features.scp", "u1.htk[0,3]", "u1.htk[0,4]")


def make_one_frame(corpus):
    corpus.edit("features.scp", "u1.htk[0,3]", "u1.htk[0,0]")


def remove_labels(corpus):
    corpus.edit("labels.mlf", '"*/set/u1.lab"', '"*/set/other.lab"')


def empty_labels(corpus):
    remove_labels(corpus)
    corpus.edit("labels.mlf", "#!MLF!#\n", '#!MLF!#\n"*/u1.lab"\n.\n')


def shorten_features(corpus):
    corpus.edit("features.scp", "u1.htk[0,3]", "u1.htk[0,2]")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (remove_file, r"u1.htk: No such file or directory$"),
        (truncate_file, r"u1.htk: truncated"),
        (extend_range, r"features.scp:2: frames \[0,4\] of .*u1.htk, which has 4; expected a last frame of at most 3"),
        (make_one_frame, r"features.scp:2: 1 frame; expected at least 2"),
        (remove_labels, r"features.scp:2: no labels in .*labels.mlf; expected an entry 'set/u1'"),
        (empty_labels, r"features.scp:2: no labels in .*labels.mlf; expected an entry 'set/u1'"),
        (shorten_features, r"features.scp:2: 4 frames of labels in labels; expected 3, as in the features"),
    ],
)
def test_bad_utterance_is_skipped_with_its_reason(tiny, method, damage, reason):
    corpus = tiny((4, 4, 4))
    damage(corpus)
    reader = HTKMLFReader(corpus.config(method))
    assert [key for key, _ in reader.skipped] == ["set/u1"]
    with pytest.raises(ValueError, match=reason):
        raise ValueError(reader.skipped[0][1])
    assert reader.num_frames == 8
    assert frames_seen(reader) == {0, 2}


def test_long_utterance_is_skipped_by_block_randomization_alone(tiny):
    corpus = tiny((4, 9, 4))
    reader = HTKMLFReader(corpus.config("maxUtteranceFrames=8"))
    assert reader.skipped[0][1].endswith(
        "features.scp:2: 9 frames; expected at most 8; raise maxUtteranceFrames to use it"
    )
    assert HTKMLFReader(corpus.config("readMethod=rollingWindow")).options.max_utterance is None
    assert HTKMLFReader(corpus.config()).options.max_utterance == 65535


def test_streams_of_unequal_length_skip_the_utterance(tiny):
    corpus = tiny((4, 4, 4))
    corpus.add_features("plp", [4, 5, 4], 2)
    reader = HTKMLFReader(corpus.config())
    assert [(key, "frames 4 in features, 5 in plp" in why) for key, why in reader.skipped] == [("set/u1", True)]
    writer = HTKMLFReader(corpus.config(), write=True)
    assert [utterance.line for utterance in writer.utterances()] == [0, 2]


def test_key_in_the_first_label_set_but_not_in_the_second(tiny):
    corpus = tiny((4, 4, 4))
    corpus.add_labels("region", [4, 4, 4], 3)
    corpus.edit("region.mlf", '"*/set/u1.lab"', '"*/set/other.lab"')
    reader = HTKMLFReader(corpus.config())
    assert [(key, "region.mlf" in why) for key, why in reader.skipped] == [("set/u1", True)]
    assert frames_seen(reader) == {0, 2}


def test_rolling_window_skips_a_file_that_fails_while_it_is_copied(tiny):
    corpus = tiny((4, 4, 4))
    corpus.frames["features"][1][1, 2] = np.nan
    write_htk(corpus.directory / "features" / "u1.htk", corpus.frames["features"][1], USER)
    reader = HTKMLFReader(corpus.config(METHODS[1]))
    assert [(key, "frame 2 has a value that is infinite or NaN" in why) for key, why in reader.skipped] == [
        ("set/u1", True)
    ]
    assert frames_seen(reader) == {0, 2}
    for minibatch in reader.minibatches(0, 3):
        for value, number in zip(minibatch.matrices["features"][6], minibatch.classes["labels"]):
            u, t = divmod(int(value), 1000)
            assert number == corpus.labels["labels"][u][t]


@pytest.mark.parametrize("ahead", ["true", "false"])
def test_file_that_goes_bad_during_training_is_named(tiny, ahead):
    corpus = tiny((4, 4, 4))
    corpus.frames["features"][1][1, 2] = np.inf
    write_htk(corpus.directory / "features" / "u1.htk", corpus.frames["features"][1], USER)
    reader = HTKMLFReader(corpus.config(f"maxFramesInMemory=4\nreadAhead={ahead}"))
    with pytest.raises(FormatError, match=r"u1.htk: frame 2 has a value"):
        list(reader.minibatches(0, 4))
    reader = HTKMLFReader(corpus.config())
    os.truncate(corpus.directory / "features" / "u2.htk", 20)
    with pytest.raises(FormatError, match=r"u\d.htk: "):
        list(reader.minibatches(0, 4))


def test_too_many_bad_utterances_end_the_run(tiny):
    corpus = tiny((4, 4, 4, 4))
    for u in (0, 2, 3):
        (corpus.directory / "features" / f"u{u}.htk").unlink()
    expected = r"features.scp: 3 of 4 utterances cannot be used; expected at most 50%.*set/u0: .*u0.htk: No such file"
    for method in METHODS:
        with pytest.raises(FormatError, match=expected):
            HTKMLFReader(corpus.config(method))
    assert HTKMLFReader(corpus.config("maxSkippedFraction=0.75")).num_utterances == 1
    with pytest.raises(FormatError, match="expected at most 10%"):
        HTKMLFReader(corpus.config("maxSkippedFraction=0.1"))
    (corpus.directory / "features" / "u1.htk").unlink()
    with pytest.raises(FormatError, match="4 of 4 utterances"):
        HTKMLFReader(corpus.config("maxSkippedFraction=1"))
    with pytest.raises(FormatError, match=r"features.scp: none of 4 files can be read; first error: .*u0.htk"):
        HTKMLFReader(corpus.config(), write=True)


def test_half_of_the_utterances_may_be_bad(tiny):
    corpus = tiny((4, 4))
    remove_labels(corpus)
    assert HTKMLFReader(corpus.config()).num_utterances == 1


def wrong_dimension(corpus):
    write_htk(corpus.directory / "features" / "u1.htk", np.zeros((2, 4), np.float32), USER)


def wrong_kind(corpus):
    write_htk(corpus.directory / "features" / "u1.htk", np.zeros((3, 4), np.float32), FBANK)


def wrong_period(corpus):
    write_htk(corpus.directory / "features" / "u1.htk", np.zeros((3, 4), np.float32), USER, period=50000)


def unknown_state(corpus):
    corpus.write("labels.list", "labels_0\nlabels_1\nlabels_2\nother\n")
    corpus.write("labels.mlf", '#!MLF!#\n"*/set/u0.lab"\n0 400000 labels_0\n.\n"*/set/u1.lab"\n0 400000 labels_3\n.\n')


def gap_in_labels(corpus):
    corpus.write("labels.mlf", '#!MLF!#\n"*/set/u1.lab"\n0 100000 labels_0\n200000 400000 labels_1\n.\n')


def class_beyond_dim(corpus):
    corpus.blocks["labels"] = corpus.blocks["labels"].replace("labelDim=4", "labelDim=2")
    corpus.write("labels.mlf", '#!MLF!#\n"*/set/u1.lab"\n0 400000 labels_2\n.\n')


def twice_in_mlf(corpus):
    corpus.edit("labels.mlf", '"*/set/u2.lab"', '"*/set/u1.lab"')


def other_names(corpus):
    text = (corpus.directory / "labels.mlf").read_text()
    corpus.write("labels.mlf", text.replace('"*/set/', '"An4/'))


def empty_mlf(corpus):
    corpus.write("labels.mlf", "#!MLF!#\n")


def no_mlf_header(corpus):
    corpus.edit("labels.mlf", "#!MLF!#\n", "")


def unequal_scps(corpus):
    corpus.add_features("plp", [4, 4], 2)


def even_context(corpus):
    corpus.blocks["features"] = corpus.blocks["features"].replace("dim=15", "dim=12")


def no_multiple(corpus):
    corpus.blocks["features"] = corpus.blocks["features"].replace("dim=15", "dim=16")


def dim_with_window(corpus):
    corpus.blocks["features"] = corpus.blocks["features"].replace("dim=15", "dim=15\ncontextWindow=5")


def malformed_range(corpus):
    corpus.edit("features.scp", "u1.htk[0,3]", "u1.htk[3,0]")


def empty_scp(corpus):
    corpus.write("features.scp", "\n")


def missing_scp(corpus):
    (corpus.directory / "features.scp").unlink()


def missing_mlf(corpus):
    (corpus.directory / "labels.mlf").unlink()


def missing_list(corpus):
    (corpus.directory / "labels.list").unlink()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("damage", "kind", "message"),
    [
        (wrong_dimension, ShapeError, r"u1.htk: kind USER, 2 values, period 100000; expected .* 3 values.*u0.htk"),
        (wrong_kind, ShapeError, "u1.htk: kind FBANK, 3 values.*; expected kind USER"),
        (wrong_period, ShapeError, "u1.htk: kind USER, 3 values, period 50000; expected"),
        (unknown_state, FormatError, r"labels.mlf:5: state 'labels_3' \(label 1\) is not in the state list"),
        (gap_in_labels, FormatError, r"labels.mlf:2: label 'labels_1' begins at frame 2; expected frame 1"),
        (class_beyond_dim, FormatError, "labels.mlf:2: class 2; expected less than the 2 of labelDim in labels"),
        (twice_in_mlf, FormatError, r"labels.mlf:\d+: entry 'set/u1' is already at .*labels.mlf:\d+"),
        (
            other_names,
            FormatError,
            "labels.mlf: no labels for any of 3 .* such as 'set/u0', found names such as 'An4/u0'$",
        ),
        (empty_mlf, FormatError, "labels.mlf: no labels for any of 3 utterances; .* such as 'set/u0'$"),
        (no_mlf_header, FormatError, "labels.mlf:1: first line .*; expected #!MLF!#"),
        (unequal_scps, FormatError, "plp.scp: 2 entries; expected 3, as many as in .*features.scp"),
        (
            even_context,
            ShapeError,
            r"r.cntk:5: dim of features is 12, .* has 3 values per frame; expected 3 times an odd number",
        ),
        (
            no_multiple,
            ShapeError,
            r"r.cntk:5: dim of features is 16, .* has 3 values per frame; expected 3 times an odd number",
        ),
        (
            dim_with_window,
            ShapeError,
            "dim of features is 15, .* has 3 values per frame; expected the same, because contextWindow",
        ),
        (malformed_range, FormatError, r"features.scp:2: frames \[3,0\]; expected first <= last"),
        (empty_scp, FormatError, "features.scp: no entries"),
        (missing_scp, ConfigError, r"^r.cntk:4: reader.features.scpFile: .*features.scp: No such file"),
        (missing_mlf, ConfigError, r"^r.cntk:\d+: .*labels.mlf: No such file"),
        (missing_list, ConfigError, r"^r.cntk:\d+: reader.labels.labelMappingFile: .*labels.list: No such file"),
    ],
)
def test_fault_of_the_lists_ends_the_run(tiny, method, damage, kind, message):
    corpus = tiny((4, 4, 4))
    damage(corpus)
    with pytest.raises(kind, match=message) as caught:
        HTKMLFReader(corpus.config(method))
    assert "\n" not in str(caught.value)


def test_packed_files_may_stand_beside_plain_ones(tiny):
    corpus = tiny((4, 4, 4))
    write_htk(corpus.directory / "features" / "u1.htk", corpus.frames["features"][1], USER | HAS_C)
    assert HTKMLFReader(corpus.config()).num_frames == 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("readMethod=rolling", r"r.cntk:14: reader.readMethod is 'rolling'; expected blockRandomize or rollingWindow"),
        ("truncated=true", "reader.truncated is true; expected false in frameMode"),
        ("similarLengths=true", "reader.similarLengths is true; expected false in frameMode and with truncated"),
        ("frameMode=false;truncated=true;similarLengths=true", "similarLengths is true; expected false in frameMode"),
        ("frameMode=false;nbruttsineachrecurrentiter=4:0", "nbruttsineachrecurrentiter is 0; expected at least 1"),
        ("nbruttsineachrecurrentiter=1:4", "nbruttsineachrecurrentiter is 1:4; expected 1"),
        ("frameMode=false;lookAheadFrames=3", "lookAheadFrames is 3; expected truncated=true with it: whole"),
        ("frameMode=false;truncated=true;lookAheadFrames=-1", "lookAheadFrames is -1; expected at least 0 frames"),
        ("randomize=some", "randomize is 'some'; expected auto, none or a number of frames"),
        ("randomize=0", "randomize is '0'; expected auto"),
        ("minibatchMode=half", "minibatchMode is 'half'; expected partial or full"),
        ("maxFramesInMemory=0", "maxFramesInMemory is 0; expected at least 1"),
        ("maxSkippedFraction=2", "maxSkippedFraction is 2; expected 0 to 1"),
        (
            "randomize=8;maxFramesInMemory=10",
            r"maxFramesInMemory is 10; expected at least 12 for randomize=8",
        ),
        ("features=[scpFile=default]", "scpFile is set to default"),
        ("features=[dim=default]", "reader.features.dim is set to default"),
        ("features=[contextWindow=4]", "contextWindow is 4; expected an odd number or left:right"),
        ("features=[contextWindow=1:2:3]", "contextWindow is 1:2:3; expected"),
        ("features=[type=sparse]", "type is 'sparse'; expected real"),
        ("features=[expandToUtterance=true]", "features repeats one frame and is the first stream"),
        (
            "features=[expandToUtterance=true;contextWindow=3]",
            "is given beside contextWindow; expected",
        ),
        ("features=[framesPerVector=10]", "features repeats its frames and is the first stream"),
        (
            "features=[framesPerVector=10;contextWindow=3]",
            "is given beside contextWindow; expected",
        ),
        (
            "features=[framesPerVector=10;expandToUtterance=true]",
            "is given beside expandToUtterance; expected",
        ),
        ("features=[framesPerVector=0]", "framesPerVector is 0; expected at least 1"),
        ("labels=[labelType=regression]", "labelType is 'regression'; expected category"),
        ("labels=[labelDim=0]", "labelDim is 0; expected at least 1"),
        ("labels=[mlfFile=]", "reader.labels.mlfFile is empty; expected a file"),
        (
            "labels=[labelToTargetMappingFile=x]",
            "labels.targetDim is missing; expected it beside labelToTargetMappingFile",
        ),
        ("more=[mlfFlie=x]", "block reader.more has none of scpFile, mlfFile, mlfFileList.*did you mean mlfFile"),
    ],
)
def test_configuration_faults_are_found_before_any_data_is_read(tiny, options, message):
    with pytest.raises(ArgonautError, match=message):
        HTKMLFReader(tiny().config(after=options))


def test_one_stream_is_no_training_data(tiny):
    corpus = tiny()
    del corpus.blocks["labels"]
    with pytest.raises(ConfigError, match="reader has one stream, features; expected another"):
        HTKMLFReader(corpus.config())
    assert len(list(HTKMLFReader(corpus.config(), write=True).utterances())) == 5
    del corpus.blocks["features"]
    with pytest.raises(ConfigError, match="reader has no features"):
        HTKMLFReader(corpus.config(), write=True)


def test_names_that_mean_nothing_are_reported(tiny):
    corpus = tiny()
    corpus.blocks["features"] = corpus.blocks["features"].replace("dim=15", "dim=15\ncontextWindows=5")
    reader = HTKMLFReader(corpus.config("randomise=none\nverbosity=1"))
    assert reader.warnings == [
        "r.cntk:2: reader.randomise is not known here; did you mean randomize",
        "r.cntk:7: reader.features.contextWindows is not known here; did you mean contextWindow",
    ]


def test_expanded_stream_must_hold_one_frame(tiny):
    corpus = tiny((4, 4, 4))
    corpus.add_features("ivector", [1, 2, 1], 6, extra="expandToUtterance=true")
    reader = HTKMLFReader(corpus.config())
    assert [(key, "2 frames; expected 1, to be repeated" in why) for key, why in reader.skipped] == [("set/u1", True)]


def test_stream_of_blocks_must_hold_a_frame_for_each(tiny):
    corpus = tiny((4, 7, 9))
    corpus.add_features("ivector", [1, 2, 2], 6, extra="framesPerVector=4")
    reader = HTKMLFReader(corpus.config())
    message = "2 frames; expected 3, one for every 4 of 9 frames"
    assert [(key, message in why) for key, why in reader.skipped] == [("set/u2", True)]


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ("labels_0 00\nlabels_1 0\n", "targets:2: 'labels_1 0'; expected a label and 2 bits"),
        ("labels_0 00\nlabels_2 01\n", "targets:2: label 'labels_2'; expected 'labels_1'"),
        ("labels_0 00\nlabels_1 01\n", "targets: 2 labels; expected one for each of 4 classes"),
    ],
)
def test_target_mapping_faults(tiny, targets, message):
    corpus = tiny()
    path = corpus.write("targets", targets)
    corpus.blocks["more"] = f"labels=[labelToTargetMappingFile={path};targetDim=2]"
    with pytest.raises(FormatError, match=message):
        HTKMLFReader(corpus.config())


@pytest.mark.parametrize("num_names", [3, 5])
def test_a_state_list_of_another_length_than_labeldim_is_told(tiny, num_names):
    """The tool allows it, where no class is beyond labelDim; more often a list was cut short, or is another one's."""
    corpus = tiny()
    text = (corpus.directory / "labels.mlf").read_text()
    corpus.write("labels.mlf", text.replace("labels_3", "labels_0"))
    corpus.write("labels.list", "".join(f"labels_{state}\n" for state in range(num_names)))
    assert HTKMLFReader(corpus.config()).warnings == [
        f"r.cntk:10: labelDim of labels is 4; expected {num_names}, the number of names in its labelMappingFile"
    ]
