"""The recipe for the English bundle, on two toy corpora of tones."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from decoder import Recognizer
from decoder.recognizer.jobs import models
from readers.audio.audio_file import write_wav
from readers.common.text import read_lines
from recipes.cli.main import main
from recipes.english import corpus
from recipes.english.corpus import join_corpora
from tests.recipes.speechocean.test_speechocean import SETTINGS
from tests.recipes.speechocean.toy_corpus import make_corpus
from tests.recipes.systems.small_system import RATE, WORDS, speak

SPEAKERS = {"train": ("fash", "mjtz", "fclc"), "test": ("fcaw", "mmxg")}  # fclc is in AN4's development set


def make_an4(root: Path, per_speaker: int = 2) -> None:
    """Write AN4's layout, with the words of the small system."""
    rng = np.random.default_rng(5)
    (root / "etc").mkdir(parents=True)
    for name, speakers in SPEAKERS.items():
        files, lines = [], []
        for speaker in speakers:
            for number in range(per_speaker):
                words = [list(WORDS)[i] for i in rng.integers(0, len(WORDS), 4)]
                path = f"an4_{name}/{speaker}/an{number}-{speaker}-b"
                (root / "wav" / path).parent.mkdir(parents=True, exist_ok=True)
                write_wav(root / "wav" / f"{path}.wav", speak(words, rng)[0], RATE)
                files.append(path)
                lines.append(f"<s> {' '.join(words)} </s> ({Path(path).name})")
        (root / f"etc/an4_{name}.fileids").write_text("".join(f"{line}\n" for line in files))
        (root / f"etc/an4_{name}.transcription").write_text("".join(f"{line}\n" for line in lines))
    (root / "etc/an4.dic").write_text("AB a b\n")


@pytest.fixture
def corpora(tmp_path, monkeypatch) -> Path:
    make_corpus(tmp_path / "ocean", per_speaker=3)
    make_an4(tmp_path / "an4")
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "dev_speakers.txt").write_text("0004\n")
    monkeypatch.setattr(corpus, "LISTS", lists)
    return tmp_path


def test_the_sets_of_both_corpora_are_joined(corpora):
    joined = join_corpora(corpora / "ocean", corpora / "an4", corpora / "out")
    assert (joined.dev, joined.test) == (("so-0004", "an4-fclc"), ("an4-fcaw", "an4-mmxg"))
    assert joined.num_speakers == 3 + 2  # the test half of speechocean762 is not used
    assert [line.split(",")[0] for line in joined.data] == ["speechocean762", "AN4"]
    tables = [dict(line.split(None, 1) for line in read_lines(corpora / "out" / name)) for name in ("text", "utt2spk")]
    assert tables[0].keys() == tables[1].keys()
    assert list(tables[1]) == sorted(tables[1])
    assert set(tables[1].values()) == {
        *("so-0001", "so-0002", "so-0003", "so-0004"),
        *(f"an4-{speaker}" for speakers in SPEAKERS.values() for speaker in speakers),
    }
    for line in read_lines(corpora / "out" / "wav.scp"):
        name, audio = line.split(None, 1)
        assert Path(audio).is_file()
        assert Path(audio).is_absolute()
        assert Path(audio).stem == name.split("-", 1)[1]
    assert "<s>" not in " ".join(tables[0].values())


@pytest.mark.slow
def test_the_recipe_makes_a_compact_bundle_with_a_card(corpora, monkeypatch, toy_run):
    monkeypatch.chdir(corpora)
    monkeypatch.setenv("XDG_CACHE_HOME", str(corpora / "cache"))
    Path("text").write_text("Ab ba ab!\nc cab.\nab c ba\n")
    lexicon = corpora / "ocean/resource/lexicon.txt"
    settings = (word for setting in SETTINGS for word in ("--set", setting))
    arguments = ("--data", "ocean", "--an4", "an4", "--text", "text", "--dict", str(lexicon), "--out", "exp")
    assert (
        main(["recipe", "english", *arguments, "--world", "1", "--min-minutes", "0", "--workers", "1", *settings]) == 0
    )
    with zipfile.ZipFile("exp/en.argo") as archive:
        assert {"g2p.xz", "calibration.json.xz", "dictionary.xz"} <= set(archive.namelist())
    monkeypatch.setenv("ARGONAUT_MODELS", str(corpora / "exp"))
    (model,) = [each for each in models() if each.name == "en"]
    told = json.loads(json.dumps(model.as_json()))
    assert (told["speakers"], told["lowest_rate"], told["sample_rate"]) == (5, 8000, RATE)
    assert [each["test_set"] for each in told["errors"]] == ["test"]
    assert len(list((corpora / "exp/copies/audio").glob("world1-*"))) == 3 * 3 + 2 * 2
    training = [line.partition("=")[0] for line in read_lines(corpora / "exp/lists/training.scp")]
    counts = [sum(name.startswith(prefix) for name in training) for prefix in ("sp0.9-", "sp1.1-", "world1-")]
    assert counts[0] == counts[1] == counts[2] > 0  # all copies are learned
    assert Recognizer.load("en").transcribe("an4/wav/an4_test/fcaw/an0-fcaw-b.wav").words
