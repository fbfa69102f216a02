"""`argonaut align`: overlapping utterances, transcripts beside the recordings, long stretches, damaged models."""

import csv
import json
import shutil
import zipfile

import pytest

from decoder.results.alignment import AlignedUtterance, Alignment, tiers_of
from readers.results import Word
from tests.recipes.align.conftest import RUN, SPOKEN


def utterance(speaker: str, start: float, end: float, *words: tuple[str, float, float], reason: str = ""):
    timed = tuple(Word(*word, 0.01) for word in words)
    phones = tuple(one._replace(text=one.text.lower()) for one in timed)
    return AlignedUtterance(f"{speaker}-{start}", speaker, None, start, end, timed, phones, reason)


def labels(tier) -> list[str]:
    return [one.text for one in tier]


def test_no_word_is_lost_where_utterances_of_a_speaker_overlap():
    one = utterance("anna", 0.0, 3.0, ("A", 0.5, 1.0), ("B", 1.0, 2.5))
    two = utterance("anna", 0.1, 2.0, ("C", 1.2, 1.8))
    three = utterance("anna", 2.4, 4.0, ("D", 2.6, 3.5))
    other = utterance("anna (2)", 3.0, 4.0, ("E", 3.0, 3.5))
    recording = Alignment("both", "both.wav", 4.0, (one, two, three))
    tiers = tiers_of(recording, [])
    assert {name: labels(tier) for name, tier in tiers.items() if name.endswith("words")} == {
        "anna - words": ["A", "B", "D"],
        "anna (2) - words": ["C"],
    }
    assert labels(tiers["anna (2) - phones"]) == ["c"]
    tiers = tiers_of(recording._replace(utterances=(one, two, three, other)))
    assert (labels(tiers["anna (2) - words"]), labels(tiers["anna (3) - words"])) == (["E"], ["C"])


@pytest.mark.parametrize("order", [1, -1])
def test_an_utterance_without_words_hides_no_words_of_others(order):
    lost = utterance("anna", 0.0, 4.0, reason="too short")
    found = utterance("anna", 0.5, 2.0, ("A", 1.0, 2.0))
    tiers = tiers_of(Alignment("both", "both.wav", 4.0, (lost, found)[::order]))
    assert list(tiers) == ["words", "phones"]
    assert tiers["words"] == [Word("", 0.0, 1.0), Word("A", 1.0, 2.0, 0.01)]


def test_transcripts_beside_the_recordings_are_not_overwritten(phonetician):
    assert phonetician.run("import", "folder", "corpus", "--out", "lists").status == 0
    phonetician.write("corpus/anna/one.TextGrid", "transcribed by hand")
    message = phonetician.run("align", "lists", "dict", "tones.argo", "corpus").fault
    assert "corpus: results would lie beside " in message
    (phonetician.root / "linked").mkdir()
    for speaker in ("anna", "otto"):
        (phonetician.root / "linked" / speaker).symlink_to(phonetician.root / "corpus" / speaker)
    assert "results would lie beside" in phonetician.run("align", "linked", "dict", "tones.argo", "corpus").fault
    assert (phonetician.root / "corpus/anna/one.TextGrid").read_text() == "transcribed by hand"


def test_messages_name_the_ends_of_long_stretches(phonetician):
    shutil.rmtree(phonetician.root / "corpus/otto")
    phonetician.write("corpus/anna/one.txt", f"{SPOKEN['anna/one']} {'BA ' * 300}")
    done = phonetician.run("align", *RUN, "--long", "0")
    assert done.status == 0
    (line,) = (line for line in done.err if line.startswith("damaged: one: "))
    assert " ... " in line
    assert len(line) < 120
    assert len((phonetician.root / "aligned/report").read_text()) < 300
    with (phonetician.root / "aligned/damage.csv").open() as file:
        assert max(len(row["words"].split()) for row in csv.DictReader(file)) > 290


def test_a_bundle_with_a_damaged_model_is_refused(phonetician):
    bundle = phonetician.root / "tones.argo"
    with zipfile.ZipFile(bundle) as archive:
        member = archive.getinfo("model.safetensors")
        content = archive.read(member)
    whole = bytearray(bundle.read_bytes())
    whole[whole.index(content) + len(content) - 1] ^= 0x40
    bundle.write_bytes(whole)
    assert "tones.argo:model.safetensors: wrong checksum" in phonetician.run("align", *RUN).fault


def test_other_options_of_results_replace_only_the_files_that_they_change(phonetician):
    def doubtful() -> list[dict]:
        return json.loads((phonetician.root / "aligned/anna/one.json").read_text())["doubtful"]

    phonetician.write("corpus/anna/one.txt", "BA BA")
    assert phonetician.run("align", *RUN, "--doubtful", "0", "--format", "textgrid, json").status == 0
    assert not doubtful()
    edited = phonetician.root / "aligned/anna/one.TextGrid"
    edited.write_text("edited by hand")
    assert phonetician.run("align", *RUN, "--doubtful", "0.5").status == 0
    assert not doubtful()
    assert phonetician.run("align", *RUN, "--doubtful", "0.5", "--format", "textgrid,json").status == 0
    assert doubtful()
    assert edited.read_text() == "edited by hand"
    done = phonetician.run("align", *RUN, "--doubtful-tier")
    assert "3 of 3 recordings are unchanged and were not aligned again" in done.out
    assert '"doubtful"' in edited.read_text()
