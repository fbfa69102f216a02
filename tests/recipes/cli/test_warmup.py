"""`argonaut warmup` compiles the kernels of all commands; installations and caches that are read only."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from readers.common import kernels
from recipes.cli.main import main
from recipes.warmup import run

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]

# In every process: writes the kernels that are looked up, with their argument types, to a file of the directory USED.
RECORD = """
import atexit, os, pathlib
from readers.common.kernels import _KernelCache

used, look_up = set(), _KernelCache.load_overload

def note(self, sig, target_context):
    used.add(f"{self._py_func.__module__}.{self._py_func.__qualname__} {sig}\\n")
    return look_up(self, sig, target_context)

def write():
    pathlib.Path(os.environ["USED"], str(os.getpid())).write_text("".join(used))

_KernelCache.load_overload = note
atexit.register(write)
"""
# What users do, on systems that are not those of warmup.
USES = """
import contextlib, io, os, sys
from pathlib import Path
from acoustic.engine.engine import Engine
from acoustic.training import trainer
from decoder.recognizer import ForcedAligner
from decoder.scoring import matching
from readers.htk import mlf
from readers.sources.chain import ChainSource
from recipes.cli.main import main
from tests.acoustic.kernels import test_noise
from tests.acoustic.nodes import test_lattice_free
from tests.acoustic.nodes import test_sequence_criterion as lattices
from tests.acoustic.nodes import test_time_splice
from tests.recipes.systems.argon_system import decode, make_argon_system
from tests.recipes.systems.cntk_corpus import make_corpus
from tests.recipes.systems.small_system import DECODE, make_small_system

trainer.draw_history = lambda rows, path: None

def run(*words):
    assert main([str(word) for word in words]) in (0, 1), words

root = Path(sys.argv[1])
for name in ("small", "argon"):
    (root / name).mkdir()
make_small_system(root / "small")
make_argon_system(root / "argon")
make_corpus(root / "corpus")
assert decode(root / "argon", root, "--words", str(root / "words.ctm"), **{"lattice-prefix": root / "l"}) == 0
assert decode(root / "argon", root, lm=None) == 0
cntk = ("cntk", f"configFile={root}/corpus/net.cntk", f"Exp={root}/corpus", "command=Train:Test:Write")
run(*cntk)
run(*cntk, "precision=double", "makeMode=false")
run(*cntk, "numCPUThreads=2", "makeMode=false", "Train=[SGD=[gradUpdateType=NaturalGradient]]")
os.chdir(root / "small")
audio = ("-infiles", "audio.list", "--features", "hcopy.config")
run("argon", *DECODE, *audio, "-lattice-prefix", "lat/l", "-outmlf", "h")
run("argon", *DECODE, "--features", "hcopy.config", "--stream", "audio/utt25.wav")
run("argon", *DECODE, *audio, "-outmlf", "h8", "--int8")
align = ("-alignmlf", "words.mlf", "--dict", "dict", "-infiles", "test.scp", "-outmlf", "aligned")
run("argon", *(word for word in DECODE if word not in ("-lm", "lm.arpa")), *align)
flat = ("flatstart", "--features", "test.scp", "--words", "words.mlf", "--dict", "dict", "--gaussians", 20)
run(*flat, "--out", "flat")
run(*flat, "--method", "viterbi", "--beam", 100, "--out", "best")
Path("speakers").write_text("".join(f"utt{i:02} s{i % 2}\\n" for i in range(30)))
adapt = ("--speakers", "speakers", "--min-frames", 20, "--splice", 1, "--dim", 6, "--gaussians", 20)
aligned = ("--features", "train.scp", "--alignment", "train.mlf", "--state-list", "states.list")
run("fmllr", "train", *aligned, "--out", "fm", *adapt)
run("fmllr", "apply", "fm", "--features", "train.scp", *adapt[:4], "--out", "feats", "--scp", "feats.scp")
run("ivector", "train", "--features", "test.scp", "-o", "small.ivector", "--gaussians", 3, "--dim", 3)
for options in ((), ("--online",)):
    run("ivector", "extract", "small.ivector", "--features", "test.scp", "--out", "i", "--scp", "i.scp", *options)
run("chain", "--words", "words.mlf", "--dict", "dict", "--features", "test.scp", "--out", "phones")
run("chain", "--alignment", "train.mlf", "--state-list", "states.list", "--out", "chain")
for directory, key in (("phones", "utt25"), ("chain", "utt00")):
    source = ChainSource(f"{directory}/denominator", f"{directory}/numerators")
    source.supervision(key, 0, source.numerator(key).num_frames)
run("cntk", "configFile=net.cntk", "command=Write")
layout = lattices.make_layout()
for precision in ("float", "double"):
    network = lattices.make_network(precision=precision)
    lattices.run(network, lattices.make_data(layout), layout)
    Engine(network, ["J"]).forward(lattices.make_data(layout), layout=layout)
