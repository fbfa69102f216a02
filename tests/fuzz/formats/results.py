"""Results of recognition, and files that are written for other programs, of which only `info` knows the figures."""

import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from decoder.alignment.boundaries import boundary_figures, compare_boundaries, read_tiers
from decoder.lattices.links import weigh
from decoder.lattices.openfst import lattice_acceptor, write_binary
from decoder.recognizer.jobs.decoding.transcripts import read_transcripts
from decoder.scoring.error_counts import score
from decoder.scoring.words import read_words
from readers.errors import ArgonautError
from readers.htk.scp import ScpEntry
from readers.htk.slf import read_slf
from readers.kaldi.lattice import read_kaldi_lattices, word_table, write_kaldi_lattices
from readers.results import timed_words
from readers.results.indexed_archive import ArchiveWriter, IndexedArchive
from readers.results.nbest import Hypothesis, read_nbest, write_nbest
from readers.results.timed_words import Word, read_ctm, write_words
from readers.results.trn import read_named_lines, read_trn
from recipes.file_kinds import describe_file
from tests.fuzz.format import Format, text, written
from tests.fuzz.formats.htk import lattice
from tests.fuzz.mutators import json_mutator

UTTERANCES = {
    "u1": [Word("YES", 0.25, 0.5, 0.75), Word("NO", 0.5, 1.5)],
    "u2": [Word("7", 0, 2, 0.25)],
}
REFERENCES = {"u1": ["YES", "NO"], "u2": ["7"]}


def timed(form: str):
    """A seed of words with times in a form for one utterance or for all."""

    def write(path: Path, rng: random.Random):
        write_words(path.parent / f"w.{form}", UTTERANCES)
        (path.parent / f"w.{form}").rename(path)

    def write_one(path: Path, rng: random.Random):
        phones = {"u1": [Word("y", 0.25, 0.5), Word("n", 0.5, 1.5)]}
        write_words(path.parent / f"w.{form}", UTTERANCES, phones)
        next((path.parent / "w").glob("u1.*")).rename(path)

    return written(write if form in timed_words.TOGETHER else write_one)


def of_lattice(convert: Callable):
    """A seed that is made from a lattice: convert(path, lattice)."""

    def write(path: Path, rng: random.Random):
        while True:
            (path.parent / "l").write_bytes(lattice(rng, path.parent))
            try:
                convert(path, read_slf(path.parent / "l"))
                return
            except ArgonautError:  # words on nodes, for instance
                continue

    return written(write)


def kaldi_lattice(path, found) -> None:
    write_kaldi_lattices(path, [("u1", found), ("u2", found)], word_table(found.word))


def binary_kaldi_lattice(path, found) -> None:
    write_kaldi_lattices(path, [("u1", found), ("u2", found)], word_table(found.word), binary=True)


def read_lattices(path) -> None:
    for _, found in read_kaldi_lattices(path, {f"w{number}": number for number in range(1, 99)}):
        weigh(found)


def openfst(path, found) -> None:
    acceptor = lattice_acceptor(found)
    write_binary(path, acceptor, word_table(acceptor.symbols))


def info(path) -> None:
    describe_file(str(path), verbose=1)


def score_against(path) -> None:
    """Score the words of a file against a fixed reference."""
    found = read_words(str(path), named_lines=True)
    for references in (REFERENCES, found):
        try:
            score(references, found)
        except ArgonautError:
            continue


def transcripts(path) -> None:
    read_trn(path)
    score_against(path)


def alignment(path) -> None:
    """Read transcripts for alignment, whatever their form."""
    entries = [ScpEntry("u1", "u1.wav"), ScpEntry("u2", "u2.wav")]
    read_transcripts(str(path), entries, "list")


def lines(path) -> None:
    read_named_lines(path)
    score_against(path)


def ctm(path) -> None:
    found = read_ctm(path)
    for form in ("ctm", "stm", "json", "srt", "textgrid"):
        write_words(path.parent / f"w.{form}", found)
    score_against(path)


def tiers(path) -> None:
    """Read an alignment, and compare it with itself."""
    for utterances in read_tiers(path).values():
        boundary_figures(compare_boundaries(utterances, utterances))


def nbest(path) -> None:
    write_nbest(path.with_suffix(".out"), read_nbest(path))
    read_nbest(path.with_suffix(".out"))


def records(path: Path, rng: random.Random) -> None:
    with ArchiveWriter(path, "counts", {"seed": 1}) as archive:
        for number in range(rng.randrange(4)):
            archive.add(f"u{number}", {"n": np.arange(rng.randrange(9)), "x": np.ones((2, 3), np.float32)}, {"a": 1})


def archived(path) -> None:
    """Read all records, and take the file for one whose writer was stopped."""
    try:
        archive = IndexedArchive(path, "counts")
        for name in archive.names:
            assert archive.find(f"a/{name}") == name
            sum(array.sum() for array in archive.record(name).arrays.values())
    finally:
        path.rename(path.with_name("y.part"))
        with ArchiveWriter(path.with_name("y"), "counts", {"seed": 1}) as archive:
            archive.add("another", {})


def picture(rng: random.Random, directory) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\2\0\0\0"


LISTS = {"u1": [Hypothesis(("YES",), -10, -1), Hypothesis((), -12, 0)], "u2": [Hypothesis(("7", "7"), -1, -2)]}
RECORDS = (
    '{"utt_id": "u1", "level": "phone", "intervals": [{"label": "y", "start": 0.25, "end": 0.5, "conf": null}]}\n',
    '{"utt_id": "u1", "words": [], "phones": [{"label": "sil", "start": 0, "end": 1}]}\n',
)
SLOTS = "u1 [ YES 0.7500 - 0.2500 ] [ NO 1.0000 ]\nu2 [ 7 0.5 8 0.5 ]\n"

FORMATS = (
    Format("trn", text("<s> A B </s> (u1)\nC (u2)\n", "YES NO (u1)\nA B (u2)\n"), transcripts),
    Format("named lines", text("u1 YES NO\nu2 7\n"), lines),
    Format("transcripts for alignment", text("YES NO\n7\n", "u1 YES NO\nu2 7\n", "YES NO (u1)\n7 (u2)\n"), alignment),
    Format("ctm", timed("ctm"), ctm),
    Format("stm", timed("stm"), info),
    Format("words in json", timed("json"), info, (json_mutator,)),
    Format("alignment records", text(*RECORDS), tiers, (json_mutator,)),
    Format("subtitles srt", timed("srt"), info),
    Format("subtitles vtt", timed("vtt"), info),
    Format("textgrid", timed("textgrid"), info),
    Format("nbest", written(lambda path, rng: write_nbest(path, LISTS)), nbest),
    Format("consensus networks", text(SLOTS), info),
    Format("confusions", text("5\ta\tb\n2\tc\t***\n"), info),
    Format("kaldi lattices", of_lattice(kaldi_lattice), info),
    Format("kaldi lattices in binary form", of_lattice(binary_kaldi_lattice), read_lattices, binary=True),
    Format("openfst binary", of_lattice(openfst), info, binary=True),
    Format("indexed archive", written(records), archived, binary=True),
    Format("picture", picture, info, binary=True),
)
