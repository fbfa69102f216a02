"""Lattice files of argon in a reader: the same states as `argonaut denominator` finds with the same search."""

from pathlib import Path

import numpy as np
import pytest

from readers.config.config import Config
from readers.sources.frames.htk_mlf_reader import HTKMLFReader
from readers.sources.lattices.lattice_archive import LatticeArchive
from readers.tables.hmm_tables import read_transitions
from tests.recipes.cli.test_denominator import TEST

READER = """reader=[
readerType=HTKMLFReader; frameMode=false; nbruttsineachrecurrentiter=2
features=[ scpFile=test.scp; dim=30 ]
labels=[ mlfFile=test.states.mlf; labelMappingFile=states.list; labelDim=8 ]
lattices=[ denLatTocFile=slf.toc; numLatTocFile=slf.toc ]
hmms=[ phoneFile=phones; transPFile=matrices ]
]"""


def best_lm(lattice):
    """The best LM score of a path."""
    score = np.full(lattice.num_nodes, -np.inf)
    score[0] = 0
    for start, end, lm in zip(lattice.start_node, lattice.end_node, lattice.lm_score):
        score[end] = max(score[end], score[start] + lm)
    return float(score[-1])


@pytest.mark.slow
def test_files_of_argon_are_lattices_of_the_reader(user):
    assert user.run("denominator", *TEST, "-j", "1", "--lattice-beam", "8").status == 0
    Path("lat").mkdir()
    options = ("-sil-cost", "0", "-word_end_beam_frac", "1", "--lattice-beam", "8", "--no-partial")
    decoded = user.decode("-lattice-prefix", "lat/", "-detailed-alignment", *options, "-outmlf", "test.states.mlf")
    assert decoded.status == 0, decoded.err
    names = Path("test.scp").read_text().split()
    user.write("slf.toc", "".join(f"{name.removesuffix('.fb')}=lat/{i}.lat\n" for i, name in enumerate(names, 1)))
    user.write("phones", "".join(f"{phone} {phone} {phone}_s2 {phone}_s3\n" for phone in ("a", "b", "c", "sil")))
    ln, rows = read_transitions("graph/transitions"), []
    for phone in ("a", "b", "c", "sil"):
        (stay, leave), (stay3, leave3) = (np.exp(ln[f"{phone}_s{i}"]).tolist() for i in (2, 3))
        rows.append(f"{phone} 2 1 0 0 {stay!r} {leave!r} 0 0 {stay3!r} {leave3!r}\n")
    user.write("matrices", "".join(rows))
    reader = HTKMLFReader(Config.from_text(READER, "r.cntk").block("reader"))
    assert reader.skipped == []
    archive, seen = LatticeArchive("den/lattices.arec"), 0
    for minibatch in reader.minibatches(0):
        for placed in minibatch.layout.supervisions:
            found, made = placed.supervision, archive.lattice(placed.supervision.name)
            seen += 1
            assert found.num_frames == made.num_frames
            columns = ("start_node", "end_node", "first_frame", "num_arc_frames", "senone", "starts_word")
            if archive.figures(found.name)["added"]:
                continue
            for name in columns:
                np.testing.assert_array_equal(getattr(found, name), getattr(made, name), err_msg=name)
            np.testing.assert_allclose(found.transition_score, made.transition_score, atol=1e-4)
            # The graph charges a part of a word's cost earlier or later, so only the sums of paths are equal.
            assert best_lm(found) == pytest.approx(best_lm(made), abs=1e-2)
    assert seen == 6
