"""How words of transcripts are looked up, and how they are written: case, brackets and hyphens."""

import json
from pathlib import Path

import pytest

from decoder.recognizer import ForcedAligner, Recognizer, pack
from readers.corpora.annotations import Annotations
from readers.errors import ConfigError, GraphError
from readers.htk.mlf import read_mlf
from readers.results.tier_files import read_tiers
from readers.results.timed_words import read_ctm
from tests.recipes.align.conftest import RUN, SPOKEN, grid, spoken
from tests.recipes.cli.bundle.conftest import parts_of


def test_words_are_looked_up_in_the_case_of_the_dictionary_and_written_as_in_the_transcript(phonetician):
    for name, words in SPOKEN.items():
        phonetician.write(f"corpus/{name}.txt", f"{words.capitalize()},\n")
    assert phonetician.run("import", "folder", "corpus", "--out", "lists").status == 0
    for source, out in (("corpus", "aligned"), ("lists", "other")):
        done = phonetician.run("align", source, *RUN[1:3], out, "-j", "1", "--format", "textgrid,ctm,mlf")
        assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed")
        assert done.out[0] == f"{source}: words are looked up in upper case, of which the dictionary has more"
    assert spoken(grid(phonetician, "anna/one").tiers[0]) == ["Ab", "c"]
    assert [one.text for one in read_ctm("aligned/words.ctm")["otto/three"]] == ["Ba", "ba", "c"]
    assert read_mlf("aligned/alignment.mlf").lookup("two.lab")[0].aux[0][0] == "Cab"
    files = [phonetician.root / out / "anna/one.TextGrid" for out in ("aligned", "other")]
    assert files[0].read_bytes() == files[1].read_bytes()
    long = phonetician.run("align", *RUN, "--long", "0", "--case", "upper")
    assert (long.status, "looked up" in long.out[0]) == (0, False)
    assert spoken(grid(phonetician, "otto/three").tiers[0]) == ["Ba", "ba", "c"]
    kept = phonetician.run("align", *RUN, "--case", "keep")
    assert kept.status == 2


def test_words_with_punctuation_are_known_in_the_case_of_the_dictionary(phonetician):
    phonetician.write("dict", (phonetician.root / "dict").read_text() + "C. b a\n")
    phonetician.write("corpus/anna/one.txt", "ab c\n")
    phonetician.write("corpus/anna/two.txt", "cab.\n")
    phonetician.write("corpus/otto/three.txt", "c. ba, c?\n")
    assert phonetician.run("align", *RUN).status == 0
    assert spoken(grid(phonetician, "otto/three").tiers[0]) == ["c.", "ba", "c"]


def test_words_in_round_brackets_and_with_hyphens_are_found(phonetician):
    phonetician.write("corpus/otto/three.txt", "(Ba) ba-c\n")
    assert phonetician.run("align", *RUN).status == 0
    assert spoken(grid(phonetician, "otto/three").getTier("words")) == ["Ba", "ba", "c"]


def test_the_aligner_treats_case_and_punctuation_as_the_command_does(phonetician):
    aligner = ForcedAligner.load("tones.argo", "dict")
    expected = aligner.align("corpus/otto/three.wav", "BA BA C").words
    found = aligner.align("corpus/otto/three.wav", "Ba, ba c.").words
    assert [word.text for word in found] == ["Ba", "ba", "c"]
    assert [(word.start, word.end) for word in found] == [(word.start, word.end) for word in expected]
    found = aligner.align_long("corpus/otto/three.wav", ["Ba", "cab", "ba", "c"])
    assert [word.text for word in found.words] == ["Ba", "ba", "c"]
    assert [stretch.words for stretch in found.damage] == [("cab",)]
    keeping = ForcedAligner.load("tones.argo", "dict", case="keep")
    notes = keeping.align("corpus/otto/three.wav", "BA ba c").notes
    assert notes == ("no pronunciation: ba; any phones", "no pronunciation: c; any phones")
    with pytest.raises(GraphError, match="words not in the dictionary: ba, c; expected"):
        keeping.align_frames("corpus/otto/three.wav", "BA ba c")
    with pytest.raises(ConfigError, match="case 'title'; expected auto, keep, upper, lower"):
        ForcedAligner.load("tones.argo", "dict", case="title")


