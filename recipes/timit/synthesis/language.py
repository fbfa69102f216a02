"""What a recogniser of words needs to know of the synthesised language: sentences, and a dictionary in TIMIT's phones.

It is run as a process, with a directory and a seed as arguments, and writes words.txt and words.dict.  Both come from
the grammar of the corpus, but not from its sentences; the pronunciations are those of eSpeak NG in sentences.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from readers.common.files import write_lines
from readers.errors import ArgonautError
from readers.htk.dictionary import Pronunciation, write_dictionary
from recipes.timit.synthesis import DATA
from recipes.timit.synthesis.espeak import ESpeak
from recipes.timit.synthesis.phones import EDGE_SILENCE, read_phone_table, timit_phones
from recipes.timit.synthesis.sentences import make_sentence, read_grammar, words_of

SENTENCES = 10_000
SPOKEN = 2  # times that a word is pronounced, at least, if it occurs as often
RAREST = 0.05  # of the pronunciations of a word
VOICES = ("en-us+f1", "en-us-nyc+f1")
RATE, PITCH = 170, 50


def main() -> None:
    out = Path(sys.argv[1])
    seed = int(sys.argv[2])
    grammar = read_grammar(DATA / "sentences.jsgf")
    rng = np.random.default_rng([seed, 1])
    sentences = [make_sentence(grammar, rng) for _ in range(SENTENCES)]
    write_lines(out / "words.txt", (" ".join(words_of(sentence)) for sentence in sentences))
    marks = [Pronunciation(mark, "", None, (EDGE_SILENCE,)) for mark in ("<s>", "</s>")]
    write_dictionary(out / "words.dict", [*pronunciations(sentences), *marks])


def pronunciations(sentences: Iterable[str]) -> list[Pronunciation]:
    """Return the pronunciations of all words with their probabilities, as eSpeak NG says them in these sentences."""
    espeak = ESpeak()
    table = read_phone_table(DATA / "espeak-phones.txt")
    counts: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    num_spoken = 0
    for sentence in sentences:
        words = words_of(sentence)
        if all(counts[word].total() >= SPOKEN for word in words):
            continue
        num_spoken += 1
        try:
            spoken, sounds = espeak.speak(sentence, VOICES[num_spoken % len(VOICES)], RATE, PITCH, PITCH)
        except ArgonautError:  # two words that eSpeak merges; there are other sentences with each of them
            continue
        phones: dict[int, list[str]] = defaultdict(list)
        for phone in timit_phones(sounds, spoken, espeak.sample_rate, table):
            phones[phone.word].append(phone.name)
        for index, word in enumerate(words):
            counts[word][tuple(phones[index])] += 1
    return [
        Pronunciation(word, None, round(count / counts[word].total(), 3), phones)
        for word in sorted(counts)
        for phones, count in counts[word].most_common()
        if count >= RAREST * counts[word].total()
    ]


if __name__ == "__main__":
    main()
