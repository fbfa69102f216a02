"""Manifests of lhotse."""

import gzip
import json

import pytest

from readers.corpora import import_corpus, read_corpus, write_corpus
from readers.errors import FormatError
from tests.readers.corpora.conftest import expected, rows, tone


def recording(identity, path, channels=(0,), **more):
    source = {"type": "file", "channels": list(channels), "source": str(path)}
    return {"id": identity, "sources": [source], "sampling_rate": 8000, "num_samples": 1, "duration": 1.0} | more


def supervision(identity, recording_id, start=0.0, duration=0.5, **more):
    return {"id": identity, "recording_id": recording_id, "start": start, "duration": duration, "channel": 0} | more


def lines(*items):
    return "".join(json.dumps(item) + "\n" for item in items)


def test_manifests_are_imported_and_read_back(lhotse, audio, tmp_path):
    corpus = import_corpus("lhotse", lhotse)
    assert rows(corpus) == expected(audio)
    write_corpus(corpus, tmp_path / "out")
    assert read_corpus(tmp_path / "out") == corpus


def test_one_pair_of_several(lhotse, audio):
    for kind in ("recordings", "supervisions"):
        (lhotse / f"{kind}.jsonl.gz").rename(lhotse / f"an4_{kind}_dev.jsonl.gz")
        (lhotse / f"an4_{kind}_test.jsonl").write_text("")
    with pytest.raises(FormatError, match=r"2 manifests of supervisions: an4_supervisions_dev.*name one of them"):
        import_corpus("lhotse", lhotse)
    assert rows(import_corpus("lhotse", lhotse / "an4_supervisions_dev.jsonl.gz")) == expected(audio)


def test_segments_channels_and_missing_fields(tmp_path):
    tone(tmp_path / "stereo.wav", 8000, channels=2)
    tone(tmp_path / "left.wav", 8000)
    tone(tmp_path / "right.wav", 8000)
    two = recording("two", "left.wav") | {
        "sources": [
            {"type": "file", "channels": [3], "source": "left.wav"},
            {"type": "file", "channels": [4], "source": "right.wav"},
        ]
    }
    (tmp_path / "recordings.jsonl").write_text(
        lines(recording("st", "stereo.wav", (0, 1)), two, recording("x", "l.wav"))
    )
    items = [
        supervision("a", "st", 0.25, 0.25, channel=1, speaker="ann", text="x y"),
        supervision("b", "st", 0, 1, channel=[0, 1]),
        supervision("c", "two", 0, 1, channel=4, text=""),
        supervision("d", "two", 0, 1, channel=[3, 4]),
    ]
    (tmp_path / "supervisions.jsonl").write_text(lines(*items))
    corpus = import_corpus("lhotse", tmp_path)
    found = [(one.speaker, one.words, one.audio.name, one.start, one.end, one.channel) for one in corpus.utterances]
    assert found == [
        ("ann", ("x", "y"), "stereo.wav", 0.25, 0.5, 1),
        ("st", None, "stereo.wav", 0.0, None, None),
        ("two", (), "right.wav", 0.0, None, None),
    ]
    several, unused = corpus.report.lost
    assert several[:2] == ("d", "failed")
    assert "supervisions.jsonl:4: channels in different files; expected channels of one file" in several[2]
    assert unused[:2] == ("x", "skipped")
    assert "recordings.jsonl:3: a recording without a supervision" in unused[2]


