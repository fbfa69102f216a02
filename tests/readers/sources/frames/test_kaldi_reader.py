"""KaldiReader gives, minibatch for minibatch, what HTKMLFReader gives of the same data; KaldiWriter, what it reads."""

import gzip

import kaldiio
import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ArgonautError, ConfigError, FormatError, ShapeError
from readers.kaldi.ark import scan_ark
from readers.minibatches.base import Utterance, open_reader, open_writer
from readers.sources.frames.htk_mlf_reader import HTKMLFReader
from readers.sources.frames.kaldi_reader import KaldiReader
from readers.writers.kaldi_writer import KaldiWriter

LENGTHS = (5, 2, 9, 4, 7)


def to_kaldi(corpus, shuffled: bool = True) -> None:
    """The files of a tiny corpus once more, as archives, other streams than the first in another order."""
    for index, (name, frames) in enumerate(corpus.frames.items()):
        values = {f"set/u{u}": matrix.T.copy() for u, matrix in enumerate(frames)}
        if index and shuffled:
            values = dict(reversed(values.items()))
        ark, scp = corpus.directory / f"{name}.ark", corpus.directory / f"{name}.kaldi"
        kaldiio.save_ark(str(ark), values, scp=str(scp))
    for name, labels in corpus.labels.items():
        vectors = {f"set/u{u}": np.array(one, np.int32) for u, one in reversed(list(enumerate(labels)))}
        ark = corpus.directory / f"{name}.ali"
        kaldiio.save_ark(str(ark), vectors, scp=str(corpus.directory / f"{name}.alis"))


@pytest.fixture
def corpus(tiny):
    made = tiny(LENGTHS)
    made.add_features("plp", list(LENGTHS), dim=2, width=1, extra="contextWindow=1:0")
    made.add_labels("region", list(LENGTHS), 3)
    to_kaldi(made)
    return made


def blocks(directory, changes: dict[str, str] | None = None) -> str:
    made = {
        "features": f"dim=15;scpFile={directory}/features.kaldi",
        "plp": f"dim=2;contextWindow=1:0;arkFile={directory}/plp.ark",
        "labels": f"labelDim=4;aliFile={directory}/labels.ali",
        "region": f"labelDim=3;aliScpFile={directory}/region.alis",
    }
    return "\n".join(f"{name}=[{text}]" for name, text in (made | (changes or {})).items() if text)


def config(directory, options: str = "", changes: dict[str, str] | None = None) -> Config:
    text = f"reader=[\nreaderType=KaldiReader\n{options}\n{blocks(directory, changes)}\n]"
    return Config.from_text(text, "k.cntk").block("reader")


@pytest.mark.parametrize("options", ["", "randomize=none", "randomize=8", "maxFramesInMemory=9",
                                     "readMethod=rollingWindow", "frameMode=false;nbruttsineachrecurrentiter=2",
                                     "frameMode=false;truncated=true"])  # fmt: skip
def test_the_same_minibatches_as_from_htk_files(corpus, options):
    ours, theirs = open_reader(config(corpus.directory, options), 5), HTKMLFReader(corpus.config(options), 5)
    assert isinstance(ours, KaldiReader)
    assert (ours.dims(), ours.num_frames, ours.warnings) == (theirs.dims(), theirs.num_frames, [])
    for one, other in zip(ours.minibatches(1, 8, 40), theirs.minibatches(1, 8, 40), strict=True):
        for name, matrix in other.matrices.items():
            np.testing.assert_array_equal(one.matrices[name], matrix)
        for name, classes in other.classes.items():
            np.testing.assert_array_equal(one.classes[name], classes)
    ours.close()


@pytest.mark.parametrize("kind", ["aliFile={}/labels.txt", "mlfFile={}/labels.mlf"])
def test_a_state_list_of_another_length_than_labeldim_is_told(corpus, kind):
    directory = corpus.directory
    lines = [f"set/u{u} {' '.join(f'labels_{k}' for k in one)}\n" for u, one in enumerate(corpus.labels["labels"])]
    (directory / "labels.txt").write_text("".join(lines))
    labels = f"labelDim=5;labelMappingFile={directory}/labels.list;" + kind.format(directory)
    (warning,) = KaldiReader(config(directory, "", {"labels": labels})).warnings
    assert "labelDim of labels is 5; expected 4, the number of names in its labelMappingFile" in warning


