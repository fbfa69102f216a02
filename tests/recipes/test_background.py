"""Recordings without speech, beside what a larger training set has left."""

from pathlib import Path

from recipes.background import background_files, write_background


def test_recordings_of_a_larger_training_set_are_not_listed(tmp_path):
    def extracted(seconds: float) -> list[str]:
        write_background(tmp_path, seconds, 8000, 0)
        for audio in (tmp_path / "audio").iterdir():
            feature_file = tmp_path / "features" / f"{audio.stem}.fbank"
            feature_file.parent.mkdir(exist_ok=True)
            feature_file.touch()
        return [name for name, _ in background_files(tmp_path)]

    assert extracted(60) == ["background-0000", "background-0001", "background-0002"]
    assert extracted(20) == ["background-0000"]
    Path(tmp_path / "features" / "background-0000.fbank").unlink()  # could not be extracted
    assert background_files(tmp_path) == []
