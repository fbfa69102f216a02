"""Memory per utterance of long lists, at the stages of benchmarks.scale."""

import tracemalloc

import pytest

from benchmarks import scale, scale_data
from features.copying import files as feature_files
from readers.htk import mlf
from readers.htk.storage import label_index

FEW, MANY = 400, 2400
LIMITS = {"lists": 400, "hcopy": 400, "reader": 700, "archive": 450, "lookup": 700, "score": 1000}  # bytes


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    root = tmp_path_factory.mktemp("scale")
    (root / "system").mkdir()
    scale_data.make_features(root / "system")
    for count in (FEW, MANY):
        scale_data.make_lists(root / "system", root / f"{count}", count)
    return root


def most_memory(stage, work, count):
    """Bytes that a stage allocates at most, without those of its first run, which imports modules."""
    tracemalloc.start()
    try:
        scale.STAGES[stage](work / "system", work / f"{count}", count)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("stage", LIMITS)
def test_memory_grows_by_little_more_than_the_names(work, stage, monkeypatch, capsys):
    monkeypatch.setattr(mlf, "LARGE", -1)
    monkeypatch.setattr(label_index, "BLOCK", 1 << 14)
    monkeypatch.setattr(label_index, "ENTRIES_AT_ONCE", 256)
    monkeypatch.setattr(scale, "WINDOW", 2000)
    monkeypatch.setattr(feature_files, "copy_files", feature_files.copy_files)  # the stage replaces it
    if stage == "lookup":  # reads what another stage writes
        for count in (FEW, MANY):
            scale.STAGES["archive"](work / "system", work / f"{count}", count)
    scale.STAGES[stage](work / "system", work / f"{FEW}", FEW)
    few, many = (most_memory(stage, work, count) for count in (FEW, MANY))
    assert (many - few) / (MANY - FEW) < LIMITS[stage]
