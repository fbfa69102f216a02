"""A flat start on five minutes of AN4: boundaries of phones near those of HTK's alignment."""

import pytest

from decoder.alignment.boundaries import compare_boundaries
from readers.htk.mlf import read_mlf
from readers.htk.scp import write_pairs
from recipes.an4.corpus import ALIGNMENT, DICTIONARY, find_sets
from recipes.an4.prepare import write_words
from recipes.cli.main import main
from recipes.lvcsr.run import CONFIG

pytestmark = [pytest.mark.corpus, pytest.mark.slow]


def test_most_boundaries_are_near_those_of_htk(an4_dir, tmp_path):
    sets = find_sets(an4_dir)
    utterances = [*sets["train"], *sets["dev"]][::9]
    write_pairs(tmp_path / "list", [(one.audio, tmp_path / "mfc" / f"{one.name}.mfc") for one in utterances])
    write_words(utterances, tmp_path / "words.mlf")
    files = ("--features", tmp_path / "scp", "--words", tmp_path / "words.mlf", "--dict", an4_dir / DICTIONARY)
    for command in (
        ("hcopy", "-C", CONFIG / "tying.hcopy", "-S", tmp_path / "list", "--scp", tmp_path / "scp", "-j", 1),
        ("flatstart", *files, "--gaussians", 300, "--out", tmp_path / "flat", "-j", 2),
    ):
        assert main([str(word) for word in command]) == 0
    found = compare_boundaries(read_mlf(an4_dir / ALIGNMENT), read_mlf(tmp_path / "flat" / "states.mlf"), 1, {"sil"})
    assert found.num_utterances == len(utterances) == 106
    assert found.percent_within(20) > 76  # 80 % when this was written
    assert found.num_missed < 0.01 * found.total
