"""Kaldi2Reader gives what KaldiReader gives of the same archives, which it names in CNTK's way."""

import struct

import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ArgonautError, FormatError
from readers.kaldi.alignments import read_alignments
from readers.kaldi.specifiers import parse_specifier
from readers.minibatches.base import Utterance, open_reader, open_writer
from readers.sources.frames.kaldi2_reader import Kaldi2Reader
from tests.readers.sources.frames.test_kaldi_reader import LENGTHS, config, to_kaldi


@pytest.fixture
def corpus(tiny):
    made = tiny(LENGTHS)
    to_kaldi(made)
    directory = made.directory
    (directory / "counts").write_text("".join(f"set/u{u} {count}\n" for u, count in enumerate(LENGTHS)))
    (directory / "feats").write_text(f"scp:{directory}/features.kaldi\n")
    (directory / "ali").write_text(f"ark,s,cs:{directory}/labels.ali\n")
    return made


def reader(directory, options: str = "", features: str = "", labels: str = "") -> Config:
    text = f"""
reader=[
  readerType=Kaldi2Reader
  verbosity=0
  {options}
  features=[dim=15; type=Real; scpFile={directory}/counts; rx={directory}/feats; {features}]
  labels=[labelDim=4; mlfFile={directory}/ali; {labels}]
]"""
    return Config.from_text(text, "k.cntk").block("reader")


def theirs(directory, options: str = "") -> Config:
    labels = f"labelDim=4;aliFile={directory}/labels.ali"
    return config(directory, options, {"plp": "", "region": "", "labels": labels})


def same(one, other) -> None:
    assert (one.dims(), one.num_frames) == (other.dims(), other.num_frames)
    for ours, expected in zip(one.minibatches(0, 8), other.minibatches(0, 8), strict=True):
        for name, matrix in expected.matrices.items():
            np.testing.assert_array_equal(ours.matrices[name], matrix)


@pytest.mark.parametrize(
    "options", ["", "miniBatchMode=Partial; randomize=none; precision=float", "frameMode=false; Truncated=true"]
)
def test_the_minibatches_of_kaldi_reader(corpus, options):
    with open_reader(reader(corpus.directory, options)) as ours:
        assert isinstance(ours, Kaldi2Reader)
        assert ours.warnings == []
        same(ours, open_reader(theirs(corpus.directory, options)))


def test_only_the_listed_utterances_are_used_in_their_order(corpus):
    (corpus.directory / "counts").write_text("set/u3 4\n\nset/u0 5\nset/u9 1\n")
    with open_reader(reader(corpus.directory)) as ours:
        assert ours.num_frames == LENGTHS[3] + LENGTHS[0]
        ((name, reason),) = ours.skipped
        assert name == "set/u9"
        assert "features.kaldi: no features of set/u9; expected an entry with that key" in reason
    with open_reader(reader(corpus.directory), write=True) as ours:
        assert [utterance.key for utterance in ours.utterances()] == ["set/u3", "set/u0"]


def posterior_bytes(key: str, frames: list[list[tuple[int, float]]]) -> bytes:
    """An utterance of ali-to-post in binary, as Kaldi's WritePosterior writes it."""
    parts = [f"{key} ".encode(), b"\0B", struct.pack("<bi", 4, len(frames))]
    for frame in frames:
        parts.append(struct.pack("<bi", 4, len(frame)))
        parts += [struct.pack("<bibf", 4, number, 4, weight) for number, weight in frame]
    return b"".join(parts)


@pytest.mark.parametrize("text", [False, True])
def test_posteriors_of_one_class_are_alignments(corpus, text):
    raw = b""
    for u, labels in enumerate(corpus.labels["labels"]):
        if text:
            raw += f"set/u{u} {' '.join(f'[ {label} 1 ]' for label in labels)} \n".encode()
        else:
            raw += posterior_bytes(f"set/u{u}", [[(int(label), 1.0)] for label in labels])
    (corpus.directory / "post.ark").write_bytes(raw)
    (corpus.directory / "ali").write_text(f"ark:{corpus.directory}/post.ark")
    with open_reader(reader(corpus.directory)) as ours:
        same(ours, open_reader(theirs(corpus.directory)))


@pytest.mark.parametrize(
    "raw",
    [
        posterior_bytes("u", [[(3, 1.0)], [(1, 0.5), (2, 0.5)]]),
        posterior_bytes("u", [[(3, 0.25)]]),
        posterior_bytes("u", [[(3, 1.0)], [(3, 1.0)]])[:-1],
        b"u [ 3 1 ] [ 1 0.5 2 0.5 ]\n",
        b"u [ 3 1 ] [ 1\n",
    ],
)
def test_other_posteriors_are_refused(tmp_path, raw):
    (tmp_path / "p").write_bytes(raw)
    with pytest.raises(FormatError, match=r"posteriors of several classes; expected one class of weight 1 per frame"):
        list(read_alignments(tmp_path / "p"))


