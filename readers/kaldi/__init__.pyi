# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.kaldi.alignments import read_alignments as read_alignments
from readers.kaldi.ark import ArkEntry as ArkEntry
from readers.kaldi.ark import read_ark_scp as read_ark_scp
from readers.kaldi.ark import read_matrix as read_matrix
from readers.kaldi.ark import scan_ark as scan_ark
from readers.kaldi.ark import write_matrix as write_matrix
from readers.kaldi.lattice import read_word_table as read_word_table
from readers.kaldi.lattice import write_kaldi_lattices as write_kaldi_lattices
from readers.kaldi.lattice import write_word_table as write_word_table
from readers.kaldi.specifiers import Specifier as Specifier
from readers.kaldi.specifiers import parse_specifier as parse_specifier
