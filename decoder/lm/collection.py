"""Interpolation of several language models during the search (CNTK book 6.1.2), exact at every word:

    P(w | h) = sum over i of weight_i P_i(w | h)

Each model keeps its own history.  All histories are suffixes of one word sequence, so the longest determines the
others: the states of the mixture are those of its models, and a table gives the matching state of every other model.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from decoder.lm.language_model import SENTENCE_START, LanguageModel, LMArrays, automaton_step
from decoder.lm.mapped_model import open_language_model
from readers.common.arrays import Int32Array, Int64Array
from readers.common.kernels import njit
from readers.common.text import filled_lines, is_number
from readers.errors import FormatError, GraphError

TOLERANCE = 1e-3  # of the sum of weights


def read_collection(path: str | Path) -> list[tuple[str, float]]:
    """(ARPA file, weight) for each line `file weight` of a list; lines that begin with # are comments.

    A file that does not exist relative to the current directory is looked for beside the list.  The weights are scaled
    to sum to 1 exactly.  Raises FormatError with file and line for a malformed line or a weight that is not positive,
    and when the sum of the weights differs from 1.
    """
    entries = []
    for where, line in filled_lines(path, comment="#", exact=True):
        name, _, weight = line.rpartition(" ")
        name = name.strip()
        if not name or not is_number(weight) or not 0 < float(weight) < float("inf"):
            raise FormatError(f"{where}: {line[:60]!r}; expected an ARPA file and its weight above 0")
        if not Path(name).exists() and (Path(path).parent / name).exists():
            name = str(Path(path).parent / name)
        entries.append((name, float(weight)))
    total = sum(weight for _, weight in entries)
    if abs(total - 1) > TOLERANCE:
        raise FormatError(f"{path}: weights sum to {total:g}; expected 1")
    return [(name, weight / total) for name, weight in entries]


def open_collection(
    path: str | Path, log: Callable[[str], None] | None = None, verify: bool | None = None
) -> LanguageModel:
    """Open the mixture of language models that a list describes (-lm-collection).

    Parameters
    ----------
    path : str or Path
        A text file with a line `ARPA-file weight` for each model; lines that begin with # are comments.
    log : callable, optional
        log(line) is told about mapped files that are written again or cannot be written, and models without <s>.
    verify : bool
        Whether to compare the checksums of mapped files.

    Returns
    -------
    LanguageModel
        The linear interpolation of the models.

    Raises
    ------
    FormatError
        For a malformed list, or weights that do not sum to 1.

    References
    ----------
    CNTK book, sections 6.1.2 and 6.1.3.2.
    """
    entries = read_collection(path)
    models = [open_language_model(name, log, verify=verify) for name, _ in entries]
    return interpolated(models, [weight for _, weight in entries])


def interpolated(models: Sequence[LanguageModel], weights: Sequence[float]) -> LanguageModel:
    """The linear interpolation of models, whose vocabularies may differ; its own vocabulary is their union.

    A word that is missing from one model and present in another gets the probability of the first model's unknown word,
    or 0 if it has none, and resets that model's history.
    Raises GraphError for weights that are not positive or do not sum to 1, and for too many states.
    """
    if not models or len(models) != len(weights) or min(weights) <= 0 or abs(sum(weights) - 1) > TOLERANCE:
        raise GraphError(f"language models: {len(models)} with weights {list(weights)}; expected weights that sum to 1")
    vocabulary = list(dict.fromkeys(word for model in models for word in model.vocabulary))
    sizes = [model.num_states for model in models]
    arcs = [model.num_arcs for model in models]
    if sum(sizes) >= 2**31:
        raise GraphError(f"language models: {sum(sizes)} histories in all; expected fewer than 2^31")
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    first_arc = [model.arrays.first_arc[:-1] + begin for model, begin in zip(models, np.cumsum([0, *arcs]))]
    own_word = np.array([_own_words(model, vocabulary) for model in models], dtype=np.int32)
    merged = LMArrays(
        first_arc=np.concatenate([*first_arc, [sum(arcs)]]).astype(np.int64),
        word=np.concatenate([model.arrays.word for model in models]),
        cost=np.concatenate([model.arrays.cost for model in models]),
        next_state=np.concatenate([model.arrays.next_state + root for model, root in zip(models, roots)]),
        backoff_cost=np.concatenate([model.arrays.backoff_cost for model in models]),
        backoff_state=np.concatenate([model.arrays.backoff_state + root for model, root in zip(models, roots)]),
        weights=np.array(weights, dtype=np.float64) / sum(weights),
        roots=roots,
        own_word=own_word,
    )
    ends = np.append(roots[1:], sum(sizes)).astype(np.int32)
    # Ids in the common vocabulary of each model's words, to follow a history of one model in another.
    number = {word: i for i, word in enumerate(vocabulary)}
    common = [np.array([number[word] for word in model.vocabulary], dtype=np.int32) for model in models]
    offset = np.cumsum([0, *map(len, common)])[:-1].astype(np.int64)
    history, length = _histories(merged, ends, np.concatenate(common), offset, max(model.order for model in models))
    arrays = merged._replace(history=history, length=length)
    start = _start(arrays, number.get(SENTENCE_START, -1))
    mixture = LanguageModel(arrays, vocabulary, max(model.order for model in models), start)
    mixture.components = tuple(zip((arrays.weights).tolist(), models))
    return mixture


def _own_words(model: LanguageModel, vocabulary: list[str]) -> list[int]:
    """LMArrays.own_word of one model."""
    unknown = -1 if model.unknown_id < 0 else -2 - model.unknown_id
    ids = {word: i for i, word in enumerate(model.vocabulary)}
    return [ids.get(word, unknown) for word in vocabulary]


def _start(arrays: LMArrays, mark: int) -> int:
    """The state after <s>: the longest history that any of the models has for it."""
    best = int(arrays.roots[0])
    for i, root in enumerate(arrays.roots.tolist()):
        model_word = int(arrays.own_word[i, mark]) if mark >= 0 else -1
        if model_word >= 0:
            state = int(arrays.next_state[arrays.first_arc[root] + model_word])
            if arrays.length[state] > arrays.length[best]:
                best = state
    return best


@njit(cache=True)
def _histories(
    arrays: LMArrays, ends: Int32Array, common: Int32Array, offset: Int64Array, order: int
) -> tuple[Int32Array, Int32Array]:
    """history (S, n) and length (S,) of LMArrays.

    ends (n,): end of each model's states; common: the mixture's id of word v of model i is at offset[i] + v.  The
    history of a state is that of a shorter state and one more word: the arc that reaches it from the shortest such
    state, since arcs from longer histories drop their first words.
    """
    num_states = arrays.backoff_state.shape[0]
    num_models = arrays.roots.shape[0]
    length = np.full(num_states, order + 1, dtype=np.int32)
    history = np.zeros((num_states, num_models), dtype=np.int32)
    for i in range(num_models):
        root = arrays.roots[i]
        length[root] = 0
        history[root] = arrays.roots
    for level in range(order):
        for i in range(num_models):
            for state in range(arrays.roots[i], ends[i]):
                if length[state] != level:
                    continue
                for arc in range(arrays.first_arc[state], arrays.first_arc[state + 1]):
                    target = arrays.next_state[arc]
                    if length[target] <= level + 1:
                        continue
                    length[target] = level + 1
                    word = common[offset[i] + arrays.word[arc]]
                    for j in range(num_models):
                        model_word = arrays.own_word[j, word]
                        root = np.int64(arrays.roots[j])
                        if j == i:
                            history[target, j] = target
                        elif model_word < 0:
                            history[target, j] = root
                        else:
                            _, reached = automaton_step(arrays, root, np.int64(history[state, j]), model_word)
                            history[target, j] = reached
    return history, length
