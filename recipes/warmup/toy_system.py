"""A tiny recogniser from audio to graph: each HMM state is a tone of its own."""

from pathlib import Path

import numpy as np

from readers.audio.audio_file import write_wav
from readers.htk.mlf import Label, write_mlf

RATE, HOP, TICKS_PER_FRAME = 16000, 160, 100_000
WORDS = {"AB": "ab", "BA": "ba", "C": "c"}
STATES = tuple(f"{phone}_s{k}" for phone in ("a", "b", "c", "sil") for k in (2, 3))
TONES = (300, 600, 1000, 1500, 2200, 3000, 4200, 5800)  # Hz, one for each state
NUM_TRAIN, NUM_TEST = 12, 3
FRAMES_PER_STATE = 8
LONG_TEXT = 500  # words: the alignment of two such texts is compiled

HCOPY = """\
SOURCEFORMAT = WAV
TARGETKIND = FBANK
TARGETRATE = 100000
WINDOWSIZE = 250000
NUMCHANS = 10
USEHAMMING = T
"""


def make_toy_system(root: Path) -> None:
    """Write audio, transcripts, alignments, lists, dictionary and texts to an empty directory.

    The state labels end with the last frame of HCopy, whose windows are longer than a frame.
    """
    rng = np.random.default_rng(0)
    train: list[Path] = []
    test: list[Path] = []
    states = []
    words = []
    for index in range(NUM_TRAIN + NUM_TEST):
        name = f"utt{index:02}"
        spoken = [list(WORDS)[i] for i in rng.integers(0, len(WORDS), 3)]
        phones = ["sil", *"".join(WORDS[word] for word in spoken), "sil"]
        sequence = [STATES.index(f"{phone}_s{k}") for phone in phones for k in (2, 3)]
        tone = np.repeat(np.array(TONES)[sequence], FRAMES_PER_STATE * HOP)
        samples = 3000 * np.sin(2 * np.pi * np.cumsum(tone) / RATE) + 100 * rng.normal(size=len(tone))
        write_wav(root / f"{name}.wav", samples, RATE)
        bounds = [FRAMES_PER_STATE * TICKS_PER_FRAME * k for k in range(len(sequence) + 1)]
        bounds[-1] -= 2 * TICKS_PER_FRAME
        labels = [Label(begin, end, STATES[state]) for begin, end, state in zip(bounds, bounds[1:], sequence)]
        states.append((f"*/{name}.lab", labels))
        words.append((f"*/{name}.lab", [Label(None, None, word) for word in spoken]))
        (train if index < NUM_TRAIN else test).append(root / name)
    write_mlf(root / "states.mlf", states)
    write_mlf(root / "words.mlf", words)
    sentences = [" ".join(label.name for label in labels) for _, labels in words]
    text = " ".join(rng.choice(list(WORDS), LONG_TEXT))
    lines = {
        "hcopy.config": HCOPY.splitlines(),
        "hcopy.list": [f"{path}.wav {path}.fb" for path in train + test],
        "train.scp": [f"{path}.fb" for path in train],
        "test.scp": [f"{path}.fb" for path in test],
        "audio.scp": [f"{path}.wav" for path in test],
        "scores.scp": [f"{path}.ll" for path in test],
        "states.list": STATES,
        "speakers": [f"{path.name} one" for path in train],
        "dict": ["<s> [] sil", "</s> [] sil", *(f"{word} {' '.join(phones)}" for word, phones in WORDS.items())],
        "text": sentences,
        "sentences": [f"</s> {line} </s>" for line in sentences],
        "long.reference": [f"long {text}"],
        "long.hypothesis": [f"long {text[:-2]}"],
    }
    for name, content in lines.items():
        (root / name).write_text("".join(f"{line}\n" for line in content))
