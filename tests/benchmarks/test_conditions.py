"""The benchmark of conditions: what it makes of a recording, and its faults."""

import numpy as np
import pytest

from benchmarks.conditions import CONDITIONS, NOISE, SILENCE, main


def test_conditions_change_a_recording_as_they_say():
    rng = np.random.default_rng(0)
    samples = (1000 * rng.standard_normal(16000)).astype(np.int16)
    plain, quiet, noisy, narrow, everything = (change(samples, 16000, rng) for change in CONDITIONS.values())
    assert plain[0] is samples
    assert len(quiet[0]) == len(samples) + 2 * SILENCE * 16000
    ratio = np.var(samples) / np.var(noisy[0] - samples)
    assert 10 * np.log10(ratio) == pytest.approx(NOISE, abs=0.2)
    assert (len(narrow[0]), narrow[1]) == (8000, 8000)
    assert (len(everything[0]), everything[1]) == (8000 * (1 + 2 * SILENCE), 8000)


def test_another_directory_is_refused_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["conditions", "en", "nowhere"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    fault = capsys.readouterr().err
    assert fault.startswith("error: nowhere: no etc/")
    assert fault.count("\n") == 1
