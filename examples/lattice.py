"""Find the words of a lattice with their confidences, and its consensus network."""

import tempfile
from pathlib import Path

import argonaut

LATTICE = """\
VERSION=1.0
N=4 L=4
I=0 t=0.00
I=1 t=0.30
I=2 t=0.70
I=3 t=1.00
J=0 S=0 E=1 W=turn a=-10.0 l=-1.0
J=1 S=1 E=2 W=left a=-12.0 l=-1.0
J=2 S=1 E=2 W=lift a=-11.0 l=-3.5
J=3 S=2 E=3 W=here a=-9.0 l=-1.0
"""

with tempfile.TemporaryDirectory() as directory:
    lattice, words, slots = (Path(directory) / name for name in ("turn.lat", "words.ctm", "slots.txt"))
    lattice.write_text(LATTICE)
    found = argonaut.find_words(argonaut.WordsOptions(lattices=lattice, output=words))
    argonaut.find_consensus(argonaut.ConsensusOptions(lattices=lattice, output=slots))
    print(slots.read_text(), end="")

for word in found.words["turn"]:
    print(f"{word.start:.2f} {word.end:.2f} {word.text} {word.confidence:.3f}")
