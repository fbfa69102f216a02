"""The Praat script that aligns the selected Sound and TextGrid, run by Praat itself without its windows."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from readers.audio.header import read_audio_header
from readers.results import Word, read_textgrid
from readers.results.timed_words import write_tiers

SCRIPT = Path(__file__).resolve().parents[3] / "examples/praat/align.praat"
COMMAND = Path(sys.executable).with_name("argonaut")
PRAAT = shutil.which("praat")
# What a user does in the window: opens two files, selects both, and runs the script.
CLICKS = """\
form Clicks
    sentence Folder
    sentence Command
    sentence Tiers
endform
sound = Read from file: folder$ + "/corpus/anna/one.wav"
Shift times to: "start time", 5
grid = Read from file: folder$ + "/one.TextGrid"
Shift times to: "start time", 5
selectObject: sound, grid
runScript: "{script}", folder$ + "/tones.argo", folder$ + "/dict", tiers$, command$
Save as text file: folder$ + "/out.TextGrid"
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PRAAT is None or not COMMAND.exists(), reason="needs Praat and an installed command"),
]


def run_praat(root: Path, *arguments: object) -> subprocess.CompletedProcess:
    (root / "clicks.praat").write_text(CLICKS.format(script=SCRIPT), encoding="utf-8")
    command = [PRAAT, "--run", root / "clicks.praat", root, *arguments]
    environment = os.environ | {"HOME": str(root)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")


def test_praat_aligns_a_sound_and_its_transcript(phonetician):
    root = phonetician.root
    (root / "corpus/anna/one.txt").unlink()
    duration = read_audio_header(root / "corpus/anna/one.wav").seconds
    tiers = {"anna": [Word("AB C", 0.0, duration)], "my notes": [Word("CAB", 0.0, 0.25)]}
    write_tiers(root / "one.TextGrid", tiers, duration)
    done = run_praat(root, COMMAND, "anna")
    assert done.returncode == 0, done.stderr
    by_name = {tier.name: tier.intervals for tier in read_textgrid(root / "out.TextGrid")}
    assert list(by_name) == ["anna", "my notes", "words", "phones"]
    assert [interval.text for interval in by_name["words"] if interval.text] == ["AB", "C"]
    assert [interval.text for interval in by_name["phones"] if interval.text] == ["a", "b", "c"]
    assert 5.0 <= min(interval.start for interval in by_name["words"] if interval.text) < 5.0 + duration


def test_praat_shows_why_nothing_was_aligned(phonetician):
    root = phonetician.root
    (root / "corpus/anna/one.txt").unlink()
    write_tiers(root / "one.TextGrid", {"anna": [Word("AB C", 0.0, 0.01)]}, 0.5)
    missing = run_praat(root, "/none/argonaut", "")
    assert missing.returncode != 0
    assert "Argonaut has aligned nothing." in missing.stderr
    assert "/none/argonaut align " in missing.stderr
    wrong = run_praat(root, COMMAND, "otto")
    assert "no tier otto; expected one of its tiers anna" in wrong.stderr