run("lattice", "words", "--lattices", "lat/l.index", "--by", "consensus", "--mlf", "consensus")
run("lattice", "oracle", "--lattices", "lat/l.index", "--reference", "words.mlf")
run("lm", "perplexity", "--lm", "lm.arpa", "--text", "text")
run("g2p", "train", "dict", "-o", "words.g2p", "--hold-out", 2)
run("g2p", "apply", "words.g2p", "BAA", "-o", "guessed.dict")
run("score", "words.mlf", "h")
run("pack", "--model", "model/net", "--graph", "graph/graph.dg", "--lm", "lm.arpa", "--features", "hcopy.config",
    "--dict", "dict", "--rate", 16000, "-o", "small.argo")
run("transcribe", "small.argo", "audio", "--format", "json", "--nbest", 3, "-o", "words")
run("transcribe", "small.argo", "audio/utt25.wav", "--stream", "--format", "json")
matching.MOST_PAIRS = 1
ForcedAligner.load("small.argo").align_long("audio/utt25.wav", "AB BA CAB C")
Path("hotwords").write_text("BA :3\\n")
run("transcribe", "small.argo", "audio/utt25.wav", "--hotwords", "hotwords")
run("transcribe", "small.argo", "audio/utt25.wav", "--stream", "--hotwords", "hotwords")
run("argon", *DECODE, *audio, "-outmlf", "hot", "--hotwords", "hotwords")
Path("phrases.json").write_text('["AB C", "BA", "[unk]"]')
run("transcribe", "small.argo", "audio/utt25.wav", "--grammar", "phrases.json")
run("transcribe", "small.argo", "audio/utt25.wav", "--grammar", "phrases.json", "--stream")
for frames in (False, True):
    test_lattice_free.test_values_are_sums_over_sequences(frames)
test_lattice_free.test_single_precision_equals_double()
test_time_splice.test_the_compiled_kernels_are_those_of_arrays()
mlf.LARGE = -1
mlf.read_mlf("words.mlf")
test_noise.test_compiled_noise_kernels_are_the_plain_ones(3, 7, 2, 5, 1)
"""


def kernels_of(directory: Path, *command: object) -> tuple[set[str], str]:
    """Run Python in processes that record which kernels they use; return these, and what is printed."""
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(RECORD)
    environment = {**os.environ, "PYTHONPATH": f"{directory}{os.pathsep}{ROOT}", "USED": str(directory)}
    done = subprocess.run([sys.executable, *map(str, command)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    files = (path for path in directory.iterdir() if path.name.isdigit())
    return {line for path in files for line in path.read_text().splitlines()}, done.stdout


def test_no_command_needs_a_kernel_that_warmup_does_not_compile(tmp_path):
    compiled, shown = kernels_of(tmp_path / "warmup", "-m", "recipes.cli.main", "warmup")
    assert re.fullmatch(r"compiled \d+ kernels? in \d+ s; they are kept in \S.*\n", shown)
    (tmp_path / "uses.py").write_text(USES)
    (tmp_path / "systems").mkdir()
    used, _ = kernels_of(tmp_path / "used", tmp_path / "uses.py", tmp_path / "systems")
    assert len(used) > 40
    assert used - compiled == set()


def test_directories_that_cannot_be_written_are_refused(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").touch()
    assert main(["warmup", "--cache", str(tmp_path / "file" / "x")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/file/x/kernel: cannot be written: ")
    monkeypatch.setattr(kernels, "kernel_cache", lambda: ("/opt/program/readers/common/__pycache__", False))
    assert main(["warmup"]) == 2
    assert capsys.readouterr().err == (
        "error: directories such as /opt/program/readers/common/__pycache__: compiled kernels cannot be stored, "
        "neither here nor in the user's cache directory; expected --cache DIR, a writable directory\n"
    )


def test_a_step_that_fails_ends_warmup_with_its_fault(monkeypatch, capsys):
    monkeypatch.setattr(run, "SHARES", (("frames",),))
    monkeypatch.setattr(run, "make_toy_system", lambda root: None)
    monkeypatch.setattr(run.tasks, "extraction", lambda root: ("nothing", lambda _: 0, []))
    assert main(["warmup"]) == 2
    shown = capsys.readouterr().err
    assert re.fullmatch(r"error: warmup: cntk Dnn: .*/train.scp: No such file or directory; .*\n", shown)


def test_kernels_that_could_not_be_stored_are_an_error(monkeypatch, capsys):
    monkeypatch.setattr(run, "warm_up", lambda progress: (7, False))
    assert main(["warmup"]) == 2
    assert "compiled kernels could not be stored; expected space on the disk" in capsys.readouterr().err
