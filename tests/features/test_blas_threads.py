"""Features have the same bits for any number of threads and processes."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from features import FeatureConfig, extract, extract_files
from features.streaming import FeatureStream
from readers.audio.audio_file import read_audio, write_wav
from readers.common.environment import blas_thread_calls
from readers.htk.parameter_file import read_htk

RATE = 16000
KINDS = {
    "FBANK_D_A": FeatureConfig(target_kind="FBANK_D_A", num_channels=40, use_power=True),
    "MFCC_0": FeatureConfig(target_kind="MFCC_0", zero_mean_source=True, use_power=True),
    "PLP": FeatureConfig(target_kind="PLP"),
}
COMMANDS = {
    "one process": (["-j", "1"], {}),
    "four processes": (["-j", "4"], {}),
    "one process, one thread": (["-j", "1"], {"OMP_NUM_THREADS": "1"}),
    "two processes, four threads": (["-j", "2"], {"OPENBLAS_NUM_THREADS": "4"}),
}


@pytest.fixture
def samples() -> np.ndarray:
    return np.random.default_rng(0).integers(-3000, 3000, 6 * RATE)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_of_blas_do_not_change_features(threads_of_blas, samples, kind):
    config = KINDS[kind]
    found = {}
    for threads in (1, 2, 4):
        blas_thread_calls()[1](threads)
        stream = FeatureStream(config, RATE)
        found[threads] = extract(samples, config, RATE), np.hstack([stream.push(samples), stream.finish()])
        assert threads_of_blas() == threads
    for threads in (2, 4):
        for one, other in zip(found[1], found[threads]):
            np.testing.assert_array_equal(one, other)


def test_features_in_memory_are_those_of_files(threads_of_blas, samples, tmp_path):
    config = KINDS["FBANK_D_A"]
    pairs = []
    for number in range(10):
        source = tmp_path / f"{number}.wav"
        write_wav(source, np.roll(samples, number), RATE)
        pairs.append((source, tmp_path / f"{number}.fbank"))
    extract_files(pairs, config, workers=2)
    for source, target in pairs:
        np.testing.assert_array_equal(read_htk(target).frames, extract(read_audio(source)[0], config, RATE))


@pytest.mark.slow
def test_the_command_writes_the_same_files_for_any_number_of_processes(samples, tmp_path):
    (tmp_path / "config").write_text("TARGETKIND = FBANK_Z_D_A\nNUMCHANS = 40\nUSEPOWER = T\n")
    for number in range(20):
        write_wav(tmp_path / f"{number}.wav", np.roll(samples, number), RATE)
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    checksums = {}
    for name, (options, variables) in COMMANDS.items():
        out = tmp_path / name.replace(" ", "-")
        (tmp_path / "list").write_text("".join(f"{tmp_path}/{n}.wav {out}/{n}.fbank\n" for n in range(20)))
        subprocess.run(
            [sys.executable, "-m", "recipes.cli.main", "hcopy", "-C", "config", "-S", "list", *options],
            env=plain | variables | {"PYTHONPATH": str(Path(__file__).parents[2])},
            cwd=tmp_path,
            capture_output=True,
            check=True,
        )
        contents = [(out / f"{number}.fbank").read_bytes() for number in range(20)]
        checksums[name] = hashlib.sha256(b"".join(contents)).hexdigest()
    assert len(set(checksums.values())) == 1, checksums