R, S = "recordings", "supervisions"
BROKEN = [
    (R, None, "recordings.jsonl.gz: missing; expected the recordings of supervisions.jsonl.gz"),
    (S, None, "supervisions.jsonl.gz; `lhotse cut decompose CUTS DIR` makes it from cuts"),
    (R, "{\n", "recordings.jsonl.gz:1: Expecting property name"),
    (R, "[]\n", "recordings.jsonl.gz:1: '[]'; expected a JSON object"),
    (R, "[" * 99999, "recordings.jsonl.gz:1: nested too deeply; expected a JSON object"),
    (R, lines({"id": 3}), "recordings.jsonl.gz:1: id 3; expected a text"),
    (R, lines(recording("a", "x"), recording("a", "y")), "recordings.jsonl.gz:2: id 'a' is already at"),
    (R, lines({"id": "a"}), "recordings.jsonl.gz:1: no list of sources; expected one of type file"),
    (R, lines({"id": "a", "sources": [3]}), "recordings.jsonl.gz:1: no list of sources"),
    (R, lines(recording("a", "x", transforms=[{"name": "Speed"}])), "gz:1: a recording with transforms"),
    (R, lines({"id": "a", "sources": [{"type": "command", "source": "rm -r x", "channels": [0]}]}),
     "recordings.jsonl.gz:1: a source of type 'command', which is not run; expected type file"),
    (R, lines({"id": "a", "sources": [{"type": "url", "source": "http://x", "channels": [0]}]}),
     "recordings.jsonl.gz:1: a source of type 'url', which is not downloaded"),
    (R, lines({"id": "a", "sources": [{"type": "memory", "source": "UklG", "channels": [0]}]}),
     "recordings.jsonl.gz:1: a source of type 'memory', which is not supported"),
    (R, lines({"id": "a", "sources": [{"type": "file", "source": "x", "channels": ["0"]}]}),
     "recordings.jsonl.gz:1: channels ['0']; expected a list of numbers"),
    (R, lines(recording("a", "x\0y")), "recordings.jsonl.gz:1: path 'x\\x00y'; expected an audio file"),
    (R, lines(recording("a", "")), "recordings.jsonl.gz:1: path ''; expected an audio file"),
    (S, lines(supervision("u", "nobody")), "supervisions.jsonl.gz:1: recording 'nobody' is not in"),
    (S, lines(supervision("u", "anna-1", "0")), "supervisions.jsonl.gz:1: start '0'; expected a number of seconds"),
    (S, lines(supervision("u", "anna-1", 10**400)), "supervisions.jsonl.gz:1: start 1000"),
    (S, lines(supervision("u", "anna-1", True)), "supervisions.jsonl.gz:1: start True; expected a number of seconds"),
    (S, lines(supervision("u", "anna-1", float("nan"))), "supervisions.jsonl.gz:1: start nan; expected a number"),
    (S, lines(supervision("u", "anna-1", channel=1)), "supervisions.jsonl.gz:1: channel 1; expected one of the"),
    (S, lines(supervision("u", "anna-1", channel=[])), "supervisions.jsonl.gz:1: channel []; expected one of the"),
    (S, lines(supervision("u", "anna-1", text=["a"])), "supervisions.jsonl.gz:1: text ['a']; expected a text"),
    (S, lines(supervision("u", "anna-1", speaker=3)), "supervisions.jsonl.gz:1: speaker 3; expected a text"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "content", "message"), BROKEN)
def test_broken_manifests(kind, content, message, lhotse):
    path = lhotse / f"{kind}.jsonl.gz"
    path.unlink()
    if content is not None:
        path.write_bytes(gzip.compress(content.encode()))
    with pytest.raises(FormatError) as fault:
        import_corpus("lhotse", lhotse)
    assert message in str(fault.value)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": 0.6}, "supervisions.jsonl.gz:1: from 0.6 to 1.1 s, but"),
        ({"start": -0.1}, "supervisions.jsonl.gz:1: from -0.1 to 0.4 s; expected times from 0"),
        ({"duration": 0}, "supervisions.jsonl.gz:1: from 0 to 0 s; expected times from 0, the start first"),
        ({"id": "\ud800"}, "supervisions.jsonl.gz:1: text that is not UTF-8"),
        ({"text": "\ud800"}, "supervisions.jsonl.gz:1: text that is not UTF-8"),
        ({"id": ""}, "supervisions.jsonl.gz:1: an empty name; expected a name of 1 to 200 bytes"),
        ({"id": "x" * 201}, "supervisions.jsonl.gz:1: a name of 201 bytes"),
        ({"speaker": " "}, "supervisions.jsonl.gz:1: speaker: an empty name"),
    ],
)
def test_supervisions_that_do_not_fit_are_reported(change, message, lhotse, tmp_path):
    good = supervision("u2", "anna-1")
    content = lines(supervision("u1", "anna-1") | change, good, supervision("3", "anna-2", 0, 0.3))
    (lhotse / "supervisions.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    corpus = import_corpus("lhotse", lhotse)
    assert [one.name for one in corpus.utterances] == ["3", "u2"]
    assert any(message in reason for _, _, reason in corpus.report.lost)
    corpus.report.write(tmp_path / "report")
    write_corpus(corpus, tmp_path / "out")


def test_control_characters_are_shown_by_their_codes(lhotse):
    item = supervision("u\n\x1b[2J", "anna-1", 7)
    (lhotse / "supervisions.jsonl.gz").write_text(lines(item, supervision("v", "anna-1", text="a\0b \x1bc")))
    corpus = import_corpus("lhotse", lhotse)
    assert corpus.report.lost[-1][0] == r"u\x0a\x1b[2J"
    assert corpus.utterances[0].words == ("a", "b", "c")


def test_a_name_twice_after_replacements(lhotse):
    (lhotse / "supervisions.jsonl.gz").write_text(lines(supervision("u.1", "anna-1"), supervision("u 1", "anna-1")))
    corpus = import_corpus("lhotse", lhotse)
    assert [one.name for one in corpus.utterances] == ["u_1"]
    assert "supervisions.jsonl.gz:2: the name 'u_1' is also that of" in corpus.report.lost[-1][2]


def test_other_files_are_no_manifests(lhotse):
    with pytest.raises(FormatError, match=r"recordings.jsonl.gz: expected a manifest of supervisions"):
        import_corpus("lhotse", lhotse / "recordings.jsonl.gz")
