"""A run of `cntk` that is killed, and the one that goes on from it."""

import os
import signal
import subprocess
import sys
import time
from itertools import groupby

import numpy as np
import pytest

from readers.htk.frame_labels import frame_labels
from readers.htk.mlf import Label, read_mlf, write_mlf
from recipes.cli import cntk
from recipes.cli.main import main
from tests.readers.sources.lattices.random_lattices import random_lattice, write_lattices
from tests.recipes.systems.cntk_corpus import CONFIG, FEATURES, STATES, make_corpus

SEQUENCES = "frameMode=false; nbruttsineachrecurrentiter=2"
LATTICES = f"""
Train=[
  SimpleNetworkBuilder=[ trainingCriterion=sequenceWithSoftmax ]
  SGD=[ seqGammarUsesMBR=true; seqGammarAMF=2; seqGammarLMF=1 ]
  reader=[ {SEQUENCES}; lattices=[ denLatTocFile=$Exp$/lattices.toc ] ]
]
"""
CHAIN = f"""
command=Train
deviceId=-1
traceLevel=1
Train=[
  action=train
  NDLNetworkBuilder=[ networkDescription=$Exp$/chain.ndl ]
  SGD=[ momentumPerMB=0.8; dropoutRate=0.1 ]
  reader=[{FEATURES.format("train")}
    {SEQUENCES}; frameSubsampling=3; chunkFrames=24; chunkContext=1:1
    chain=[ denominator=$Exp$/chain/denominator; numerators=$Exp$/chain/numerators ]
  ]
]
"""
CHAIN_NETWORK = """
features = InputValue(12, tag=feature)
W = Parameter(8, 12)
before = PastValue(8, h)
R = Parameter(8, 8)
h = Tanh(Plus(Times(W, features), Times(R, before)))
d = Dropout(h)
V = Parameter(6, 8)
U = Parameter(6, 8)
y = Times(V, d, tag=output)
J = Plus(LFMMI(y), Scale(Constant(0.1), LFMMICrossEntropy(y, Times(U, d))), tag=criterion)
"""


def with_lattices(corpus):
    """Lattices whose references are the labels."""
    labels, rng = read_mlf(corpus / "train.mlf"), np.random.default_rng(0)
    numbers, found = {name: i for i, name in enumerate(STATES)}, []
    for name in labels:
        states = frame_labels(labels.lookup(name), numbers, name)
        lattice = random_lattice(rng, name, len(states))
        lattice.senone[lattice.senone >= 0] %= len(STATES)
        lattice.reference_senones[:] = states
        found.append(lattice)
    write_lattices(corpus, found, num_senones=len(STATES))
    (corpus / "net.cntk").write_text(CONFIG + LATTICES)


def with_graphs(corpus):
    labels = read_mlf(corpus / "train.mlf")  # a label for each frame
    runs = {name: [list(run) for _, run in groupby(labels[name], key=lambda label: label.name)] for name in labels}
    write_mlf(
        corpus / "runs.mlf",
        ((f"*/{name}.lab", [Label(run[0].start, run[-1].end, run[0].name) for run in runs[name]]) for name in runs),
    )
    arguments = ("--alignment", corpus / "runs.mlf", "--state-list", corpus / "states", "--out", corpus / "chain")
    assert main(["chain", *map(str, arguments)]) == 0
    (corpus / "chain.ndl").write_text(CHAIN_NETWORK)
    (corpus / "net.cntk").write_text(CHAIN)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prepare", "epoch_size", "rate"),
    [(lambda corpus: None, 3000, 0.05), (with_lattices, 24000, 0.001), (with_graphs, 3000, 0.01)],
    ids=["frames", "lattices", "chain"],
)
def test_a_run_killed_in_mid_epoch_and_started_again_ends_with_the_same_model(tmp_path, prepare, epoch_size, rate):
    """SIGKILL, in a process of its own, at a moment that the log shows to lie within an epoch."""
    corpus = make_corpus(tmp_path)
    prepare(corpus)

    def arguments(exp: str) -> list[str]:
        return [
            *(f"configFile={corpus / 'net.cntk'}", f"Exp={corpus}"),
            *(f"modelPath={corpus / exp / 'net'}", f"stderr={corpus / exp / 'log'}", "Train=[SGD=[maxEpochs=3]]"),
            f"Train=[SGD=[minibatchSize=2;epochSize={epoch_size};learningRatesPerMB={rate}]]",
        ]

    assert cntk.main(arguments("whole")) == 0
    log = corpus / "broken" / "log_Train.log"
    command = [sys.executable, "-m", "recipes.cli.cntk", *arguments("broken")]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: "Epoch[ 2 of 3]-Minibatch[" in (log.read_text() if log.exists() else ""), running)
        os.kill(running.pid, signal.SIGKILL)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == -signal.SIGKILL
    assert not (corpus / "broken" / "net").exists()
    assert cntk.main(arguments("broken")) == 0
    assert "Starting from" in log.read_text()
    for name in ("net", "net.ckp", "net.2"):
        assert (corpus / "broken" / name).read_bytes() == (corpus / "whole" / name).read_bytes(), name


def wait_for(condition, process, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline, "no epoch was reached"
        time.sleep(0.002)
