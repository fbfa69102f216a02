"""Class n-gram models, P(w | h) = P(class of w | classes of h) P(w | class of w), and clustering of words into classes.

References
----------
Brown et al., Class-based n-gram models of natural language, Computational Linguistics 18(4), 1992.  Kneser and Ney,
Improved clustering techniques for class-based statistical language modelling, Eurospeech 1993 (exchange algorithm).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from decoder.lm.estimation import estimate
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel, LMArrays
from readers.common.faults import listed
from readers.errors import GraphError

MARKS = (SENTENCE_START, SENTENCE_END)
MOST_ROUNDS = 30


def class_model(
    sentences: Iterable[Sequence[str]],
    classes: Mapping[str, str],
    order: int,
    vocabulary: Sequence[str],
    added: float = 0.5,
) -> LanguageModel:
    """A class n-gram as an automaton over words, with the ids of `vocabulary`, which includes <s> and </s>.

    classes: word -> class, for every word but the marks; added: constant added to every word's count within its class.
    The n-gram over classes is a modified Kneser-Ney estimate.  Raises GraphError for words without a class.
    """
    sentences = [list(sentence) for sentence in sentences]
    words = [word for word in vocabulary if word not in MARKS]
    missing = [word for word in words if word not in classes]
    if missing:
        raise GraphError(f"word classes: none for {listed(missing)}; expected a class for every word")
    clash = [classes[word] for word in words if classes[word] in MARKS]
    if clash:
        raise GraphError(f"word classes: a class is named {clash[0]}; expected another name")
    names = sorted({classes[word] for word in words})
    over_classes = LanguageModel.from_arpa(
        estimate([[classes[word] for word in sentence] for sentence in sentences], order, "kn", names)
    )
    counts = Counter(word for sentence in sentences for word in sentence)
    total: defaultdict[str, float] = defaultdict(float)
    for word in words:
        total[classes[word]] += counts[word] + added
    member_of = np.array([over_classes.word_id(classes.get(word, word)) for word in vocabulary])
    emission = np.array(
        [0.0 if word in MARKS else -np.log((counts[word] + added) / total[classes[word]]) for word in vocabulary]
    )
    arrays = _over_words(over_classes.arrays, member_of, emission, len(over_classes.vocabulary))
    return LanguageModel(arrays, vocabulary, order, over_classes.start_state)


def _over_words(arrays: LMArrays, member_of: np.ndarray, emission: np.ndarray, num_classes: int) -> LMArrays:
    """Replace each arc of a class by one arc per member, with the cost of the member in its class added."""
    members = np.argsort(member_of, kind="stable")
    first_member = np.searchsorted(member_of[members], np.arange(num_classes + 1))
    size = np.diff(first_member)[arrays.word]
    arc = np.repeat(np.arange(arrays.word.shape[0]), size)
    within = np.arange(arc.shape[0]) - np.repeat(np.cumsum(size) - size, size)
    word = members[first_member[arrays.word[arc]] + within]
    state = np.searchsorted(arrays.first_arc, arc, side="right") - 1
    order = np.lexsort((word, state))
    arc = arc[order]
    word = word[order]
    state = state[order]
    return arrays._replace(
        first_arc=np.searchsorted(state, np.arange(arrays.first_arc.shape[0])).astype(np.int64),
        word=word.astype(np.int32),
        cost=(arrays.cost[arc] + emission[word]).astype(np.float32),
        next_state=arrays.next_state[arc],
    )


def find_classes(
    sentences: Iterable[Sequence[str]], num_classes: int, vocabulary: Iterable[str] = ()
) -> dict[str, str]:
    """word -> class for the words of the text and of `vocabulary`, by the exchange algorithm on word bigrams.

    Words are moved, the most frequent first, to the class that gives the text the highest likelihood under a class
    bigram, until no word moves.  Words that are not in the text share one class.  The result is deterministic.  Each
    trial costs num_classes^2, so this is for vocabularies of hundreds of words, not tens of thousands.
    """
    if num_classes < 1:
        raise GraphError(f"word classes: {num_classes} classes; expected at least 1")
    sentences = [list(sentence) for sentence in sentences]
    counts = Counter(word for sentence in sentences for word in sentence)
    words = sorted(counts, key=lambda word: (-counts[word], word))
    ids = {word: i for i, word in enumerate(words, start=2)}
    follows = np.zeros((len(words) + 2, len(words) + 2))
    for sentence in sentences:
        marked = [0, *(ids[word] for word in sentence), 1]
        np.add.at(follows, (marked[:-1], marked[1:]), 1)
    label = np.array([0, 1, *(2 + i % num_classes for i in range(len(words)))])
    for _ in range(MOST_ROUNDS):
        moved = 0
        for word in range(2, len(label)):
            best = _best_class(follows, label, word, num_classes + 2)
            moved += best != label[word]
            label[word] = best
        if not moved:
            break
    class_of = {word: f"class{label[ids[word]] - 1}" for word in words}
    return class_of | {word: "unseen" for word in vocabulary if word not in class_of and word not in MARKS}


def _best_class(follows: np.ndarray, label: np.ndarray, word: int, num_labels: int) -> int:
    """The class for `word` with the largest sum of n log n over class pairs, less that over the margins (without
    marks).
    """
    of_class = np.zeros((len(label), num_labels))
    of_class[np.arange(len(label)), label] = 1.0
    of_class[word] = 0.0
    pairs_without = of_class.T @ follows @ of_class
    after = follows[word] @ of_class
    before = follows[:, word] @ of_class
    gains = np.full(num_labels, -np.inf)
    for label_tried in range(2, num_labels):
        pairs = pairs_without.copy()
        pairs[label_tried] += after
        pairs[:, label_tried] += before
        pairs[label_tried, label_tried] += follows[word, word]
        gains[label_tried] = _n_log_n(pairs) - _n_log_n(pairs.sum(0)) - _n_log_n(pairs.sum(1))
    # A word moves only for a real gain, so that rounding errors cannot move it forever.
    present = label[word]
    best = int(np.argmax(gains))
    return best if gains[best] > gains[present] + 1e-9 * abs(gains[present]) else int(present)


def _n_log_n(counts: np.ndarray) -> float:
    return float(np.sum(counts * np.log(np.maximum(counts, 1.0))))
