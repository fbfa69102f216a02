"""One tiny recogniser from audio to graph, made by the real commands, and a user who runs commands on a copy of it.

Every HMM state is a tone of its own, so three utterances' worth of training tells them apart and a decoding without
errors is what to expect.  All paths in its files are relative to its directory.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readers.audio.audio_file import write_wav
from readers.errors import FormatError
from readers.htk.mlf import Label, write_mlf
from readers.htk.parameter_file import read_htk, write_htk
from readers.htk.scp import write_pairs
from recipes.cli import cntk
from recipes.cli.argon import command as argon
from recipes.cli.console import one_line
from recipes.cli.main import main

RATE, HOP, WINDOW = 16000, 160, 400  # samples per second, frame and window
TICKS_PER_FRAME = 100_000
STATES = ("a_s2", "a_s3", "b_s2", "b_s3", "c_s2", "c_s3", "sil_s2", "sil_s3")
TONES = (300, 600, 1000, 1500, 2200, 3000, 4200, 5800)  # Hz, one per state
WORDS = {"AB": "ab", "BA": "ba", "CAB": "cab", "C": "c"}
NUM_TRAIN, NUM_TEST = 24, 6
FIRST_OF_TEST = f"utt{NUM_TRAIN}"

HCOPY = """\
SOURCEFORMAT = WAV
TARGETKIND = FBANK
TARGETRATE = 100000
WINDOWSIZE = 250000
NUMCHANS = 10
USEHAMMING = T
PREEMCOEF = 0.97
"""
CNTK = """\
command=Train
precision=float
deviceId=-1
numCPUThreads=1
modelPath=model/net
Train=[
  action=train
  SimpleNetworkBuilder=[
    layerSizes=30:24:8
    layerTypes=Sigmoid
    trainingCriterion=CrossEntropyWithSoftmax
    evalCriterion=ErrorPrediction
    applyMeanVarNorm=true
    needPrior=true
  ]
  SGD=[
    epochSize=0
    minibatchSize=32
    learningRatesPerMB=1.6*6:0.2
    momentumPerMB=0.9
    maxEpochs=8
  ]
  reader=[
    readerType=HTKMLFReader
    readMethod=blockRandomize
    randomize=Auto
    features=[
      dim=30
      scpFile=train.scp
    ]
    labels=[
      mlfFile=train.mlf
      labelDim=8
      labelMappingFile=states.list
    ]
  ]
]
Write=[
  action=write
  outputNodeNames=ScaledLogLikelihood
  reader=[
    features=[
      dim=30
      scpFile=test.scp
    ]
  ]
  writer=[
    ScaledLogLikelihood=[
      dim=8
      scpFile=out.scp
    ]
  ]
]
"""
DICTIONARY = "<s> [] sil\n</s> [] sil\n" + "".join(f"{word} {' '.join(phones)}\n" for word, phones in WORDS.items())
GRAPH = ("--state-list", "states.list", "--alignment", "train.mlf", "--dict", "dict", "--lm", "lm.arpa")
DECODE = (
    *("-graph", "graph/graph.dg", "-lm", "lm.arpa", "-am", "model/net", "-cntkmap", "graph/cntkmap"),
    *("-dnn_window_size", "3", "-acweight", "0.5", "--threads", "1"),
)


def make_small_system(root: Path, seed: int = 0) -> None:
    """Write everything below root, an empty directory: audio, features, labels, texts, model and graph."""
    rng = np.random.default_rng(seed)
    pairs, states, words = [], [], []
    (root / "audio").mkdir()
    for index in range(NUM_TRAIN + NUM_TEST):
        name = f"utt{index:02}"
        spoken = [list(WORDS)[i] for i in rng.integers(0, len(WORDS), rng.integers(2, 5))]
        samples, labels = speak(spoken, rng)
        write_wav(root / "audio" / f"{name}.wav", samples, RATE)
        pairs.append((f"audio/{name}.wav", f"feat/{name}.fb"))
        states.append((f"*/{name}.lab", labels))
        words.append((f"*/{name}.lab", [Label(None, None, word) for word in spoken]))
    write_pairs(root / "hcopy.list", pairs)
    write_mlf(root / "train.mlf", states[:NUM_TRAIN])
    write_mlf(root / "words.mlf", words[NUM_TRAIN:])
    text = "".join(" ".join(label.name for label in labels) + "\n" for _, labels in words[:NUM_TRAIN])
    lists = {"train": pairs[:NUM_TRAIN], "test": pairs[NUM_TRAIN:]}
    for name, text_of_file in (
        ("text", text),
        ("states.list", "".join(f"{state}\n" for state in STATES)),
        ("dict", DICTIONARY),
        ("hcopy.config", HCOPY),
        ("net.cntk", CNTK),
        ("train.scp", "".join(f"{features}\n" for _, features in lists["train"])),
        ("test.scp", "".join(f"{features}\n" for _, features in lists["test"])),
        ("audio.list", "".join(f"{audio}\n" for audio, _ in lists["test"])),
        ("out.scp", "".join(f"out/{Path(audio).stem}.ll\n" for audio, _ in lists["test"])),
    ):
        (root / name).write_text(text_of_file)
    before = Path.cwd()
    os.chdir(root)
    try:
        for status in (
            main(["hcopy", "-C", "hcopy.config", "-S", "hcopy.list", "-j", "1"]),
            main(["lm", "estimate", "--text", "text", "--order", "2", "--method", "wb", "-o", "lm.arpa"]),
            main(["graph", *GRAPH, "--out", "graph"]),
            cntk.main(["configFile=net.cntk"]),
        ):
            assert status == 0
    finally:
        os.chdir(before)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Networks made in the body compute with one thread: tests share the machine with each other."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def speak(words: list[str], rng: np.random.Generator) -> tuple[np.ndarray, list[Label]]:
    """(samples (N,), state labels) of words with silence around them; every state is 5 to 9 frames of its tone."""
    phones = ["sil", *"".join(WORDS[word] for word in words), "sil"]
    states = [STATES.index(f"{phone}_s{k}") for phone in phones for k in (2, 3)]
    lengths = rng.integers(5, 10, len(states))
    tone = np.repeat(np.array(TONES)[states], lengths * HOP)
    samples = 3000 * np.sin(2 * np.pi * np.cumsum(tone) / RATE) + 100 * rng.normal(size=len(tone))
    # Frame t looks at the samples t * HOP to t * HOP + WINDOW: the last window ends before the last frame's place.
    bounds = np.minimum(np.cumsum(lengths), (len(samples) - WINDOW) // HOP + 1)
    starts = [0, *bounds[:-1]]
    return samples, [
        Label(int(start) * TICKS_PER_FRAME, int(end) * TICKS_PER_FRAME, STATES[state])
        for start, end, state in zip(starts, bounds, states)
    ]


@dataclass(frozen=True)
class Outcome:
    """What a command did: exit status, the lines of its two streams, and the files that are new or changed."""

    status: int
    out: list[str]
    err: list[str]
    changed: set[str]

    @property
    def fault(self) -> str:
        """The one line of an `error:`; there must be no other line on stderr, and nothing may have been written."""
        assert self.status == 2, (self.status, self.err)
        assert len(self.err) == 1, self.err
        assert self.err[0].startswith("error: "), self.err
        assert self.changed == set(), self.changed
        return self.err[0].removeprefix("error: ")


class User:
    """Runs commands in the current directory, which is a copy of the small system."""

    def __init__(self, root: Path, capsys):
        self.root, self.capsys = root, capsys

    def run(self, command: str, *arguments) -> Outcome:
        """command: cntk, argon or a command of argonaut; in this process."""
        before = listing(self.root)
        self.capsys.readouterr()
        words = [str(argument) for argument in arguments]
        program = {"cntk": cntk.main, "argon": argon.main}.get(command)
        status = program(words) if program else main([command, *words])
        shown = self.capsys.readouterr()
        after = listing(self.root)
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        return Outcome(status, shown.out.splitlines(), shown.err.splitlines(), changed)

    def train(self, *arguments) -> Outcome:
        """Train anew, so that the model of the small system does not stand in the way."""
        return self.run("cntk", "configFile=net.cntk", "modelPath=new/net", "Train=[SGD=[maxEpochs=1]]", *arguments)

    def decode(self, *arguments, infiles: str = "test.scp") -> Outcome:
        """Decode to hyp.mlf; options given here come after, and so stand in the place of, those of DECODE."""
        return self.run("argon", *DECODE, "-infiles", infiles, "-outmlf", "hyp.mlf", *arguments)

    def write(self, name: str, content: str | bytes) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    def replace(self, name: str, old: str, new: str) -> None:
        """Replace text that must be there, everywhere in a file."""
        text = (self.root / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))


def listing(root: Path) -> dict[str, str]:
    """Relative path -> digest of the content, of every file and directory below root."""
    return {
        os.fspath(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "/"
        for path in sorted(root.rglob("*"))
    }


def copy_system(source: Path, target: Path) -> None:
    shutil.copytree(source, target, dirs_exist_ok=True)


def loss(user: User, outcome: Outcome, report: str) -> str:
    """The one line of a report about one lost utterance; it must be told on stderr too, and the rest be done."""
    assert outcome.status == 1, outcome.err
    lines = (user.root / report).read_text().splitlines()
    assert len(lines) == 2, lines
    name, outcome_of_item, reason = lines[1].split("\t")
    reason = one_line(FormatError(reason))  # names options as flags
    told = [line for line in outcome.err if line.startswith((f"{outcome_of_item}: ", "error: "))]
    assert told in ([f"{outcome_of_item}: {name}: {reason}"], [f"{outcome_of_item}: {reason}"])
    assert not any("Traceback" in line for line in outcome.err)
    return reason


def line_of(user: User, path: str, text: str) -> str:
    """path:line of the only line that holds the text."""
    numbers = [i for i, line in enumerate((user.root / path).read_text().splitlines(), 1) if text in line]
    assert len(numbers) == 1
    return f"{path}:{numbers[0]}"


def put_frames(name: str, change) -> None:
    file = read_htk(name)
    write_htk(name, change(file.frames.copy(order="F")), file.kind, file.period)
