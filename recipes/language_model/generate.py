"""Text of an invented language with long-distance dependencies: training, development and test sentences.

A sentence is drawn from the grammar of `data/grammar.txt`, its content words from the words of the sentence's topic or
from all words.  Verbs agree with subjects across relative clauses, particles with verbs across objects, and quotes and
brackets are closed: the two previous words do not determine these.  Word frequencies fall with the rank as in natural
text (Zipf's law with Mandelbrot's offset).  The same size and seed give the same text.
"""

from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random

from readers.common.files import atomic_write
from readers.errors import ConfigError
from recipes.language_model.grammar import Grammar, Words, read_grammar

GRAMMAR = Path(__file__).parent / "data" / "grammar.txt"
SETS = ("train", "dev", "test")
SIZES = {  # words of the three sets
    "tiny": (6_000, 1_000, 1_000),
    "demo": (150_000, 15_000, 15_000),
    "full": (600_000, 40_000, 40_000),
}
LEVELS = 9  # depth of a tree below which the shortest rules are chosen
NUM_TOPICS = 40
TOPICS_OF_STEM = 2  # topics per stem
TOPIC_SHARE = 0.8  # fraction of content words that belong to the topic
ZIPF, OFFSET = 1.1, 3.0  # a stem of rank r has weight 1 / (r + OFFSET)^ZIPF
ONSETS = "b c d f g h j l m n p r s t v w bl br ch cl cr dr fl fr gl gr pl pr sh sl sp st sw th tr".split()
VOWELS = "a e i o u a e i o ai ea ee oa ou".split()
CODAS = "b d g l m n p r s t ck ft ld lm lt mp nd nk nt rd rk rm rn rt sh sk st th".split()


@dataclass(frozen=True)
class _Stems:
    """Stems with their cumulative weights."""

    stems: list[str]
    sums: list[float]

    @classmethod
    def of(cls, stems: list[tuple[str, float]]) -> "_Stems":
        return cls([stem for stem, _ in stems], list(accumulate(weight for _, weight in stems)))

    def draw(self, rng: Random) -> str:
        return self.stems[bisect(self.sums, rng.random() * self.sums[-1])]


class Lexicon:
    """The content words of a grammar, made of syllables; `draw` returns one for a topic.

    seed: determines the words and their topics, which all texts with this seed share.
    """

    def __init__(self, grammar: Grammar, seed: int):
        rng = Random(f"words {seed}")
        # A form of a content word must not be a word of the grammar or a form of another stem.
        self._taken = {item.name for rules in grammar.rules.values() for rule in rules for item in rule.items}
        self._words = grammar.words
        values = dict.fromkeys(domain.values for domain in grammar.domains.values())
        self._class_of = {value: index for domain in values for index, value in enumerate(domain)}
        self._num_classes = {value: len(domain) for domain in values for value in domain}
        self._stems: dict[str, list[tuple[str, float, frozenset[int]]]] = {}
        for name, words in grammar.words.items():
            self._stems[name] = [
                (self._new_stem(words, rank, rng), (rank + OFFSET) ** -ZIPF, _topics(rng))
                for rank in range(words.stems)
            ]
        self._tables: dict[tuple[str, int | None, str | None], _Stems] = {}

    def draw(self, rng: Random, topic: int, name: str, features: tuple[str, ...]) -> str:
        """Return a word with this name in the form of its first feature; a second feature restricts the stems."""
        form, *of = features
        table = self._table(name, topic if rng.random() < TOPIC_SHARE else None, *of)
        return table.draw(rng) + self._words[name].forms[form]

    def _table(self, name: str, topic: int | None, value: str | None = None) -> _Stems:
        key = (name, topic, value)
        if key not in self._tables:
            stems = self._stems[name]
            if value is not None:
                stems = stems[self._class_of[value] :: self._num_classes[value]]
            chosen = [(stem, weight) for stem, weight, topics in stems if topic is None or topic in topics]
            self._tables[key] = _Stems.of(chosen) if chosen else self._table(name, None, value)
        return self._tables[key]

    def _new_stem(self, words: Words, rank: int, rng: Random) -> str:
        """Return a new stem; rarer stems are longer, from half to one and a half times the mean number of syllables."""
        target = words.syllables * (0.5 + rank / max(words.stems, 1))
        while True:
            number = max(1, int(target + rng.random()))
            stem = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(number)) + rng.choice(CODAS)
            forms = {stem + ending for ending in words.forms.values()}
            if forms.isdisjoint(self._taken):
                self._taken |= forms
                return stem


def _topics(rng: Random) -> frozenset[int]:
    return frozenset(int(rng.random() * NUM_TOPICS) for _ in range(TOPICS_OF_STEM))


def make_sentences(grammar: Grammar, lexicon: Lexicon, num_tokens: int, rng: Random) -> Iterator[list[str]]:
    """Yield sentences, each with its own topic, until there are at least num_tokens words."""
    num_words = 0
    while num_words < num_tokens:
        topic = int(rng.random() * NUM_TOPICS)
        sentence = grammar.sentence(rng, lambda name, features: lexicon.draw(rng, topic, name, features), LEVELS)  # noqa: B023
        num_words += len(sentence)
        yield sentence


def write_texts(out: Path, size: str, seed: int, progress: Callable[..., None] = lambda done, total: None) -> None:
    """Write out/train.txt, dev.txt, test.txt with one sentence per line.  progress(done, total) counts words.

    Raises ConfigError for an unknown size.
    """
    if size not in SIZES:
        raise ConfigError(f"size '{size}'; expected one of {', '.join(SIZES)}")
    grammar = read_grammar(GRAMMAR)
    lexicon = Lexicon(grammar, seed)
    done = 0
    total = sum(SIZES[size])
    for name, num_tokens in zip(SETS, SIZES[size]):
        with atomic_write(out / f"{name}.txt", "w") as file:
            for sentence in make_sentences(grammar, lexicon, num_tokens, Random(f"{name} {seed}")):
                file.write(" ".join(sentence) + "\n")
                done += len(sentence)
                progress(min(done, total), total)
