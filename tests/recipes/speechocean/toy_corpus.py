"""A directory of speechocean762's layout whose HMM states are tones."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from readers.audio.audio_file import write_wav
from tests.recipes.systems.small_system import RATE, WORDS, speak

SPEAKERS = {"train": {"0001": 8, "0002": 30, "0003": 40, "0004": 12}, "test": {"0101": 9, "0102": 35}}  # ages


def make_corpus(root: Path, per_speaker: int = 5, seed: int = 0) -> Path:
    """Write the corpus, with the lexicon of all words.  Six words of a speaker take two seconds."""
    rng = np.random.default_rng(seed)
    scores = {}
    for half, speakers in SPEAKERS.items():
        tables: dict[str, list[str]] = {name: [] for name in ("text", "wav.scp", "utt2spk", "spk2age", "spk2gender")}
        for speaker, age in speakers.items():
            tables["spk2age"].append(f"{speaker}\t{age}")
            tables["spk2gender"].append(f"{speaker}\tf")
            for number in range(per_speaker):
                words = [list(WORDS)[i] for i in rng.integers(0, len(WORDS), 4)]
                name = f"{speaker}{number:05}"
                path = Path("WAVE") / f"SPEAKER{speaker}" / f"{name}.WAV"
                (root / path.parent).mkdir(parents=True, exist_ok=True)
                write_wav(root / path, speak(words, rng)[0], RATE)
                tables["text"].append(f"{name}\t{' '.join(words)}")
                tables["wav.scp"].append(f"{name}\t{path}")
                tables["utt2spk"].append(f"{name}\t{speaker}")
                scores[name] = expert_scores(words, rng)
        (root / half).mkdir()
        for name, lines in tables.items():
            (root / half / name).write_text("".join(f"{line}\n" for line in lines))
    (root / "resource").mkdir()
    (root / "resource" / "scores.json").write_text(json.dumps(scores))
    lexicon = [f"{word} {' '.join(f'{phone.upper()}{n}' for n, phone in enumerate(WORDS[word]))}" for word in WORDS]
    (root / "resource" / "lexicon.txt").write_text("".join(f"{line}\n" for line in lexicon))
    return root


def expert_scores(words: list[str], rng: np.random.Generator) -> dict[str, Any]:
    """Scores that mean nothing."""
    return {
        "accuracy": int(rng.integers(4, 11)),
        "words": [
            {
                "text": word,
                "accuracy": int(rng.integers(4, 11)),
                "phones": [f"{phone.upper()}{n}" for n, phone in enumerate(WORDS[word])],
                "phones-accuracy": [round(float(score), 1) for score in rng.uniform(0, 2, len(WORDS[word]))],
            }
            for word in words
        ],
    }
