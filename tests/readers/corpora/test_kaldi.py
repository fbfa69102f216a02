"""Kaldi data directories."""

import gzip

import pytest

from readers.corpora import import_corpus, read_corpus, write_corpus
from readers.errors import FormatError
from tests.readers.corpora.conftest import UTTERANCES, expected, rows, tone


def test_a_directory_is_imported_and_read_back(kaldi, audio, tmp_path):
    corpus = import_corpus("kaldi", kaldi)
    assert rows(corpus) == expected(audio)
    write_corpus(corpus, tmp_path / "out")
    assert read_corpus(tmp_path / "out") == corpus


def test_tables_may_be_gzip_and_speakers_may_come_from_spk2utt(kaldi, audio):
    text = (kaldi / "text").read_bytes()
    (kaldi / "text").unlink()
    (kaldi / "text.gz").write_bytes(gzip.compress(text))
    (kaldi / "utt2spk").unlink()
    (kaldi / "spk2utt").write_text("anna anna-1 anna-2\nbob bob-1\n")
    assert rows(import_corpus("kaldi", kaldi)) == expected(audio)


def test_segments_channels_and_ends(tmp_path):
    tone(tmp_path / "wav/stereo.wav", 16000, channels=2)
    tone(tmp_path / "wav/mono.wav", 8000)
    (tmp_path / "wav.scp").write_text("m wav/mono.wav\ns wav/stereo.wav\n")
    (tmp_path / "segments").write_text("m-1 m 0 1.2\nm-2 m 0.25 0.75 0\ns-1 s 0.5 -1\ns-2 s 0 1 0\n")
    (tmp_path / "utt2spk").write_text("m-1 a\nm-2 a\ns-1 b\ns-2 b\n")
    (tmp_path / "text").write_text("m-1 X, Y\nm-2\n")
    (tmp_path / "reco2file_and_channel").write_text("m m B\ns s B\n")
    corpus = import_corpus("kaldi", tmp_path)
    assert [(one.name, one.words, one.start, one.end, one.channel) for one in corpus.utterances] == [
        ("m-1", ("X,", "Y"), 0.0, None, None),
        ("m-2", (), 0.25, 0.75, None),
        ("s-1", None, 0.5, None, 1),
        ("s-2", None, 0.0, 1.0, 0),
    ]
    write_corpus(corpus, tmp_path / "out")
    assert read_corpus(tmp_path / "out") == corpus


def test_relative_paths_begin_at_the_directory_or_at_the_current_one(kaldi, audio, tmp_path, monkeypatch):
    (kaldi / "wav.scp").write_text("anna-1 ../audio/anna/anna-1.wav\nbob-1 audio/bob/bob-1.wav\n")
    monkeypatch.chdir(tmp_path)
    assert [one.audio for one in import_corpus("kaldi", "data").utterances] == [row[3] for row in expected(audio)[::2]]


def archive(path, audio, names=UTTERANCES):
    """Write a Kaldi archive of WAV files; return the offset of each."""
    content, offsets = b"", {}
    for name in names:
        content += f"{name} ".encode()
        offsets[name] = len(content)
        content += (audio / UTTERANCES[name][0] / f"{name}.wav").read_bytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return offsets


def test_audio_in_archives_is_stored(kaldi, audio, tmp_path):
    offsets = archive(tmp_path / "wav.ark", audio)
    (kaldi / "wav.scp").write_text("".join(f"{name} ../wav.ark:{offset}\n" for name, offset in offsets.items()))
    corpus = import_corpus("kaldi", kaldi, store=tmp_path / "stored")
    assert rows(corpus) == [(*row[:3], tmp_path / f"stored/{row[0]}.wav") for row in expected(audio)]
    for one, row in zip(corpus.utterances, expected(audio)):
        assert one.audio.read_bytes() == row[3].read_bytes()
    assert "audio in an archive; expected audio files" in import_corpus("kaldi", kaldi).report.lost[0][2]


@pytest.mark.parametrize("name", ["wav.ark", "wav.ark.gz"])
def test_an_archive_without_a_script(name, kaldi, audio, tmp_path):
    archive(kaldi / name, audio)
    (kaldi / "wav.scp").unlink()
    corpus = import_corpus("kaldi", kaldi, store=tmp_path / "stored")
    assert [one[:3] for one in rows(corpus)] == [one[:3] for one in expected(audio)]