def test_the_dictionary_and_the_pronunciation_model_of_a_bundle_are_used(phonetician, small_system, monkeypatch):
    root = phonetician.root
    lines = (root / "dict").read_text().splitlines(keepends=True)
    phonetician.write("train.dict", "".join(line for line in lines if not line.startswith("<")))
    assert phonetician.run("g2p", "train", "train.dict", "--order", "2", "-o", "tones.g2p").status == 0
    phonetician.write("small.dict", "".join(line for line in lines if not line.startswith("CAB")))
    (root / "models").mkdir()
    monkeypatch.setenv("ARGONAUT_MODELS", str(root / "models"))
    parts = {"dictionary": root / "small.dict", "g2p": root / "tones.g2p"}
    pack(parts_of(small_system, **parts), root / "models" / "en.argo")
    done = phonetician.run("align", "corpus", "en", "aligned", "-j", "1")
    assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed")
    assert (root / "aligned/guessed.dict").read_text().split()[0::2][0] == "CAB"
    assert spoken(grid(phonetician, "anna/two").getTier("phones")) == ["c", "a", "b"]
    recogniser = Recognizer.load("en").with_grammar(["CAB", "AB C"])
    assert [(entry.word, entry.phones) for entry in recogniser.guessed] == [("CAB", ("c", "a", "b"))]
    assert recogniser.transcribe("corpus/anna/two.wav").text == "CAB"
    done = phonetician.run("align", "corpus", "aligned2", "-j", "1")
    assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed")
    assert (root / "aligned2/anna/two.TextGrid").read_text() == (root / "aligned/anna/two.TextGrid").read_text()
    done = phonetician.run("align", "corpus", "aligned3", "--language", "xx")
    assert "xx: no such file; expected a bundle, or the name of an installed one: en" in done.fault
    done = phonetician.run("align", "--train", "corpus", "aligned2")
    assert "DICT is missing; expected CORPUS, DICT and OUT with --train" in done.fault


def test_cut_off_words_sounds_and_unknown_words_are_aligned_as_they_are_written(phonetician):
    """`three` says BA BA C: the second BA is the end of a word, C the beginning of CAB."""
    phonetician.write("corpus/anna/one.txt", "ab <Laughs>\n")
    phonetician.write("corpus/anna/two.txt", "c-, <unk>, [big noise] xxx\n")
    phonetician.write("corpus/otto/three.txt", "Ba -a, <cutoff-cab>\n")
    formats = ("--format", "textgrid,eaf,json,ctm,csv,mlf", "--annotations", "xxx=breath")
    done = phonetician.run("align", *RUN, *formats)
    assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed")
    assert "annotations and unknown words: 3 cutoff, 1 laughter, 1 breath, 1 noise, 1 unknown" in done.out
    expected = {
        "anna/one": ["ab", "<Laughs>"],
        "anna/two": ["c-", "<unk>", "[big_noise]", "xxx"],
        "otto/three": ["Ba", "-a", "<cutoff-cab>"],
    }
    ctm = read_ctm("aligned/words.ctm")
    csv = (phonetician.root / "aligned/alignment.csv").read_text()
    for name, words in expected.items():
        assert spoken(grid(phonetician, name).tiers[0]) == words
        assert [word.text for word in ctm[name]] == words
        assert [
            word["word"]
            for word in json.loads((phonetician.root / f"aligned/{name}.json").read_text())["utterances"][0]["words"]
        ] == words
        eaf = read_tiers(phonetician.root / f"aligned/{name}.eaf")
        assert [interval.text for interval in eaf[0].intervals if interval.text] == words
        labels = read_mlf("aligned/alignment.mlf").lookup(f"{Path(name).name}.lab")
        assert [label.aux[0][0] for label in labels if label.aux] == words
        assert all(f",{word}," in csv for word in words)
    assert spoken(grid(phonetician, "otto/three").tiers[1]) == ["b", "a", "b", "a", "c"]
    with pytest.raises(ConfigError, match="kind 'x'; expected cutoff, laughter, breath, noise, unknown"):
        Annotations.of(["xxx=x"])
    assert "kind cutoff, laughter" in phonetician.run("align", *RUN, "--annotations", "xxx=x").fault


def test_the_case_of_a_cut_off_word_is_that_of_the_dictionary(phonetician):
    aligner = ForcedAligner.load("tones.argo", "dict")
    assert [label.wholes for text in ("ba-", "[hes_ba]", "-ba") for label in aligner.labels([text])] == [("BA",)] * 3


def test_a_dictionary_of_further_words_completes_the_other(phonetician):
    phonetician.write("corpus/otto/three.txt", "Baba c\n")
    phonetician.write("own.dict", "Baba b a b a\nc b\nc c\n")
    done = phonetician.run("align", *RUN, "--words", "own.dict")
    assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed")
    assert spoken(grid(phonetician, "otto/three").tiers[1]) == ["b", "a", "b", "a", "c"]
    assert spoken(grid(phonetician, "anna/one").tiers[1]) == ["a", "b", "c"]
    assert (phonetician.root / "aligned/variants.csv").read_text().splitlines()[1:] == ["C,c,2", "C,b,0"]
