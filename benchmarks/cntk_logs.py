"""Two trainings of CNTK's tests on the same corpus, against the criteria in the logs that CNTK's repository holds.

    python -m benchmarks.cntk_logs [exp/an4]

Both are trained on all of AN4's training data with its HTK alignments: `full` is the network 363-512-512-132 of CNTK's
test Speech/QuickE2E, `layer` the first layer of Speech/DNN/DiscriminativePreTraining.  The features of CNTK's copy of
the corpus are not published: 33 values of kind USER, of which a file of means shows 13 cepstra, 13 deltas and 7
accelerations.  Ours are MFCC_0_D_A_Z cut to these, so figures agree to a few percent at best.  exp/an4 is the directory
of `argonaut recipe an4`, whose lists and labels are used.  Prints `AGREE full ratio` and `AGREE layer ratio`: our
criterion of the last epoch over CNTK's.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from readers.htk import read_htk, write_htk

WINDOW, USER = 11, 9
HCOPY = """SOURCERATE = 625
TARGETKIND = MFCC_0_D_A_Z
TARGETRATE = 100000
WINDOWSIZE = 250000
USEHAMMING = T
ZMEANSOURCE = T
PREEMCOEF = 0.97
NUMCHANS = 24
NUMCEPS = 12
CEPLIFTER = 22
LOFREQ = 64
HIFREQ = 8000
"""
COMMON = """precision = float
traceLevel = 1
reader = [
    readerType = HTKMLFReader
    readMethod = blockRandomize
    miniBatchMode = partial
    randomize = auto
    features = [ dim = 363; scpFile = $Dir$/train.scp ]
    labels = [ mlfFile = $LabelDir$/states.mlf; labelMappingFile = $LabelDir$/states.list; labelDim = 132 ]
]
"""
# The settings of CNTK's tests; the initial values of both are uniform within +-0.05.
TRAININGS = {
    "full": """command = full
full = [
    action = train
    modelPath = $Dir$/full/net
    SimpleNetworkBuilder = [
        layerSizes = 363:512:512:132
        trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction
        layerTypes = Sigmoid
        applyMeanVarNorm = true
        needPrior = true
    ]
    SGD = [
        epochSize = 20480; minibatchSize = 64:256:1024; learningRatesPerMB = 1.0:0.5:0.1
        momentumPerMB = 0.9:0.656119; maxEpochs = 3
    ]
]
""",
    "layer": """command = layer
layer = [
    action = train
    modelPath = $Dir$/layer/net
    SimpleNetworkBuilder = [
        layerSizes = 363:512:132
        trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction
        layerTypes = Sigmoid
        applyMeanVarNorm = true
    ]
    SGD = [
        epochSize = 81920; minibatchSize = 256; learningRatesPerMB = 0.8; momentumPerMB = 0.9; maxEpochs = 2
    ]
]
""",
}
CNTK = {"full": (3.0173, 1.9920, 1.9150), "layer": (1.6396, 1.1658)}  # criteria of the epochs, baseline.cpu.txt


def run(command: list[str]) -> None:
    """Run a command; raises SystemExit with the last line of its log if it fails."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"cntk-logs: {' '.join(command[2:])}: {done.stderr.strip().splitlines()[-1]}")


def make_features(experiment: Path, directory: Path) -> None:
    """Write 13 cepstra, 13 deltas and 7 accelerations of every training utterance, and train.scp."""
    lines = (experiment / "lists" / "plain.hcopy.list").read_text().splitlines()
    audio = [line.split()[0] for line in lines if "an4test" not in line]
    (directory / "features").mkdir()
    pairs = [(source, directory / "features" / f"{Path(source).stem}.fea") for source in audio]
    (directory / "hcopy.list").write_text("".join(f"{source} {target}\n" for source, target in pairs))
    (directory / "hcopy.config").write_text(HCOPY)
    command = ["hcopy", "-C", str(directory / "hcopy.config"), "-S", str(directory / "hcopy.list")]
    run([sys.executable, "-m", "recipes.cli.main", *command])
    rows = [*range(26), 38, *range(26, 32)]  # accelerations of c0 to c6; c0 is the last of 13
    entries = []
    for _, target in pairs:
        frames = np.asfortranarray(read_htk(target).frames[rows])
        write_htk(target, frames, USER)
        entries.append(f"{target.name}={target}[0,{frames.shape[1] - 1}]\n")
    (directory / "train.scp").write_text("".join(entries))


def criteria(name: str, experiment: Path, directory: Path) -> list[float]:
    """Train one of the networks; return the criterion of each epoch."""
    config = directory / f"{name}.cntk"
    config.write_text(f"Dir = {directory}\nLabelDir = {experiment.resolve()}/labels\n{COMMON}{TRAININGS[name]}")
    command = [sys.executable, "-m", "recipes.cli.cntk", f"configFile={config}"]
    run(command)
    history = (directory / name / "net.history.jsonl").read_text().splitlines()
    return [json.loads(line)["training"]["CrossEntropyWithSoftmax"] for line in history]


def main() -> int:
    """Print the criteria of both, epoch by epoch, and the ratio of the last."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cntk_logs", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("exp/an4"))
    experiment = parser.parse_args().directory
    if not (experiment / "lists" / "plain.hcopy.list").exists():
        print(f"cntk-logs: {experiment}: no lists; run argonaut recipe an4 --data DIR --out {experiment}")
        return 2
    with tempfile.TemporaryDirectory() as name:
        make_features(experiment, Path(name))
        for training, published in CNTK.items():
            ours = criteria(training, experiment, Path(name))
            print(f"{training}: epochs " + ", ".join(f"{a:.3f} (CNTK {b:.3f})" for a, b in zip(ours, published)))
            print(f"AGREE {training} {ours[-1] / published[-1]:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
