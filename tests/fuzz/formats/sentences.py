"""What the readers of trainings read: features and labels, texts, one damaged file at a time."""

import contextlib
from pathlib import Path

import numpy as np

from readers.config.config import Config
from readers.errors import ArgonautError
from readers.htk.parameter_file import FBANK, write_htk
from readers.kaldi.ark import write_matrix
from readers.minibatches.base import open_reader
from tests.fuzz.format import Format, text

LONGEST = 1 << 14  # a list of ten thousand recordings rightly takes seconds
TEXT = "</s> the cat sat </s>\n</s> a dog </s>\n\n</s> the dog sat </s>\n"
WORDS = "</s>\nthe\n<unk>\na\ncat\ndog\nsat\n"
CLASSES = "".join(f"{k} 9 {word} {k // 3}\n" for k, word in enumerate(WORDS.split()))
SLOTS = "BOS O\nfrom O\nboston B-from\nEOS O\n\nBOS O\nto O\ntulsa B-to\nEOS O\n"
INPUTS, OUTPUTS = "BOS\nEOS\n<unk>\nflight\nfrom\nboston\nto\n", "O\nB-from\nB-to\nI-to\n"
CLASSED_OUTPUTS = "O 0\nB-from 1\nB-to 1\nI-to 2\n"
MLF = '#!MLF!#\n"*/u0.lab"\n0 200000 s_0 -1.5\n200000 500000 s_1\n.\n"*/u1.lab"\n0 400000 s_0\n.\n'
FRAME_SETTINGS = (
    "frameMode=true; readMethod=blockRandomize; randomize=auto",
    "frameMode=true; readMethod=rollingWindow; randomize=none",
    "frameMode=false; nbruttsineachrecurrentiter=2; truncated=true",
)

LM_READER = """readerType=LMSequenceReader; file=text; wordclass=classes; mode={mode}; nbruttsineachrecurrentiter=2
labelIn=[labelDim=7;beginSequence="</s>";endSequence="</s>"]; labels=[labelDim=7;labelType=nextWord]
binaryFeature=[file=conditions; dim=2]"""
LU_READER = """readerType=LUSequenceReader; file=text; nbruttsineachrecurrentiter=2; wordContext=0:1:2
labelIn=[token=in;beginSequence=BOS;endSequence=EOS]; labels=[token=out;beginSequence=O;endSequence=O]"""
HTK_READER = """readerType=HTKMLFReader; {settings}
features=[scpFile=scp; dim=3; contextWindow=0:1]; labels=[mlfFile=mlf; labelDim=2; labelMappingFile=list]"""
KALDI_READER = """readerType=KaldiReader; {settings}
features=[scpFile=kaldi; dim=3; contextWindow=0:1]; labels=[aliFile=ali; labelDim=2]"""


def read_with(block: str, damaged: str, files: dict[str, str], prepare=lambda directory: None, kinds=({},)):
    """Use a file as file `damaged` of a reader's block, beside the sound ones, and read some minibatches."""

    def use(path: Path):
        directory = path.parent
        prepare(directory)
        for name, content in files.items():
            (directory / name).write_text(content)
        (directory / damaged).write_bytes(path.read_bytes())
        refusals = []
        with contextlib.chdir(directory):
            for values in kinds:
                try:
                    _read(Config.from_text(f"reader=[\n{block.format(**values)}\n]", "r.cntk").block("reader"))
                except ArgonautError as fault:
                    refusals.append(fault)
        if len(refusals) == len(kinds):
            raise refusals[0]

    return use


def _read(config: Config) -> None:
    reader = open_reader(config, 1)
    try:
        reader.dims()
        for _, _minibatch in zip(range(3), reader.minibatches(0, 8)):
            pass
        for _, _minibatch in zip(range(3), reader.minibatches(1, 2)):
            pass
    finally:
        reader.close()


def corpus(directory: Path) -> None:
    """Two recordings, as HTK files and as a Kaldi archive with its script."""
    lines = []
    with (directory / "feats.ark").open("wb") as file:
        for number, length in enumerate((5, 4)):
            values = np.arange(3 * length, dtype=np.float32).reshape(3, length, order="F")
            write_htk(directory / f"u{number}.htk", values, FBANK)
            offset = write_matrix(file, f"u{number}", values.T.copy())
            lines.append(f"u{number} feats.ark:{offset}\n")
    if not (directory / "kaldi").exists():
        (directory / "kaldi").write_text("".join(lines))


LM_FILES = {"text": TEXT, "classes": CLASSES, "conditions": "1 0\n0 1.5\n\n-2 1e3\n"}
LU_FILES = {"text": SLOTS, "in": INPUTS, "out": OUTPUTS}
SIDE_FILE = """{"format": "argonaut-features", "version": 1, "sample_rates": [16000],
 "settings": {"TARGETKIND": "FBANK", "TARGETRATE": 100000, "NUMCHANS": 3}}"""
SCP = "u0.fb=u0.htk[0,4]\nu1.fb=u1.htk[0,3]\n"
HTK_FILES = {"features.htk.json": SIDE_FILE, "scp": SCP, "mlf": MLF, "list": "s_0\ns_1\n"}
KALDI_FILES = {"ali": "u0 0 0 1 1 1\nu1 0 1 1 0\n"}
MODES = ({"mode": "softmax"}, {"mode": "class"})
SETTINGS = tuple({"settings": one} for one in FRAME_SETTINGS)


def formats_of(title: str, block: str, files: dict[str, str], **options) -> list[Format]:
    """A format for each file that a reader reads."""
    return [
        Format(f"{title} {name}", text(content), read_with(block, name, files, **options), most_bytes=LONGEST)
        for name, content in files.items()
    ]


FORMATS = (
    *formats_of("lm reader", LM_READER, LM_FILES, kinds=MODES),
    *formats_of("lu reader", LU_READER, LU_FILES),
    Format(
        "lu reader classes",
        text(CLASSED_OUTPUTS),
        read_with(LU_READER.replace("labels=[", "labels=[mode=class;"), "out", LU_FILES),
        most_bytes=LONGEST,
    ),
    *formats_of("htk mlf reader", HTK_READER, HTK_FILES, prepare=corpus, kinds=SETTINGS),
    *formats_of("kaldi reader", KALDI_READER, KALDI_FILES, prepare=corpus, kinds=SETTINGS),
)