def test_broken_archives(kaldi, audio, tmp_path):
    offsets = archive(tmp_path / "wav.ark", audio)
    wrong = {"anna-1": 0, "anna-2": offsets["anna-2"], "bob-1": 10**9}
    (kaldi / "wav.scp").write_text("".join(f"{name} ../wav.ark:{offset}\n" for name, offset in wrong.items()))
    (tmp_path / "wav.ark").write_bytes((tmp_path / "wav.ark").read_bytes()[: offsets["anna-2"] + 100])
    corpus = import_corpus("kaldi", kaldi, store=tmp_path / "stored")
    messages = [reason for _, _, reason in corpus.report.lost]
    assert not corpus.utterances
    assert f"{tmp_path}/wav.ark:0: found b'anna-1 RIFFd'; expected a WAV file with its length" in messages
    assert (
        f"{tmp_path}/wav.ark:{offsets['anna-2']}: 100 bytes of a WAV file; expected 4844; the archive is truncated"
        in (messages)
    )
    assert f"{tmp_path}/wav.ark:1000000000: found b''; expected a WAV file with its length" in messages
    (kaldi / "wav.scp").unlink()
    archive(kaldi / "wav.ark.gz", audio)
    content = (kaldi / "wav.ark.gz").read_bytes()
    for damaged, message in (
        (content[:-200], "wav.ark.gz: damaged gzip data"),
        (content[:40] + b"x" + content[41:], "wav.ark.gz"),
        (gzip.compress(gzip.decompress(content) * 2), "wav.ark.gz: key 'anna-1' is repeated; expected each key once"),
    ):
        (kaldi / "wav.ark.gz").write_bytes(damaged)
        with pytest.raises(FormatError, match=message):
            import_corpus("kaldi", kaldi, store=tmp_path / "stored")


BROKEN = [
    ("wav.scp", None, "wav.scp: missing; expected a Kaldi data directory"),
    ("wav.scp", "", "wav.scp: empty; expected a Kaldi data directory"),
    ("wav.scp", "b x.wav\na y.wav\n", "wav.scp:2: 'a' after 'b'; expected the keys in order; sort the file with"),
    ("wav.scp", "a x.wav\na y.wav\n", "wav.scp:2: 'a' is already at"),
    ("wav.scp", "a\n", "wav.scp:1: path ''; expected an audio file"),
    ("wav.scp", "a x\x07.wav\n", "wav.scp:1: path 'x\\x07.wav'; expected an audio file"),
    ("wav.scp", "a flac -cds /x/a.flac |\n", "a command, which is not run; expected an audio file; name"),
    ("wav.scp", "a sox /x/a.wav -t wav - speed 0.9 |\n", "expected an audio file; store its output in a file"),
    ("wav.scp", "a sox -m /x/a.wav /x/b.wav -t wav - |\n", "expected an audio file; store its output in a file"),
    ("wav.scp", "a cat b |\n", "expected an audio file; store its output in a file and name that"),
    ("wav.scp", "a x.wav\n\n", "wav.scp:2: an empty line; expected a key on each line"),
    ("wav.scp", b"a \xff.wav\n", "wav.scp:1: byte 0xff is not UTF-8"),
    ("wav.scp", b"a \0.wav\n", "wav.scp:1: byte 0x00 is not text"),
    ("segments", "u1 anna-1 0\n", "segments:1: 'anna-1 0'; expected `utterance recording start end`"),
    ("segments", "u1 anna-1 0 x\n", "segments:1: 'anna-1 0 x'; expected `utterance recording start end`"),
    ("segments", "u1 anna-1 0 1 A\n", "segments:1: 'anna-1 0 1 A'; expected `utterance recording start end`"),
    ("segments", "u1 carol 0 1\n", "segments:1: recording 'carol' is not in wav.scp"),
    ("segments", "u1 anna-1 0.3 0.2\n", "segments:1: from 0.3 to 0.2 s; expected times from 0, the start first"),
    ("segments", "u1 anna-1 -1 0.2\n", "segments:1: from -1 to 0.2 s; expected times from 0, the start first"),
    ("segments", "u1 anna-1 0 0.2\n", "segments:1: 'u1' is not in utt2spk; expected its speaker there"),
    ("utt2spk", None, "utt2spk: missing; expected the speaker of each utterance"),
    ("utt2spk", "anna-1 a b\n", "utt2spk:1: speaker 'a b'; expected `utterance speaker`"),
    ("utt2spk", "anna-2 a\nanna-1 a\n", "utt2spk:2: 'anna-1' after 'anna-2'; expected the keys in order"),
    ("utt2spk", "anna-1 a\nanna-1 b\n", "utt2spk:2: 'anna-1' is already at"),
    ("spk2utt", "anna anna-1 bob-1\nbob anna-2\n", "utt2spk:2: 'anna-2' is of speaker 'anna', but not in"),
    ("spk2utt", "anna anna-1 anna-2\nbob bob-1 anna-2\n", "spk2utt:2: 'anna-2' is already at"),
    ("spk2utt", "anna anna-1 anna-2 anna-3\nbob bob-1\n", "spk2utt:1: 'anna-3' is not in utt2spk"),
    ("text", "bob-1 x\nanna-1 y\n", "text:2: 'anna-1' after 'bob-1'; expected the keys in order"),
    ("reco2file_and_channel", "anna-1 f C\n", "reco2file_and_channel:1: 'f C'; expected `recording file channel`"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), BROKEN)
