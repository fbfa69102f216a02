"""`argonaut align` and ELAN: transcripts in .eaf files, and results in them."""

from itertools import pairwise

import argonaut
from readers.results import Interval, Tier, read_elan
from readers.results.elan import ElanDocument
from tests.recipes.align.conftest import RUN


def tiers(path):
    return {tier.name: tier for tier in read_elan(path).tiers}


def test_the_tiers_of_a_transcript_stay(phonetician):
    corpus, aligned = phonetician.root / "corpus", phonetician.root / "aligned"
    assert phonetician.run("align", *RUN, "--format", "eaf").status == 0
    words = tiers(aligned / "anna/one.eaf")["words"]
    assert [interval.text for interval in words.intervals] == ["AB", "C"]
    assert read_elan(aligned / "anna/one.eaf").media == ((corpus / "anna/one.wav").as_uri(),)
    (corpus / "anna/one.txt").unlink()
    utterance = Interval(words.intervals[0].start - 0.05, words.intervals[-1].end + 0.05, "AB C")
    transcript = ElanDocument.empty(corpus / "anna/one.eaf").with_tiers(
        [Tier("orth@A", False, (utterance,), speaker="Anna"), Tier("doubts", False, (Interval(0.1, 0.2, "C C"),))]
    )
    transcript.write(corpus / "anna/one.eaf")
    run = (*RUN, "--format", "eaf,textgrid", "--tiers", "orth@A")
    done = phonetician.run("align", *run)
    assert (done.status, done.out[0]) == (0, "2 of 3 recordings are unchanged and were not aligned again")
    document = read_elan(aligned / "anna/one.eaf")
    assert list(tiers(aligned / "anna/one.eaf")) == ["orth@A", "doubts", "words", "phones"]
    assert [(tier.parent, tier.speaker) for tier in document.tiers[2:]] == [("orth@A", "Anna"), ("words", "Anna")]
    assert [interval.text for interval in document.tiers[2].intervals] == ["AB", "C"]
    assert [interval.text for interval in document.tiers[3].intervals] == ["a", "b", "c"]
    assert (corpus / "anna/one.eaf").read_bytes() == transcript.raw
    # Another tier of the transcript changes the file, not the alignment.
    transcript.with_tiers([Tier("more", False, ())]).write(corpus / "anna/one.eaf")
    done = phonetician.run("align", *run)
    assert done.changed == {"aligned/anna/one.eaf", "aligned/.results/anna/one.json"}
    assert done.out[0] == "3 of 3 recordings are unchanged and were not aligned again"
    assert "more" in tiers(aligned / "anna/one.eaf")


def test_a_broken_elan_file_is_one_line(phonetician):
    phonetician.write("corpus/anna/one.eaf", "<!DOCTYPE x><ANNOTATION_DOCUMENT/>")
    (phonetician.root / "corpus/anna/one.txt").unlink()
    done = phonetician.run("align", *RUN)
    assert done.status == 1
    assert "one.eaf:1: a document type declaration; expected none" in (phonetician.root / "aligned/report").read_text()


def test_tiers_are_chosen_when_a_corpus_is_imported(phonetician):
    assert phonetician.run("import", "folder", "corpus", "--out", "lists").status == 0
    fault = phonetician.run("align", "lists", *RUN[1:], "--tiers", "orth").fault
    assert fault == "lists: a corpus that was imported; expected no tiers, which `argonaut import` takes"


def test_an_alignment_has_the_states_of_its_phones(phonetician):
    options = argonaut.AlignOptions(
        corpus="corpus/anna/one.wav", dict="dict", model="tones.argo", out="aligned", threads=1
    )
    result = argonaut.align(options)
    (recording,) = result.recordings
    states, phones = recording.labels("states"), recording.labels("phones")
    assert (states[0].start, states[-1].end) == (phones[0].start, phones[-1].end)
    assert {state.confidence for state in states} == {phone.confidence for phone in phones}
    assert all(a.end <= b.start for a, b in pairwise(states))
    recording.save("one.mlf", ["words", "phones", "states"])
    assert argonaut.Alignment.read("one.mlf").labels("states")[0].text == states[0].text
    again = argonaut.align(options)
    assert (again.num_unchanged, again.recordings) == (1, result.recordings)
