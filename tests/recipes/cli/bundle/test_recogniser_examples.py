"""The examples that take a bundle and a recording: their output with the bundle of the tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
NAMES = ("align", "transcribe", "stream", "n_best", "hotwords", "grammar")


def output_of(name: str, *arguments: object) -> list[str]:
    """Run an example, and return the lines that it prints."""
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def files(packed) -> tuple[Path, Path]:
    """The bundle, and the recording of AB C."""
    return packed / "digits.argo", packed / "speech.wav"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_without_arguments_an_example_tells_how_it_is_called(name):
    assert f"python examples/{name}.py exp/demo/timit.argo " in "\n".join(output_of(name))


@pytest.mark.slow
def test_transcribe(files):
    first, *words, last = output_of("transcribe", *files)
    assert first == f"{files[1]}: AB C"
    assert [line.split()[2] for line in words] == ["AB", "C"]
    assert last.startswith("2 words in ")
    assert last.endswith("files: 1 done, 0 skipped, 0 failed")


@pytest.mark.slow
def test_stream(files):
    *events, last = output_of("stream", *files)
    assert [line.partition(" s: ")[2] for line in events if " s: " in line] == ["AB C"]
    assert last.startswith("utterances: 1 done, 0 skipped, 0 failed; real-time factor ")


@pytest.mark.slow
def test_n_best(files):
    lines = output_of("n_best", *files)
    assert lines[0].startswith("1 AB [")
    assert [line.split()[0] for line in lines] == [str(rank) for rank in range(1, 1 + len(lines))]


@pytest.mark.slow
def test_hotwords(files):
    without, *preferring = output_of("hotwords", *files, "BA")
    assert without.startswith("without: AB [")
    assert [line.partition(":")[0] for line in preferring] == ["bonus 2", "bonus 8"]


@pytest.mark.slow
def test_grammar(files):
    (accepted,) = output_of("grammar", *files, "AB C", "CAB")
    assert accepted.startswith("accepted: AB C (score ")


@pytest.mark.slow
def test_align(packed, small_system, tmp_path):
    (tmp_path / "AB C.wav").write_bytes((packed / "speech.wav").read_bytes())
    (tmp_path / "AB C.txt").write_text("AB C")
    *words, last = output_of(
        "align", packed / "digits.argo", small_system / "dict", tmp_path / "AB C.wav", tmp_path / "out"
    )
    assert [line.rsplit(None, 4)[0::3] for line in words] == [["AB C", "AB"], ["AB C", "C"]]
    assert last == "utterances: 1 done, 0 skipped, 0 failed; 1 TextGrid files"