def test_classes_are_the_lines_of_the_pdf_ids_and_may_come_late(corpus):
    (corpus.directory / "pdfs").write_text("2\n0\n3\n1\n")
    mapping = f"labelMappingFile={corpus.directory}/pdfs"
    line = {2: 0, 0: 1, 3: 2, 1: 3}
    with open_reader(reader(corpus.directory, "randomize=none; targets_delay=2", labels=mapping)) as ours:
        found = np.concatenate([one.classes["labels"] for one in ours.minibatches(0, 100)])
    expected: list[int] = []
    for labels in corpus.labels["labels"]:
        mapped = [line[int(label)] for label in labels]
        expected += [mapped[max(0, t - 2)] for t in range(len(mapped))]
    assert found.tolist() == expected


def test_the_limit_of_utterances_counts_outside_of_frame_mode(corpus):
    with open_reader(reader(corpus.directory, "maxUtteranceLength=4")) as ours:
        assert ours.skipped == []
    with open_reader(reader(corpus.directory, "frameMode=false; maxUtteranceLength=7")) as ours:
        assert [name for name, _ in ours.skipped] == ["set/u2"]


@pytest.mark.parametrize(
    ("options", "features", "labels", "message"),
    [
        ("seqTrainCriterion=smbr", "", "", "reader.seqTrainCriterion needs Kaldi's lattices and transition model;"),
        ("denlats=[rx=a]", "", "", "reader.denlats needs Kaldi's lattices"),
        ("", "featureTransform=nnet", "", "featureTransform is 'nnet'; expected NO_FEATURE_TRANSFORM"),
        ("", "rx=none", "", "reader.features.rx: none: No such file"),
        ("", "rx=", "", "reader.features.rx is missing; expected a file, beside scpFile"),
        ("", "rx=$x$/counts", "", "counts: 'set/u0 5.nset/u1 2.*; expected ark:FILE or scp:FILE"),
        ("targets_delay=-1", "", "", "targets_delay is -1; expected at least 0 frames"),
        ("", "scpFile=$x$/twice", "", "twice: 'a' is repeated; expected each utterance once"),
        (
            "",
            "",
            "mlfFile=$x$/command",
            "command: 'ark:ali-to-pdf a b .' is a command, which is not run; expected",
        ),
    ],
)
def test_faults_are_one_line(corpus, options, features, labels, message):
    directory = corpus.directory
    (directory / "twice").write_text("a 1\nb 1\na 2\n")
    (directory / "command").write_text("ark:ali-to-pdf a b |")
    with pytest.raises(ArgonautError, match=message) as fault:
        open_reader(reader(directory, f"x={directory}\n{options}", features, labels))
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ark:a.ark", (("ark",), ("a.ark",), False)),
        (" scp,p:b c.scp\n", (("scp",), ("b c.scp",), False)),
        ("t,ark:C:/x", (("ark",), ("C:/x",), True)),
        ("scp,ark:x.scp,x.ark", (("scp", "ark"), ("x.scp", "x.ark"), False)),
    ],
)
def test_specifiers(text, expected):
    assert parse_specifier(text, "f", 2) == expected


@pytest.mark.parametrize(
    "text",
    ["", "a.ark", "ark:", "ark,x:a", "ark:-", "arc:a", "ark,scp:a", "ark,scp:a,", "ark:| gzip", "scp,scp,ark:a,b,c"],
)
def test_other_specifiers_are_refused(text):
    with pytest.raises(FormatError, match=r"^f: .*; expected ark:FILE"):
        parse_specifier(text, "f", 2)


def writer(text: str) -> Config:
    return Config.from_text(f"writer=[\nwriterType=Kaldi2Reader\nrandomize=Auto\n{text}\n]", "w").block("writer")


def test_the_writer_has_the_names_of_cntk(tmp_path):
    block = writer(f'S=[dim=2; Kaldicmd="ark,t,scp:{tmp_path}/s.ark,{tmp_path}/s.scp"; scpFile=counts]')
    with open_writer(block) as made:
        assert made.warnings == []
        made.check({"S": 2}, 1)
        made.write(Utterance("u", {}, 0), {"S": np.ones((2, 1), np.float32)})
    assert (tmp_path / "s.ark").read_text().split() == ["u", "[", "1.0", "1.0", "]"]
    assert (tmp_path / "s.scp").read_text() == f"u {tmp_path}/s.ark:2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S=[dim=2]", "S has no Kaldicmd; expected Kaldicmd=ark:FILE"),
        ('S=[Kaldicmd="ark,scp:-,a"]', "S.Kaldicmd: 'ark,scp:-,a'; expected ark:FILE"),
        ('S=[Kaldicmd="scp:-"]', "S.Kaldicmd: 'scp:-'; expected ark:FILE"),
        ('S=[Kaldicmd="ark:-"]; T=[Kaldicmd="ark,t:-"]', "- is used twice; expected one file for each output"),
        ('S=[Kaldicmd="scp:a"]', "S.Kaldicmd: 'scp:a'; expected ark:FILE, or ark,scp:FILE,FILE"),
        ('S=[Kaldicmd="ark:| gzip -c > a"]', "is a command, which is not run"),
    ],
)
def test_faults_of_the_writer(text, message):
    with pytest.raises(ArgonautError, match=message):
        open_writer(writer(text))