def test_broken_tables(name, content, message, kaldi):
    if content is None:
        (kaldi / name).unlink()
    else:
        (kaldi / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FormatError) as fault:
        import_corpus("kaldi", kaldi)
    assert message in str(fault.value)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ("u1 anna-1 0.6 0.7\n", "segments:1: from 0.6 to 0.7 s, but {audio}/anna/anna-1.wav has 0.5 s"),
        ("u1 anna-1 0 1.1\n", "segments:1: from 0 to 1.1 s, but {audio}/anna/anna-1.wav has 0.5 s"),
        ("u1 anna-1 0.1 0.100001\n", "segments:1: from 0.1 to 0.100001 s; expected at least one sample"),
        ("u1 anna-1 0 0.4 1\n", "segments:1: channel 1 of {audio}/anna/anna-1.wav, which has 1; expected 0 to 0"),
    ],
)
def test_segments_outside_of_their_recordings_are_reported(segments, message, kaldi, audio):
    (kaldi / "segments").write_text(segments + "u2 anna-1 0 0.5\n")
    (kaldi / "utt2spk").write_text("u1 a\nu2 a\n")
    (kaldi / "text").write_text("u2 x\nu3 y\n")
    corpus = import_corpus("kaldi", kaldi)
    assert rows(corpus) == [("u2", "a", ("x",), audio / "anna/anna-1.wav")]
    skipped, failed = sorted(corpus.report.lost, key=lambda item: item[1] == "failed")
    assert message.format(audio=audio) in failed[2]
    assert skipped[0] == "u3"
    assert "text:2: a transcript without audio" in skipped[2]


def test_a_file_is_no_directory(kaldi):
    with pytest.raises(FormatError, match="a file; expected a Kaldi data directory"):
        import_corpus("kaldi", kaldi / "text")