def test_labels_of_every_kind(corpus):
    directory = corpus.directory
    expected = HTKMLFReader(corpus.config("randomize=none"))
    lines = [f"set/u{u} {' '.join(map(str, one))}\n" for u, one in enumerate(corpus.labels["labels"])]
    (directory / "one.txt").write_text("".join(lines[:2]))
    (directory / "two.gz").write_bytes(gzip.compress("".join(lines[2:]).encode()))
    named = [f"set/u{u} {' '.join(f'labels_{k}' for k in one)}\n" for u, one in enumerate(corpus.labels["labels"])]
    (directory / "names.txt").write_text("".join(named))
    for text in (
        f"labelDim=4;aliFile={directory}/one.txt:{directory}/two.gz",
        f"labelDim=4;aliFile={directory}/names.txt;labelMappingFile={directory}/labels.list",
        f"labelDim=4;mlfFile={directory}/labels.mlf;labelMappingFile={directory}/labels.list",
    ):
        reader = KaldiReader(config(directory, "randomize=none", {"labels": text}))
        for one, other in zip(reader.minibatches(0, 8), expected.minibatches(0, 8), strict=True):
            np.testing.assert_array_equal(one.matrices["labels"], other.matrices["labels"])


def test_ranges_in_a_list(corpus):
    lines = (corpus.directory / "features.kaldi").read_text().splitlines()
    (corpus.directory / "part.kaldi").write_text(f"x {lines[2].split()[1]}[3:6]\ny {lines[0].split()[1]}[0:1]\n")
    (corpus.directory / "part.txt").write_text("x 0 1 2 3\ny 1 1\n")
    changes = {"features": f"dim=3;contextWindow=0:1;scpFile={corpus.directory}/part.kaldi", "plp": "", "region": "",
               "labels": f"labelDim=4;aliFile={corpus.directory}/part.txt"}  # fmt: skip
    minibatch = next(KaldiReader(config(corpus.directory, "randomize=none", changes)).minibatches())
    assert minibatch.matrices["features"][0].tolist() == [2003, 2004, 2005, 2006, 0, 1]
    assert minibatch.matrices["features"][3].tolist() == [2004, 2005, 2006, 2006, 1, 1]


def test_prefix_of_the_paths_in_a_list(corpus):
    text = (corpus.directory / "features.kaldi").read_text()
    (corpus.directory / "features.kaldi").write_text(text.replace(f"{corpus.directory}/", ""))
    prefixed = f"dim=15;scpFile={corpus.directory}/features.kaldi;prefixPathInSCP={corpus.directory}/"
    assert KaldiReader(config(corpus.directory, "", {"features": prefixed})).num_utterances == len(LENGTHS)


def test_missing_and_odd_utterances_are_skipped_by_name(corpus):
    directory = corpus.directory
    kaldiio.save_ark(
        f"{directory}/plp.ark", {f"set/u{u}": corpus.frames["plp"][u].T[: 9 if u != 3 else 2] for u in (0, 2, 3, 4)}
    )
    (directory / "labels.txt").write_text("".join(f"set/u{u} {'1 ' * LENGTHS[u]}\n" for u in (0, 1, 2, 3)))
    reader = KaldiReader(
        config(directory, "maxSkippedFraction=0.9", {"labels": f"labelDim=4;aliFile={directory}/labels.txt"})
    )
    assert reader.num_utterances == 2
    reasons = dict(reader.skipped)
    assert list(reasons) == ["set/u1", "set/u3", "set/u4"]
    assert "plp.ark: no features of set/u1; expected an entry with that key" in reasons["set/u1"]
    assert "frames 4 in features, 2 in plp; expected the same" in reasons["set/u3"]
    assert "no labels in" in reasons["set/u4"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": "labelDim=2;aliFile=DIR/labels.ali"}, r"set/u\d: classes \d to 3; expected 0 to 1, .*ali-to-pdf"),
        ({"labels": "labelDim=4;aliFile=DIR/nix"}, r"k.cntk:6: .*nix: No such file.*; expected alignments"),
        ({"features": "dim=15;scpFile=DIR/nix"}, r"k.cntk:4: reader.features.scpFile: .*nix: No such file"),
        ({"features": "dim=16;scpFile=DIR/features.kaldi"}, r"k.cntk:4: dim of features is 16, but "
                                                             r".*features.ark:7 has 3 values per frame; expected 3 "),
        ({"plp": "dim=2;arkFile="}, r"reader.plp.scpFile is empty; expected it or arkFile"),
        ({"labels": "labelDim=4"}, r"block reader.labels has none of scpFile, arkFile, aliFile, aliScpFile, mlfFile"),
        ({"labels": "labelDim=4;aliFile=DIR/other.txt"}, r"other.txt: no labels for any of 5 utterances; .*'set/u0'"),
        ({"plp": "dim=3;arkFile=DIR/mixed.ark"}, r"mixed.ark:\d+: kind USER, 2 values.*; expected kind USER, 3 values"),
    ],
)  # fmt: skip
def test_faults_are_one_line(corpus, changes, message):
    (corpus.directory / "other.txt").write_text("nobody 1 2\n")
    frames = corpus.frames["plp"]
    mixed = {f"set/u{u}": np.ones((LENGTHS[u], 3 - (u == 2)), np.float32) for u in range(len(frames))}
    kaldiio.save_ark(f"{corpus.directory}/mixed.ark", mixed)
    changes = {name: text.replace("DIR", str(corpus.directory)) for name, text in changes.items()}
    with pytest.raises(ArgonautError, match=message) as caught:
        KaldiReader(config(corpus.directory, "", changes))
    assert "\n" not in str(caught.value)


