"""Experiments of Kaldi as bundles that align: the times of words and phones, and what is missing."""

import pytest

from decoder.recognizer import ForcedAligner
from readers.errors import ArgonautError, FormatError
from readers.htk.dictionary import Pronunciation
from readers.kaldi.hmm.phones import read_align_lexicon, with_positions
from recipes.packing import PackOptions, PartOptions, make_bundle
from tests.decoder.graph.foreign.static_graphs import PHONES, SPELLING, WORDS
from tests.readers.kaldi.fst_files import vector_file
from tests.readers.kaldi.models import Writer, put_tree
from tests.recipes.foreign.kaldi_experiment import RATE, sound, write_experiment

# A tree of triphones that asks for the neighbours of all but silence, with the same pdf for both answers.
ROOT = (1, [None, 0, *[(2, {1, 5}, (0, {1}, pdf, pdf), pdf) for pdf in range(1, len(PHONES))]])


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "tri"
    write_experiment(root)
    (root / "tree").write_bytes(put_tree(Writer(True), 3, 1, ROOT).content)
    (root / "graph" / "phones" / "optional_silence.int").write_text("1\n")
    return root


def pack(root, **parts):
    lines = []
    output = root.parent / "tri.argo"
    make_bundle(PackOptions(experiment=root, output=output, parts=PartOptions(**parts)), lines.append)
    return output, lines


@pytest.mark.parametrize("form", ["align_lexicon.int", "lexicon.txt", "given"])
def test_a_packed_experiment_aligns_a_transcript(root, form):
    lexicon = root / "lexicon.txt"
    if form == "align_lexicon.int":
        lexicon = root / "graph" / "phones" / form
        lexicon.write_text("0 0 1\n" + "".join(f"{n} {n} {' '.join(map(str, SPELLING[n]))}\n" for n in WORDS))
    else:
        lexicon = lexicon if form == "lexicon.txt" else root.parent / "words.dict"
        lexicon.write_text("".join(f"{word} {' '.join(word)}\n" for word in WORDS.values()))
    path, lines = pack(root, dict=lexicon if form == "given" else None)
    assert lines == []
    aligned = ForcedAligner.load(path).align(sound(["SIL", "a", "b", "a", "SIL", "b", "SIL"]), "ABA b", RATE)
    assert [(word.text, word.start, word.end) for word in aligned.words] == [
        ("ABA", pytest.approx(0.15, abs=0.03), pytest.approx(0.6, abs=0.03)),
        ("b", pytest.approx(0.75, abs=0.03), pytest.approx(0.9, abs=0.03)),
    ]
    assert [phone.text for phone in aligned.phones] == ["SIL", "a_B", "b_I", "a_E", "SIL", "b_S", "SIL"]
    assert [phone.start for phone in aligned.phones] == pytest.approx([0.15 * i for i in range(7)], abs=0.03)


def test_what_is_missing_for_alignment_is_told(root):
    path, lines = pack(root)
    phones = root / "graph" / "phones"
    lexicon = f"{phones / 'align_lexicon.int'} and lexicon.txt"
    assert lines == [f"{lexicon}: missing; the bundle recognises, but cannot align"]
    with pytest.raises(ArgonautError, match=r"no dictionary and state_map; .* tree and of .*lexicon\.txt"):
        ForcedAligner.load(path)
    (root / "lexicon.txt").write_text("aba a b x\n")
    unknown = "phone x of the dictionary; expected those of the model"
    assert pack(root)[1] == [f"{root / 'tree'}: {unknown}; the bundle recognises, but cannot align"]
    (root / "lexicon.txt").write_text("aba a b a\nb\nzz a b\n")
    assert pack(root)[1] == [
        f"{root / 'lexicon.txt'}: words without phones, which are left out: b",
        "words without a pronunciation, which are recognised, but cannot be aligned: a, ab, b",
    ]
    silence = (phones / "optional_silence.int").rename(phones / "silence")
    assert pack(root)[1][-1] == f"{phones / 'optional_silence.txt'}: missing; the bundle recognises, but cannot align"
    silence.rename(phones / "optional_silence.txt").write_text("SIL\n")
    (phones / "align_lexicon.int").write_text("0 0 1\n")
    with pytest.raises(FormatError, match=r"align_lexicon\.int: no words; expected at least one, with its phones"):
        pack(root)


def test_graphs_of_other_models_are_refused(root):
    (root / "graph" / "num_pdfs").write_text("10\n")
    with pytest.raises(ArgonautError, match=r"num_pdfs: '10'; expected 9, the pdfs of .*final\.mdl"):
        pack(root)
    (root / "graph" / "num_pdfs").write_text("9\n")
    (root / "graph" / "HCLG.fst").write_bytes(vector_file([0.0, 0.0], [(0, 19, 1, 0.5, 1)]))
    with pytest.raises(ArgonautError, match=r"HCLG\.fst: transition-id 19; expected 1 to 18, those of .*final\.mdl"):
        pack(root)


def test_lexicons_are_read_by_number_and_by_name(tmp_path):
    path = tmp_path / "align_lexicon.txt"
    path.write_text("<eps> <eps> SIL\nAB ab a_B b_E\nA A a_S\n")
    entries = [Pronunciation("AB", "ab", None, ("a_B", "b_E")), Pronunciation("A", None, None, ("a_S",))]
    assert read_align_lexicon(path, {}, {}) == entries
    path = tmp_path / "align_lexicon.int"
    path.write_text("0 0 1\n1 2 3 4\n3 3 5\n3 0 5\n")
    words = {0: "<eps>", 1: "AB", 2: "ab", 3: "A"}
    phones = {1: "SIL", 3: "a_B", 4: "b_E", 5: "a_S"}
    assert read_align_lexicon(path, words, phones) == [*entries, Pronunciation("A", "", None, ("a_S",))]
    plain = [Pronunciation("abba", None, None, ("a", "b", "b", "a")), Pronunciation("c", None, None, ("c",))]
    positioned = with_positions(plain, {"a_B", "b_I", "a_E", "c"})
    assert [entry.phones for entry in positioned] == [("a_B", "b_I", "b_I", "a_E"), ("c",)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("1 1\n", r"align_lexicon\.int:1: '1 1'; expected two words and at least one phone"),
        ("1 1 7\n", r"align_lexicon\.int:1: '7' has no name; expected numbers of words\.txt and phones\.txt"),
        ("1 1 a_S\n", r"align_lexicon\.int:1: 'a_S' has no name"),
    ],
)
def test_damaged_lexicons_are_refused(tmp_path, lines, message):
    (tmp_path / "align_lexicon.int").write_text(lines)
    with pytest.raises(FormatError, match=message):
        read_align_lexicon(tmp_path / "align_lexicon.int", {1: "a"}, {1: "SIL"})
