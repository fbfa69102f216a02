"""Lists of any number of utterances that share a few feature files, for benchmarks.scale and its test.

The names of the utterances are all different, and so are the paths: directories and files have several names (symbolic
and hard links), so that a million paths lead to three files.
"""

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from readers.common.files import write_lines
from recipes.warmup.toy_system import STATES, make_toy_system

NAMES_PER_DIRECTORY = 1000
TICKS = 100_000  # 100 ns units per frame
NUM_FRAMES = 24  # of each utterance: a range of a longer file
WORDS = ("AB", "BA", "C")


def make_features(root: Path) -> None:
    """Make the audio and the features of a tiny language, with its labels and lists."""
    make_toy_system(root)
    _run("hcopy", "-C", root / "hcopy.config", "-S", root / "hcopy.list", "-j", 1)


def make_system(root: Path) -> None:
    """Make features, a network and decoding graphs of a tiny language (seconds)."""
    make_features(root)
    tables = ("--state-list", root / "states.list", "--alignment", root / "states.mlf", "--dict", root / "dict")
    (root / "train.cntk").write_text(CONFIG)
    _run("lm", "estimate", "--text", root / "text", "--order", 2, "--method", "wb", "-o", root / "lm.arpa")
    _run("graph", *tables, "--lm", root / "lm.arpa", "--out", root / "graph")
    _run("cntk", f"configFile={root / 'train.cntk'}", *settings(root, root, root / "model"), "maxEpochs=10")


def _run(*command: object) -> None:
    from recipes.cli.main import main

    if main(list(map(str, command))):
        raise SystemExit(f"{command[0]} failed")


def settings(system: Path, data: Path, model: Path) -> tuple[str, ...]:
    """Return the settings of CONFIG for a training with the lists of a directory."""
    return f"System={system}", f"Data={data}", f"Model={model}"


CONFIG = """\
command = Train
deviceId = -1
makeMode = false
window = Auto
memory = 2000000
epochSize = 0
Train = [
    action = train
    modelPath = $Model$
    SimpleNetworkBuilder = [
        layerSizes = 10:16:8
        layerTypes = Sigmoid
        trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction
        applyMeanVarNorm = true
        needPrior = true
    ]
    SGD = [
        epochSize = $epochSize$
        minibatchSize = 64
        learningRatesPerMB = 0.8
        maxEpochs = $maxEpochs$
    ]
    reader = [
        readerType = HTKMLFReader
        randomize = $window$
        maxFramesInMemory = $memory$
        features = [
            dim = 10
            scpFile = $Data$/train.scp
        ]
        labels = [
            mlfFile = $Data$/states.mlf
            labelDim = 8
            labelMappingFile = $System$/states.list
        ]
    ]
]
"""


def make_lists(system: Path, data: Path, count: int) -> None:
    """Write the lists of `count` utterances to a directory, with the features of `system`.

    train.scp: ranges of feature files; test.scp: whole files; audio.list: pairs for HCopy; states.mlf: state labels of
    train.scp; words.mlf, other.mlf: words, with some errors in the second.
    """
    data.mkdir(parents=True)
    (data / "names").mkdir()
    for number in range(min(count, NAMES_PER_DIRECTORY)):
        (data / "names" / f"{number:03}.fb").hardlink_to(system / f"utt{number % 3 + 12}.fb")
    shutil.copy(system / "features.fb.json", data / "names")
    for number in range(-(-count // NAMES_PER_DIRECTORY)):
        (data / f"speaker{number:04}").symlink_to("names")
    bounds = (0, 10, 20, NUM_FRAMES)
    lines: dict[str, Callable[[int], str]] = {
        "train.scp": lambda i: f"{name(i)}.fb={path(data, i)}[{i % 40},{i % 40 + NUM_FRAMES - 1}]",
        "test.scp": lambda i: f"{name(i)}.fb={path(data, i)}",
        "audio.list": lambda i: f"{path(data, i)}.wav {data}/features/{speaker(i)}/{name(i)}.fbank",
    }
    for file, line in lines.items():
        write_lines(data / file, map(line, range(count)))
    labels: dict[str, Callable[[int], list[str]]] = {
        "states.mlf": lambda i: [
            f"{begin * TICKS} {end * TICKS} {STATES[(i + k) % 8]} -{i % 100}.5"
            for k, (begin, end) in enumerate(itertools.pairwise(bounds))
        ],
        "words.mlf": lambda i: [WORDS[(i + k) % 3] for k in range(4)],
        "other.mlf": lambda i: [WORDS[(i + k + (k == 2 and i % 10 == 0)) % 3] for k in range(4)],
    }
    for file, of in labels.items():
        write_lines(data / file, _mlf(count, of))


def _mlf(count: int, labels: Callable[[int], list[str]]) -> Iterator[str]:
    yield "#!MLF!#"
    for i in range(count):
        yield f'"*/{name(i)}.lab"'
        yield from labels(i)
        yield "."


def name(i: int) -> str:
    """Return the name of an utterance, as long as those of large corpora."""
    return f"{speaker(i)}-session{i % 7}-{i:08}"


def speaker(i: int) -> str:
    return f"speaker{i // NAMES_PER_DIRECTORY:04}"


def path(data: Path, i: int) -> str:
    return f"{data}/{speaker(i)}/{i % NAMES_PER_DIRECTORY:03}.fb"
