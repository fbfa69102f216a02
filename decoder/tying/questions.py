"""Questions for decision trees that need no knowledge of the phones: classes of phones that sound alike.

Phones are clustered from the bottom up by the Gaussians of their states: each step joins the two clusters whose common
Gaussians lose the least log-likelihood.  Every cluster on the way is a class, and so is every single phone.  The
clustering is done three times: with all states, which gives classes for both sides; with the last states, which
border on the phone to the right and so give questions about a left neighbour; and with the first states, for a right
neighbour.  Phones with `*` or `?` in their names are in no class, since patterns of HTK cannot name them.

References
----------
Kaldi's `cluster-phones` obtains questions from a clustering, too.
"""

import itertools
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from decoder.tying.statistics import Statistics, log_likelihood
from readers.errors import GraphError
from readers.htk.trees import Question, phone_of

WILDCARDS = frozenset("*?")
VARIANCE_FLOOR = 0.01  # as a fraction of the variance of all frames


def phone_questions(
    statistics: Statistics, context_free: Collection[str], pause: str | None = None
) -> dict[str, Question]:
    """Make questions about the neighbours of a phone from the statistics of all phones.

    Parameters
    ----------
    statistics : Statistics
        Of triphones or monophones.
    context_free : collection of str
        Phones without context; they are neighbours of others.
    pause : str, optional
        A phone that is no context.

    Returns
    -------
    dict of str to Question
        By name: `L_1`, `L_2`, ... ask for the left neighbour, `R_1`, ... for the right one; `L_aa` asks for one phone.
        A number that is the name of a phone is left out.

    Raises
    ------
    GraphError
        For statistics without phones that patterns can name.
    """
    sums = _sums_of_phones(statistics, context_free, pause)
    phones = sorted(phone for phone in sums if WILDCARDS.isdisjoint(phone))
    if not phones:
        raise GraphError("questions: no frames of any phone; expected statistics of the phones to cluster")
    floor = statistics.variance_floor(VARIANCE_FLOOR)
    two_sided = list(_classes([sums[phone] for phone in phones], floor))
    questions = {}
    for side, end in (("L", -1), ("R", 0)):
        one_sided = _classes([[sums[phone][end]] for phone in phones], floor)
        numbers = (number for number in itertools.count(1) if str(number) not in sums)
        for number, members in zip(numbers, dict.fromkeys((*two_sided, *one_sided))):
            name = f"{side}_{number}"
            questions[name] = _question(name, side, [phones[i] for i in members])
        for phone in phones:
            questions[f"{side}_{phone}"] = _question(f"{side}_{phone}", side, [phone])
    return questions


def _question(name: str, side: str, phones: Sequence[str]) -> Question:
    return Question(name, tuple(f"{phone}-*" if side == "L" else f"*+{phone}" for phone in phones))


def _sums_of_phones(
    statistics: Statistics, context_free: Collection[str], pause: str | None
) -> dict[str, list[np.ndarray]]:
    """Map each phone to the (count, sums, sums of squares) of its states as one vector each, first state first."""
    values = np.concatenate([statistics.count[:, None], statistics.total, statistics.square], axis=1)
    sums: dict[str, dict[int, np.ndarray]] = {}
    for (model, state), row in statistics.rows.items():
        phone = model if model in context_free else phone_of(model)
        if phone != pause:
            states = sums.setdefault(phone, {})
            states[state] = states.get(state, 0.0) + values[row]
    return {phone: [states[state] for state in sorted(states)] for phone, states in sums.items()}


def _classes(phones: Sequence[Sequence[np.ndarray]], floor: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Yield the clusters of two phones or more, as sorted indices, except the one of all phones.

    phones: the vectors of each phone's states; phones with different numbers of states are compared by as many states,
    spread evenly, as the shortest has.
    """
    size = min(map(len, phones))
    picks = [np.linspace(0, len(states) - 1, size).round().astype(int) for states in phones]
    sums = np.array([[states[i] for i in pick] for states, pick in zip(phones, picks)])  # (phones, states, 1 + 2 d)
    fits = _fit(sums, floor)
    clusters: list[tuple[int, ...]] = [(i,) for i in range(len(phones))]
    cost = np.full((len(phones), len(phones)), np.inf)
    for i in range(len(phones) - 1):
        cost[i, i + 1 :] = fits[i] + fits[i + 1 :] - _fit(sums[i] + sums[i + 1 :], floor)
    for _ in range(len(phones) - 2):
        a, b = np.unravel_index(int(np.argmin(cost)), cost.shape)
        clusters[a] = tuple(sorted(clusters[a] + clusters[b]))
        yield clusters[a]
        sums[a] += sums[b]
        fits[a] = _fit(sums[a : a + 1], floor)[0]
        cost[b, :] = cost[:, b] = np.inf
        clusters_left = np.flatnonzero(np.isfinite(cost[a, :]) | np.isfinite(cost[:, a]))
        joined = fits[a] + fits[clusters_left] - _fit(sums[a] + sums[clusters_left], floor)
        cost[np.minimum(a, clusters_left), np.maximum(a, clusters_left)] = joined


def _fit(sums: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """(n,) log-likelihoods of clusters with one Gaussian for each state; sums: (n, states, 1 + 2 d)."""
    flat = sums.reshape(-1, sums.shape[2])
    dim = len(floor)
    likelihoods = log_likelihood(flat[:, 0], flat[:, 1 : 1 + dim], flat[:, 1 + dim :], floor)
    return likelihoods.reshape(sums.shape[:2]).sum(axis=1)
