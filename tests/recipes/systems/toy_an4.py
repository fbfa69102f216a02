"""A directory of AN4's layout whose HMM states are tones, for the recipes that work on AN4."""

from pathlib import Path

import numpy as np

from readers.audio.audio_file import write_sphere
from readers.htk.mlf import Label, write_mlf
from tests.recipes.systems.small_system import DICTIONARY, RATE, STATES, WORDS, speak

SPEAKERS = {"train": ("fabc", "mdef", "fclc"), "test": ("mxyz",)}  # fclc is one of the held-out speakers
SENTENCES = (("AB", "BA"), ("BA", "CAB", "C"), ("C", "BA"), ("CAB", "CAB", "BA"))
FLAT_LM = (
    "\\data\\\nngram 1=6\n\n\\1-grams:\n-99 <s>\n"
    + "".join(f"-0.69897 {word}\n" for word in ("</s>", *WORDS))
    + "\\end\\\n"
)


def make_corpus(root: Path, per_speaker: int = 8, seed: int = 0, published: bool = False) -> Path:
    """A directory of AN4's layout whose HMM states are tones.

    published: without alignments and language model, with SPHERE files and the dictionary of the corpus.
    """
    import soundfile

    rng = np.random.default_rng(seed)
    alignment = []
    (root / "etc").mkdir(parents=True)
    for name, speakers in SPEAKERS.items():
        paths, transcripts = [], []
        for speaker in speakers:
            for index in range(per_speaker):
                words = SENTENCES[index % len(SENTENCES)]
                samples, labels = speak(words, rng)
                utterance = f"an{index}-{speaker}-b"
                audio = root / "wav" / name / speaker / f"{utterance}.{'sph' if published else 'flac'}"
                audio.parent.mkdir(parents=True, exist_ok=True)
                if published:
                    write_sphere(audio, samples, RATE)
                else:
                    soundfile.write(audio, samples.astype(np.int16), RATE)
                paths.append(f"{name}/{speaker}/{utterance}\n")
                spoken = " ".join(words)
                if name == "train":  # only there do the transcripts have sentence marks
                    spoken = f"<s> {spoken} </s>"
                transcripts.append(f"{spoken} ({utterance})\n")
                if name == "train":
                    alignment.append((f"An4/71/71/{utterance}.lab", [with_levels(label) for label in labels]))
        (root / f"etc/an4_{name}.fileids").write_text("".join(paths))
        (root / f"etc/an4_{name}.transcription").write_text("".join(transcripts))
    if published:
        (root / "etc/an4.dic").write_text("".join(f"{word}\t{' '.join(WORDS[word]).upper()}\n" for word in WORDS))
        return root
    (root / "align").mkdir()
    write_mlf(root / "align/train.ci_states.mlf", alignment)
    (root / "align/ci_states.list").write_text("".join(f"{state}\n" for state in STATES))
    (root / "align/an4.dict").write_text(DICTIONARY)
    (root / "etc/an4.lm").write_text(FLAT_LM)
    return root


def with_levels(label: Label) -> Label:
    """As HTK writes it: a score, and on a phone's first state the triphone and the word."""
    phone, _, state = label.name.partition("_s")
    name = phone if phone == "sil" else f"x-{phone}+y"
    return label._replace(score=-1.5, aux=((name, 2.5), ("AB", None)) if state == "2" else ())