COMMANDS = [  # of a file of 2 s with 8,000 samples in a second
    ("sph2pipe -f wav -p -c 1 a.wav |", "name the channel of the file, `u a.wav[0,15999,0]`"),
    ("sph2pipe -f wav -p -c2 a.wav |", "name the channel of the file, `u a.wav[0,15999,1]`"),
    ("/opt/sph2pipe -f wav -t 0.5:1.25 a.wav |", "name the part of the file, `u a.wav[4000,9999]`"),
    ("sph2pipe -t :1 -c 2 a.wav | sox -t wav - -r 8k -t wav - |", "name the part of the file, `u a.wav[0,7999,1]`"),
    ("sph2pipe -s 100:299 a.wav |", "name the part of the file, `u a.wav[100,299]`"),
    ("ffmpeg -ss 0.5 -t 5 -i a.wav -f wav - |", "name the part of the file, `u a.wav[4000,15999]`"),
    ("ffmpeg -i a.wav -ss 00:00:00.5 -to 00:00:01 -f wav - |", "name the part of the file, `u a.wav[4000,7999]`"),
    ("ffmpeg -i a.wav -map_channel 0.0.1 -f wav - |", "name the channel of the file, `u a.wav[0,15999,1]`"),
    ("sox a.wav -t wav - remix 2 trim 0.25 0.5 |", "name the part of the file, `u a.wav[2000,5999,1]`"),
    ("sox a.wav -t wav - trim 1 |", "name the part of the file, `u a.wav[8000,15999]`"),
    ("sph2pipe -c 2 -t 1:2 b.sph |", "name the part of the file, `u b.sph[first,last,1]`, in samples counted from 0"),
    ("ffmpeg -t 5 -i b.mp3 -f wav - |", "name the part of the file, `u b.mp3[first,last]`, in samples counted from 0"),
    ("sph2pipe -f wav -p a.wav |", "name the file itself, `u a.wav`"),
    ("flac -c -d -s a.wav | sox - -c 1 -b 16 -t wav - |", "name the file itself, `u a.wav`"),
    *(
        (command, "store its output in a file and name that")
        for command in (
            "ffmpeg -ss 0.5 -i a.wav -to 1 -f wav - |",
            "ffmpeg -ss 10ms -i a.wav -f wav - |",
            "ffmpeg -i a.wav -af volume=2 -f wav - |",
            "ffmpeg -i a.wav -filter:a pan=mono|c0=FR -f wav - |",
            "sox a.wav -t wav - remix 1,2 |",
            "sox a.wav -t wav - remix 1 2 |",
            "sox a.wav -t wav - trim 0 =1 |",
            "sox a.wav -t wav - trim 10 5 |",  # the file has 2 s
            "sox a.wav -t wav - trim 0 1 trim 0 0.5 |",
            "sph2pipe -c 2 a.wav | sox -t wav - -t wav - remix 2 |",
            "flac -cds --skip=0:01 a.wav |",
            "ffmpeg -ss 1 -i a.mp4 -f wav - |",
        )
    ),
]


@pytest.mark.parametrize(("command", "way"), COMMANDS)
def test_what_a_command_selects_is_not_lost(command, way, kaldi):
    tone(kaldi / "a.wav", 16000, channels=2)
    (kaldi / "wav.scp").write_text(f"u {command}\n")
    with pytest.raises(FormatError) as fault:
        import_corpus("kaldi", kaldi)
    assert f"expected an audio file; {way} (WAV, FLAC" in str(fault.value)


def test_a_line_names_a_part_and_a_channel(kaldi, tmp_path):
    """As the hint about commands says."""
    tone(kaldi / "a.wav", 16000, channels=2)
    (kaldi / "wav.scp").write_text(f"u a.wav[4000,7999,1]\nv {kaldi}/a.wav[8000,9599]\n")
    (kaldi / "utt2spk").write_text("u s\nv s\n")
    corpus = import_corpus("kaldi", kaldi)
    assert [(one.audio, one.start, one.end, one.channel) for one in corpus.utterances] == [
        (kaldi / "a.wav", 0.5, 1.0, 1),
        (kaldi / "a.wav", 1.0, 1.2, None),
    ]
    (kaldi / "segments").write_text(
        "u1 u 0.1 0.2\nu2 u 0.25 -1\nu3 u 0.3 0.6\nu4 u 0.6 0.7\nu5 u 0.1 1.1\nv1 v 0 0.1 0\n"
    )
    (kaldi / "utt2spk").write_text("".join(f"{name} s\n" for name in ("u1", "u2", "u3", "u4", "u5", "v1")))
    corpus = import_corpus("kaldi", kaldi)
    assert [(one.name, one.start, one.end, one.channel) for one in corpus.utterances] == [
        ("u1", 0.6, 0.7, 1),
        ("u2", 0.75, 1.0, 1),
        ("u3", 0.8, 1.0, 1),
        ("v1", 1.0, 1.1, 0),
    ]
    reasons = {name: reason for name, _, reason in corpus.report.lost if name[0] == "u"}
    assert set(reasons) == {"u4", "u5"}
    assert reasons["u4"].endswith("from 0.6 to 0.7 s of the part 4000 to 7999, which has 0.5 s; expected a part of it")
