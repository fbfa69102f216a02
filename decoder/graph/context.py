"""C, the context dependency: the HMM states of each phone in its context."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from decoder.graph.openfst import EPSILON
from readers.errors import GraphError
from readers.htk.trees import phone_of


class TriphoneTable:
    """The state labels of every triphone that is asked for.

    states: logical model (`l-c+r`, or `c` for a phone without context) -> states; phones: names by number; silence: its
    number; symbols: the label of a state is 1 + its index in this list.
    Models are numbered when they are first asked for; the labels of model m are labels[offset[m] : offset[m] +
    length[m]].
    """

    def __init__(self, states: Mapping[str, Sequence[str]], phones: Sequence[str], silence: int, symbols: list[str]):
        self.states, self.phone_names, self.silence = states, list(phones), silence
        label = {symbol: i for i, symbol in enumerate(symbols, start=1)}
        self._label = {name: [label[f"[{s}]"] for s in names] for name, names in states.items()}
        with_context = {phone_of(name) for name in states if phone_of(name) != name}
        self.context_free = {phone for phone in phones if phone not in with_context and phone in states}
        self.missing: dict[str, str] = {}  # name of the model -> phone
        self.used: dict[str, tuple[int, ...]] = {}  # model -> labels
        self._numbers: dict[tuple[int, ...], int] = {}
        self._known: dict[int, int] = {}  # code of the triphone -> number of its model

    @property
    def num_phones(self) -> int:
        return len(self.phone_names)

    def models(self, left, phone, right) -> np.ndarray:
        """Model number of each triphone; left, phone and right are phone numbers that broadcast.

        Triphones without a model are recorded for `check`.
        """
        size = self.num_phones
        left, phone, right = np.broadcast_arrays(left, phone, right)
        codes, inverse = np.unique((left * size + phone) * size + right, return_inverse=True)
        numbers = np.array([self._model(int(code)) for code in codes], dtype=np.int64)
        return numbers[inverse].reshape(left.shape)

    def split_models(self, left, phone, right) -> tuple[np.ndarray, np.ndarray]:
        """Each triphone as two models: all states but the last (epsilon for a model with one state), and the last."""
        models = self.models(left, phone, right)
        by_number = {number: labels for labels, number in self._numbers.items()}
        unique, inverse = np.unique(models, return_inverse=True)
        heads = np.array([self._number(by_number[int(m)][:-1] or (EPSILON,)) for m in unique], dtype=np.int64)
        tails = np.array([self._number(by_number[int(m)][-1:]) for m in unique], dtype=np.int64)
        return heads[inverse].reshape(models.shape), tails[inverse].reshape(models.shape)

    def _model(self, code: int) -> int:
        if code not in self._known:
            left_phone, right = divmod(code, self.num_phones)
            left, phone = divmod(left_phone, self.num_phones)
            names = self.phone_names
            name = names[phone] if names[phone] in self.context_free else f"{names[left]}-{names[phone]}+{names[right]}"
            labels = self._label.get(name)
            if labels is None:
                self.missing.setdefault(name, names[phone])
                labels = [EPSILON]
            else:
                self.used[name] = tuple(labels)
            self._known[code] = self._number(tuple(labels))
        return self._known[code]

    def _number(self, labels: tuple[int, ...]) -> int:
        return self._numbers.setdefault(labels, len(self._numbers))

    def check(self) -> None:
        """Raise GraphError for models that were asked for and do not exist (the first ten)."""
        if not self.missing:
            return
        shown = ", ".join(itertools.islice(self.missing, 10))
        more = f" and {len(self.missing) - 10} more" if len(self.missing) > 10 else ""
        raise GraphError(
            f"HMM set: no model for {len(self.missing)} triphones: {shown}{more}; expected one for every triphone "
            "within and across words; decision trees supply those that were never seen"
        )

    @property
    def identifies_phones(self) -> bool:
        """Whether the states of a path determine its phones: no state in two places, one length for each phone."""
        place: dict[int, tuple[str, int]] = {}
        length: dict[str, int] = {}
        for name, labels in self.used.items():
            phone = phone_of(name)
            if length.setdefault(phone, len(labels)) != len(labels):
                return False
            if any(place.setdefault(label, (phone, i)) != (phone, i) for i, label in enumerate(labels)):
                return False
        return True

    def finish(self) -> None:
        """Compute labels, offset and length of all models."""
        rows = list(self._numbers)
        self.length = np.array([len(row) for row in rows], dtype=np.int64)
        self.offset = np.cumsum(self.length) - self.length
        self.labels = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(self.length.sum()))
