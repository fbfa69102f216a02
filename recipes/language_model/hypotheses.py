"""N-best lists of a simulated recogniser, to be rescored without audio.

Each word competes with words of similar spelling; scores are random, and a beam search with the n-gram model finds the
best sentences.  Similar words differ in few letters: they are mostly forms of one stem, which a better language model
can tell apart.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

from acoustic.actions.decode_pairs import edit_distance
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel
from readers.common.report import Progress
from readers.htk.mlf import Label, write_mlf
from readers.results.nbest import Hypothesis, write_nbest
from recipes.language_model.results import read_sentences

NUM_HYPOTHESES = 100
BEAM = 100  # hypotheses kept after each word
NUM_SIMILAR = 4  # confusable words for each word, besides itself
MOST_EDITS = 3
EDIT_COST = 2.0  # -ln likelihood of a wrong letter
UNKNOWN = "<unk>"  # the word for those without a similar one
NOISE = 1.5  # standard deviation of the score of a word
KEY = 2  # letters at the beginning or end that confusable words share


def write_lists(text: Path, model: LanguageModel, out: Path, count: int, seed: int, progress: Progress) -> None:
    """Write out/NAME.nbest and out/NAME.mlf, the references, for the first `count` sentences of NAME.txt."""
    sentences = read_sentences(text)[:count]
    similar = SimilarWords([word for word in model.vocabulary if word not in (SENTENCE_START, SENTENCE_END)])
    rng = Random(f"{text.name} {seed}")
    lists = {}
    for number, sentence in enumerate(sentences, 1):
        scored = [draw_scores(similar.of(word), rng) for word in sentence]
        lists[f"{text.stem}{number:04}"] = recognise(scored, model)
        progress(number, len(sentences))
    write_nbest(out / f"{text.stem}.nbest", lists)
    true = ((f"*/{name}.lab", [Label(None, None, word) for word in words]) for name, words in zip(lists, sentences))
    write_mlf(out / f"{text.stem}.mlf", true)


class SimilarWords:
    """The words of a vocabulary with which each word may be confused."""

    def __init__(self, vocabulary: Sequence[str]):
        self._place = {word: rank for rank, word in enumerate(vocabulary)}
        self._by_key: dict[str, list[str]] = defaultdict(list)
        for word in vocabulary:
            for key in _keys(word):
                self._by_key[key].append(word)
        self._found: dict[str, list[tuple[str, int]]] = {}

    def of(self, word: str) -> list[tuple[str, int]]:
        """Return (word, number of different letters) for the word itself and the words nearest to it.

        The word itself is included if it is in the vocabulary.  There are at most NUM_SIMILAR others; of equally near
        words the first of the vocabulary.  If there is none, the unknown word is returned.
        """
        if word not in self._found:
            neighbours = {
                neighbour for key in _keys(word) for neighbour in self._by_key.get(key, []) if neighbour != word
            }
            near = [
                (neighbour, edit_distance(word, neighbour))
                for neighbour in neighbours
                if abs(len(neighbour) - len(word)) <= MOST_EDITS
            ]
            near = [pair for pair in near if pair[1] <= MOST_EDITS]
            nearest = sorted(near, key=lambda pair: (pair[1], self._place[pair[0]]))[:NUM_SIMILAR]
            itself = [(word, 0)] if word in self._place else []
            self._found[word] = [*itself, *nearest] or [(UNKNOWN, 0)]
        return self._found[word]


def _keys(word: str) -> set[str]:
    """Return the keys of a word; punctuation has none, because it is not confused."""
    return {f"{word[:KEY]}*", f"*{word[-KEY:]}"} if word.isalnum() else set()


def draw_scores(similar: Sequence[tuple[str, int]], rng: Random) -> list[tuple[str, float]]:
    """Return (word, ln likelihood) for the words of `SimilarWords.of`."""
    return [(word, rng.gauss(-EDIT_COST * different, NOISE)) for word, different in similar]


def recognise(scored: Sequence[Sequence[tuple[str, float]]], model: LanguageModel) -> list[Hypothesis]:
    """Return the best sentences according to the scores and the n-gram, best first."""
    beam = [PartialHypothesis((), model.start_state, 0.0, 0.0)]
    for words in scored:
        longer = [partial.follow(word, acoustic, model) for partial in beam for word, acoustic in words]
        beam = sorted(longer, key=lambda hypothesis: -hypothesis.total)[:BEAM]
    ended = [partial.follow(SENTENCE_END, 0.0, model) for partial in beam]
    best = sorted(ended, key=lambda one: -one.total)[:NUM_HYPOTHESES]
    return [Hypothesis(hypothesis.words[:-1], hypothesis.acoustic, hypothesis.lm) for hypothesis in best]


class PartialHypothesis:
    """A partial hypothesis: words, n-gram state, ln likelihoods of acoustics and words."""

    __slots__ = ("acoustic", "lm", "state", "total", "words")

    def __init__(self, words: tuple[str, ...], state: int, acoustic: float, lm: float):
        self.words = words
        self.state = state
        self.acoustic = acoustic
        self.lm = lm
        self.total = acoustic + lm

    def follow(self, word: str, acoustic: float, model: LanguageModel) -> "PartialHypothesis":
        cost, state = model.step(self.state, model.word_id(word))
        return PartialHypothesis((*self.words, word), state, self.acoustic + acoustic, self.lm - cost)
