# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.sources.lattices.lattice_archive import LatticeArchive as LatticeArchive
from readers.sources.lattices.lattice_archive import LatticeArchiveWriter as LatticeArchiveWriter
