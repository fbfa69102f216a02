"""A small dictionary of an invented language, whose pronunciations follow rules with exceptions."""

import numpy as np

from readers.htk.dictionary import Pronunciation

SYLLABLES = dict(zip("ba be shi xo me tu qua lé".split(), "B AA/B EH/SH IH/K S OW/M EH/T UW/K W AA/L EY".split("/")))


def entries(count: int, seed: int = 1) -> list[Pronunciation]:
    """Words of one to four syllables; a final e is sometimes silent."""
    rng = np.random.default_rng(seed)
    found = {}
    while len(found) < count:
        names = rng.choice(list(SYLLABLES), rng.integers(1, 5))
        word, phones = "".join(names), " ".join(SYLLABLES[name] for name in names).split()
        if word.endswith("e") and len(phones) > 2 and rng.random() < 0.5:
            phones = phones[:-1]
        found[word, tuple(phones)] = Pronunciation(word, None, None, tuple(phones))
    return list(found.values())
