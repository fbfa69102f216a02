"""Word (or phone) error rates by minimum-cost alignment, counted as by HTK's HResults."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from decoder.scoring.edit_loop import DELETION, INSERTION, PAIR, fill_last_edits
from readers.errors import FormatError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from readers.common.jobs import Runner


@dataclass(frozen=True)
class EditPenalties:
    """Costs of the edits in the alignment of two word sequences; a hit costs nothing.

    Attributes
    ----------
    substitution, deletion, insertion : int
    """

    substitution: int
    deletion: int
    insertion: int


# HTK Book, HResults: "insertions and deletions 7, substitutions 10"; its -n option uses NIST's.  Kaldi's compute-wer
# counts plain edits, which never give a higher rate than the others.
PENALTIES = {"htk": EditPenalties(10, 7, 7), "nist": EditPenalties(4, 3, 3), "kaldi": EditPenalties(1, 1, 1)}

MOST_PAIRS = 200_000_000  # of words in an alignment, a byte each: 14,000 words are more than an hour of speech
UTTERANCE_COST, SHARD_COST = 50, 300_000  # pairs of words that are aligned in the time of what else an utterance takes
COMPILED_FROM = 200_000  # pairs of words; for fewer, to import numba takes longer than to align them
# Not counted as words, whichever tool wrote the file.
SENTENCE_MARKS = frozenset({"<s>", "</s>", "!SENT_START", "!SENT_END", "!NULL"})

WordPair = tuple[Sequence[str], Sequence[str]]  # words of a reference and of a hypothesis


@dataclass(slots=True)
class Score:
    """Edit counts of one or many utterances; scores can be added.

    Parameters
    ----------
    hits, substitutions, deletions, insertions : int
        Word counts, H, S, D and I of HResults.
    num_sentences, num_wrong_sentences : int
        Utterances, and those with at least one error.

    References
    ----------
    HTK Book, HResults.
    """

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    num_sentences: int = 0
    num_wrong_sentences: int = 0

    def __add__(self, other: "Score") -> "Score":
        return Score(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    @property
    def num_words(self) -> int:
        """Words of the reference, N = H + S + D."""
        return self.hits + self.substitutions + self.deletions

    @property
    def num_errors(self) -> int:
        """S + D + I."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def word_error_rate(self) -> float:
        """(S + D + I) / N in percent; infinite when there are errors and no reference words."""
        return _percent(self.num_errors, self.num_words)

    @property
    def sentence_error_rate(self) -> float:
        """Utterances with errors, in percent."""
        return _percent(self.num_wrong_sentences, self.num_sentences)

    @property
    def correct(self) -> float:
        """HResults' %Corr = H / N in percent."""
        return _percent(self.hits, self.num_words)

    @property
    def accuracy(self) -> float:
        """HResults' Acc = (H - I) / N in percent."""
        return _percent(self.hits - self.insertions, self.num_words)


@dataclass
class ScoringResult:
    """Errors of a set of utterances.

    Attributes
    ----------
    total : Score
    utterances : dict of str to Score
    alignments : mapping of str to list
        Utterance -> pairs (reference word, hypothesis word); None marks an insertion or a deletion.  They are made of
        the words when they are asked for.
    missing : list of str
        Utterances of the reference without a hypothesis, all of whose words count as deletions.
    unexpected : list of str
        Hypotheses without a reference, which are not counted.
    """

    total: Score = field(default_factory=Score)
    utterances: dict[str, Score] = field(default_factory=dict)
    alignments: Mapping[str, list[tuple[str | None, str | None]]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)

    def confusions(self) -> Counter[tuple[str | None, str | None]]:
        """How often each (reference, hypothesis) pair was aligned, hits included; None as in `alignments`."""
        return Counter(pair for pairs in self.alignments.values() for pair in pairs)

    def grouped(self, group_of: Callable[[str], str]) -> dict[str, Score]:
        """The score of each group of utterances, such as those of a speaker; group_of returns that of an utterance."""
        groups: dict[str, Score] = {}
        for name, score in self.utterances.items():
            group = group_of(name)
            groups[group] = groups.get(group, Score()) + score
        return groups


