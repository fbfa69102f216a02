"""Manifests of corpora, one damaged file at a time; what is imported must be read back."""

import json
import random
from pathlib import Path

import numpy as np

from readers.audio.audio_file import write_wav
from readers.corpora import examine, import_corpus, read_corpus, write_corpus
from readers.errors import ArgonautError
from readers.results.elan import ElanDocument
from readers.results.textgrid import read_textgrid
from readers.results.tiers import Interval, Tier
from tests.fuzz.format import Format, text

ELAN = Path(__file__).parents[2] / "readers/results/real.eaf"
RATE, SAMPLES = 8000, 4000
KALDI = {
    "wav.scp": "a a.wav\nb b.wav\n",
    "segments": "a-1 a 0 0.25\na-2 a 0.25 -1\nb-1 b 0.1 0.6\n",
    "text": "a-1 one two\na-2 don't\nb-1 three\n",
    "utt2spk": "a-1 ann\na-2 ann\nb-1 bob\n",
    "spk2utt": "ann a-1 a-2\nbob b-1\n",
    "reco2file_and_channel": "a a A\nb b B\n",
}
LHOTSE = {
    "recordings.jsonl": "".join(
        json.dumps({"id": name, "sources": [{"type": "file", "channels": [0], "source": f"{name}.wav"}],
                    "sampling_rate": RATE, "num_samples": SAMPLES, "duration": SAMPLES / RATE}) + "\n"
        for name in "ab"
    ),
    "supervisions.jsonl": "".join(
        json.dumps({"id": f"{name}-1", "recording_id": name, "start": 0.0, "duration": 0.5, "channel": 0,
                    "text": "one two", "speaker": "ann"}) + "\n"
        for name in "ab"
    ),
}  # fmt: skip
TABLES = {
    "t.csv": 'path,text,speaker,start,end\na.wav,"one, ""two""",ann,,\nb.wav,three,bob,0.1,0.25\n',
    "semicolons.csv": "path;text;begin;dur;stop_ms\na.wav;one;0;0.1;7\nb.wav;three;;0.25;\n",
    "t.json": '{"audio_filepath": "a.wav", "text": "x", "offset": 0.1, "duration": 0.2}\n{"audio_filepath": "b.wav"}\n',
    "t.tsv": 'client_id\tpath\tsentence\nann\ta.wav\t"Say ""one"" two"\nbob\tb.wav\tthree\n',
}
FOLDER = {"a.lab": "One, two - [noise] don’t\n", "b.txt": "three\n"}
DIRECTORY = {
    "audio.scp": "a={0}/a.wav\nb-1={0}/b.wav[0,1999]\nb-2={0}/b.wav[2000,3999,0]\n",
    "words.mlf": '#!MLF!#\n"*/a.lab"\none\n"3"\n.\n"*/b-1.lab"\n.\n',
    "speakers": "a ann\nb-1 bob\nb-2 bob\n",
}
SHORT = """File type = "ooTextFile"
Object class = "TextGrid"

0
0.5
<exists>
2
"IntervalTier"
"Ann"
0
0.5
2
0
0.25
"one ""two"" x"
0.25
0.5
""
"IntervalTier"
"Bob - words"
0
0.5
1
0
0.5
"three"
"""
LONG = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 0.5
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "utterances"
        xmin = 0
        xmax = 0.5
        intervals: size = 1
        intervals [1]:
            xmin = 0
            xmax = 0.5
            text = "one two"
    item [2]:
        class = "TextTier"
        name = "bell"
        xmin = 0
        xmax = 0.5
        points: size = 1
        points [1]:
            number = 0.25
            mark = "ding"
"""


def lay_out(directory: Path, damaged: str, content: bytes, files: dict[str, str]) -> None:
    """Write two recordings, and the sound files except the damaged one."""
    directory.mkdir()
    for name in "ab":
        write_wav(directory / f"{name}.wav", np.arange(SAMPLES) % 999, RATE)
    for name, sound in files.items():
        (directory / name).write_text(sound.replace("{0}", str(directory)))
    (directory / damaged).write_bytes(content.replace(b"{0}", str(directory).encode()))


def importing(kind: str, damaged: str, files: dict[str, str], source: str = ""):
    """Import a corpus of which one file is damaged, write it, and read it back."""

    def use(path: Path) -> None:
        directory = path.parent / "corpus"
        lay_out(directory, damaged, path.read_bytes(), files)
        corpus = import_corpus(kind, directory / source)
        corpus.report.write(path.parent / "report")
        if corpus.utterances:
            write_corpus(corpus, path.parent / "out")
            assert read_corpus(path.parent / "out") == corpus
            examine(corpus, {"one": 2})[1].as_json()

    return use


def reading(damaged: str):
    """Read a corpus of which one list is damaged, and write and read it again."""

    def use(path: Path) -> None:
        directory = path.parent / "corpus"
        lay_out(directory, damaged, path.read_bytes(), DIRECTORY)
        corpus = read_corpus(directory)
        try:
            write_corpus(corpus, path.parent / "out")
        except (ArgonautError, OSError):  # names that `import` would have changed
            return
        read_corpus(path.parent / "out")

    return use


def use_textgrid(path: Path) -> None:
    read_textgrid(path)
    importing("folder", "a.TextGrid", {"b.txt": "three\n"})(path)


def textgrid(rng: random.Random, directory: Path) -> bytes:
    """One of both forms in one of the encodings."""
    return rng.choice((SHORT, LONG)).encode(rng.choice(("utf-8", "utf-8-sig", "utf-16")))


def use_elan(path: Path) -> None:
    document = ElanDocument.parse(path.read_bytes(), path)
    document.with_tiers([Tier("new", False, (Interval(0.25, 0.5, "x"),))])
    importing("folder", "a.eaf", {"b.txt": "three\n"})(path)


FORMATS = (
    Format("textgrid", textgrid, use_textgrid),
    Format("elan", text(ELAN.read_text(encoding="utf-8")), use_elan),
    *(Format(f"kaldi directory {name}", text(one), importing("kaldi", name, KALDI)) for name, one in KALDI.items()),
    *(Format(f"lhotse {name}", text(one), importing("lhotse", name, LHOTSE)) for name, one in LHOTSE.items()),
    *(Format(f"table {name}", text(one), importing("table", name, {}, name)) for name, one in TABLES.items()),
    *(Format(f"transcript {name}", text(one), importing("folder", name, FOLDER)) for name, one in FOLDER.items()),
    *(Format(f"corpus {name}", text(one), reading(name)) for name, one in DIRECTORY.items()),
)