def writer_config(directory, text: str) -> Config:
    return Config.from_text(f"writer=[\nwriterType=KaldiWriter\n{text}\n]", "w.cntk").block("writer")


@pytest.mark.parametrize("form", ["binary", "text"])
def test_what_is_read_is_written(corpus, tmp_path, form):
    reader = open_reader(config(corpus.directory), write=True)
    text = f"out=[arkFile={tmp_path}/new/out.ark;scpFile={tmp_path}/new/out.scp;format={form};dim=15]"
    with open_writer(writer_config(tmp_path, text)) as writer:
        assert isinstance(writer, KaldiWriter)
        writer.check({"out": 15}, reader.num_utterances)
        for utterance in reader.utterances():
            assert writer.write(utterance, {"out": utterance.matrices["features"].astype(np.float64)}) == {}
        assert not list((tmp_path / "new").glob("out.*"))
    written = kaldiio.load_scp(f"{tmp_path}/new/out.scp")
    assert list(written) == [f"set/u{u}" for u in range(len(LENGTHS))]
    for utterance in reader.utterances():
        np.testing.assert_allclose(written[utterance.key], utterance.matrices["features"].T, rtol=1e-6)


def test_abandoned_archives_go_away_and_old_ones_stay(tmp_path):
    (tmp_path / "out.ark").write_text("old")
    writer = KaldiWriter(writer_config(tmp_path, f"out=[arkFile={tmp_path}/out.ark]"))

    def fail() -> None:
        with writer:
            assert writer.write(Utterance("u", {}, 0), {"out": np.array([[1, np.nan]])}) == {"out": 1}
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["out.ark"]
    assert (tmp_path / "out.ark").read_text() == "old"


def test_faults_of_the_writer(tmp_path):
    text = f"out=[arkFile={tmp_path}/out.ark;dim=2]"
    with KaldiWriter(writer_config(tmp_path, text + "\nmode=2")) as writer:
        assert writer.warnings == ["w.cntk:4: writer.mode is not known here"]
        with pytest.raises(ShapeError, match=r"w.cntk:3: node out has 3 rows; expected its dim, 2"):
            writer.check({"out": 3}, 1)
        with pytest.raises(ConfigError, match=r"node out is not among the outputs; expected one of h"):
            writer.check({"h": 3}, 1)
        writer.write(Utterance("u", {}, 0), {"out": np.zeros((2, 3))})
        with pytest.raises(FormatError, match="key 'u' is repeated"):
            writer.write(Utterance("u", {}, 1), {"out": np.zeros((2, 3))})
        with pytest.raises(FormatError, match="key 'a b'; expected a key without blanks"):
            writer.write(Utterance("a b", {}, 1), {"out": np.zeros((2, 3))})
    assert [entry.key for entry in scan_ark(tmp_path / "out.ark")] == ["u"]
    for text, message in (
        ("dim=2", "writer has no outputs"),
        ("out=[dim=2]", "writer.out.arkFile is not set"),
        ("a=[arkFile=DIR/x]\nb=[arkFile=DIR/y;scpFile=DIR/x]", "x is used twice"),
        ("a=[arkFile=DIR/x;format=csv]", "format is 'csv'; expected binary or text"),
    ):
        with pytest.raises(ConfigError, match=message):
            KaldiWriter(writer_config(tmp_path, text.replace("DIR", str(tmp_path))))