class _Alignments(Mapping[str, list[tuple[str | None, str | None]]]):
    """Alignments of which only the edits are kept.

    words: name -> words of the reference and of the hypothesis; edits: name -> edits of `edits_between`.
    """

    def __init__(self, words: Callable[[str], WordPair]):
        self._words = words
        self.edits: dict[str, bytes] = {}

    def __getitem__(self, name: str) -> list[tuple[str | None, str | None]]:
        return _pairs(*self._words(name), self.edits[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.edits)

    def __len__(self) -> int:
        return len(self.edits)


def align(
    reference: Sequence[str], hypothesis: Sequence[str], penalties: EditPenalties = PENALTIES["htk"]
) -> list[tuple[str | None, str | None]]:
    """The cheapest alignment of two word sequences as (reference or None, hypothesis or None) pairs.

    Among equally cheap alignments a hit or substitution is preferred to a deletion, a deletion to an insertion.
    Raises FormatError for more than MOST_PAIRS pairs of words.
    """
    return _pairs(reference, hypothesis, edits_between(reference, hypothesis, penalties))


def edits_between(
    reference: Sequence[str], hypothesis: Sequence[str], penalties: EditPenalties, num_pairs: int = 0
) -> bytes:
    """The edits of `align` from the last to the first: PAIR, DELETION or INSERTION each.

    num_pairs: pairs of words that are aligned in all, if it is more than one utterance.
    """
    if reference == hypothesis:
        return bytes([PAIR]) * len(reference)
    require_alignable(reference, hypothesis)
    edits = _last_edits(reference, hypothesis, penalties, num_pairs)
    reversed_edits = bytearray()
    i = len(reference)
    j = len(hypothesis)
    while i or j:
        edit = edits[i - 1][j - 1] if i and j else DELETION if i else INSERTION
        i -= edit != INSERTION
        j -= edit != DELETION
        reversed_edits.append(edit)
    return bytes(reversed_edits)


def require_alignable(reference: Sequence[str], hypothesis: Sequence[str]) -> None:
    """Raise FormatError for more than MOST_PAIRS pairs of words."""
    if len(reference) * len(hypothesis) > MOST_PAIRS:
        raise FormatError(
            f"{len(reference)} words against {len(hypothesis)}; expected a product of at most {MOST_PAIRS:g}; "
            "divide the recording into utterances"
        )


def _pairs(reference: Sequence[str], hypothesis: Sequence[str], edits: bytes) -> list[tuple[str | None, str | None]]:
    if max(edits, default=PAIR) == PAIR:  # no others
        return list(zip(reference, hypothesis))
    words = iter(reference)
    guesses = iter(hypothesis)
    return [
        (None if edit == INSERTION else next(words), None if edit == DELETION else next(guesses))
        for edit in reversed(edits)
    ]


def _last_edits(
    reference: Sequence[str], hypothesis: Sequence[str], penalties: EditPenalties, num_pairs: int
) -> "Sequence[Sequence[int]] | npt.NDArray[np.int8]":
    """Return edits[i][j]: the last edit of the cheapest alignment of the first i + 1 and j + 1 words."""
    ids: dict[str, int] = {}
    words, guesses = ([ids.setdefault(word, len(ids)) for word in sentence] for sentence in (reference, hypothesis))
    prices = penalties.substitution, penalties.deletion, penalties.insertion
    if max(num_pairs, len(words) * len(guesses)) > COMPILED_FROM:
        from decoder.scoring.edit_kernels import last_edits  # imports numba

        edit_array = last_edits(words, guesses, *prices)
        return edit_array if edit_array.size > COMPILED_FROM else edit_array.tolist()  # lists are faster to look up
    costs = [j * penalties.insertion for j in range(len(guesses) + 1)]
    edits = [bytearray(len(guesses)) for _ in words]
    fill_last_edits(words, guesses, *prices, costs, edits)
    return edits


def count(pairs: Iterable[tuple[str | None, str | None]]) -> Score:
    """The edit counts of one utterance's alignment."""
    score = Score(num_sentences=1)
    for word, guess in pairs:
        if word is None:
            score.insertions += 1
        elif guess is None:
            score.deletions += 1
        elif word == guess:
            score.hits += 1
        else:
            score.substitutions += 1
    score.num_wrong_sentences = int(score.num_errors > 0)
    return score


def score(
    references: Mapping[str, Sequence[str]],
    hypotheses: Mapping[str, Sequence[str]],
    penalties: EditPenalties = PENALTIES["htk"],
    fold: Mapping[str, str | None] | None = None,
    ignore: frozenset[str] = SENTENCE_MARKS,
    runner: "Runner | None" = None,
    progress: Callable[..., None] | None = None,
) -> ScoringResult:
    """Align every utterance of the reference with its hypothesis and add up the edits.

    Parameters
    ----------
    references, hypotheses : mapping of str to sequence of str
        Utterance -> words.  Names are compared completely or, failing that, by their last path component, so that
        `An4/71/71/cen5-fjam-b` of a corpus matches a decoder's `cen5-fjam-b`.
    penalties : EditPenalties
        Costs of the edits in the alignment, by default HResults'.
    fold : mapping of str to str or None, optional
        word -> word that it counts as, None to leave it out (TIMIT's 61 to 39 phones).  Other words stay as they are.
    ignore : frozenset of str
        Words to leave out on both sides.
    runner : Runner, optional
        Where the words are aligned, by default here.
    progress : callable, optional
        Called as progress(done, total) when utterances are aligned.

    Returns
    -------
    ScoringResult

    Raises
    ------
    FormatError
        For an utterance of more than MOST_PAIRS pairs of words.

    References
    ----------
    HTK Book, HResults.
    """
    hypothesis_names = match_names(references, hypotheses)
    unexpected = (
        sorted(set(hypotheses) - set(hypothesis_names.values())) if len(hypothesis_names) < len(hypotheses) else []
    )

    def words_of(name: str) -> WordPair:
        guesses = hypotheses[hypothesis_names[name]] if name in hypothesis_names else ()
        return fold_words(references[name], fold, ignore), fold_words(guesses, fold, ignore)

    alignments = _Alignments(words_of)
    results = ScoringResult(alignments=alignments, unexpected=unexpected)
    results.missing = [name for name in references if name not in hypothesis_names]
    sent: deque[tuple[list[str], list[WordPair]]] = deque()

    def parts() -> Iterator[list[WordPair]]:
        for names, pairs in _shards(references, words_of):
            sent.append((names, pairs))
            yield pairs

    if runner is None:
        aligned: Iterator[list[bytes]] = (align_shard(pairs, penalties) for pairs in parts())
    else:
        aligned = runner.results(align_shard, parts(), penalties)
    for edits_of in aligned:
        for name, pair, edits in zip(*sent.popleft(), edits_of, strict=True):
            alignments.edits[name] = edits
            results.utterances[name] = count(_pairs(*pair, edits))
        if progress:
            progress(len(results.utterances), len(references))
    results.total = sum(results.utterances.values(), Score())
    return results


def _shards(
    references: Iterable[str], words_of: Callable[[str], WordPair]
) -> Iterator[tuple[list[str], list[WordPair]]]:
    """Yield names and words of utterances, as many as take about SHARD_COST steps to align."""
    names: list[str] = []
    pairs: list[WordPair] = []
    cost = 0
    for name in references:
        pair = words_of(name)
        try:
            require_alignable(*pair)
        except FormatError as fault:
            raise FormatError(f"{name}: {fault}") from fault
        names.append(name)
        pairs.append(pair)
        cost += UTTERANCE_COST + len(pair[0]) * len(pair[1])
        if cost >= SHARD_COST:
            yield names, pairs
            names = []
            pairs = []
            cost = 0
    if names:
        yield names, pairs


def align_shard(pairs: Sequence[WordPair], penalties: EditPenalties) -> list[bytes]:
    """The edits of pairs of word sequences."""
    num_pairs = sum(len(words) * len(guesses) for words, guesses in pairs)
    return [edits_between(*pair, penalties, num_pairs) for pair in pairs]


def fold_words(words: Iterable[str], fold: Mapping[str, str | None] | None, ignore: frozenset[str]) -> list[str]:
    """The words that count, each under the name that it counts as."""
    folded = (fold.get(word, word) if fold else word for word in words if word not in ignore)
    return [word for word in folded if word is not None and word not in ignore]


def match_names(references: Mapping[str, object], hypotheses: Mapping[str, object]) -> dict[str, str]:
    """reference name -> hypothesis name, equal or with the same last path component if that is unique on each side."""
    equal = {name: name for name in references if name in hypotheses}
    if len(equal) == len(references):
        return equal
    by_last = _unique_last_components(hypotheses)
    reference_by_last = _unique_last_components(references)
    matched = {}
    for name in references:
        last = _last_component(name)
        if name in equal:
            matched[name] = name
        elif reference_by_last.get(last) == name and last in by_last:
            matched[name] = by_last[last]
    return matched


def _unique_last_components(names: Iterable[str]) -> dict[str, str]:
    times = Counter(map(_last_component, names))
    return {_last_component(name): name for name in names if times[_last_component(name)] == 1}


def _last_component(name: str) -> str:
    return name.replace("\\", "/").rsplit("/", 1)[-1]


def _percent(part: int, whole: int) -> float:
    if whole:
        return 100.0 * part / whole
    return 0.0 if part == 0 else float("inf")
