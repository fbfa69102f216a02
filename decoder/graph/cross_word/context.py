"""C, the context dependency: the HMM states of each phone in its context."""

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from decoder.graph.lexicon import round_to_grid
from decoder.graph.openfst import EPSILON
from decoder.graph.phone_models import EarlyExits, PhoneModels
from readers.common.faults import listed
from readers.errors import GraphError
from readers.htk.trees import phone_of


class TriphoneTable:
    """The state labels of every triphone that is asked for.

    models: the states of logical models, `l-c+r`, or `c` for a phone without context; phones: names by number; silence:
    its number; symbols: the label of a state is 1 + its index in this list.
    Models are numbered when they are first asked for; the labels of model m are labels[offset[m] : offset[m] +
    length[m]].  enter_cost and leave_cost have the same places: the cost of going on to a state from the one before,
    and that of leaving the model early after a state, inf where that is impossible.
    """

    def __init__(self, models: PhoneModels, phones: Sequence[str], silence: int, symbols: list[str]):
        states = models.states
        self.states = states
        self.phone_names = list(phones)
        self.silence = silence
        self._early_exits = models.early_exits
        self._label = {symbol: i for i, symbol in enumerate(symbols, start=1)}
        self.context_free = {phone for phone in phones if phone not in models.phones_in_context and phone in states}
        self.missing: dict[str, str] = {}  # name of the model -> phone
        self.used: dict[str, tuple[int, ...]] = {}  # model -> labels
        self._numbers: dict[tuple[tuple[int, ...], EarlyExits], int] = {}
        self._known: dict[int, int] = {}  # code of the triphone -> number of its model

    @property
    def num_phones(self) -> int:
        return len(self.phone_names)

    def models(self, left: npt.ArrayLike, phone: npt.ArrayLike, right: npt.ArrayLike) -> np.ndarray:
        """Model number of each triphone; left, phone and right are phone numbers that broadcast.

        Triphones without a model are recorded for `check`.
        """
        size = self.num_phones
        lefts, phones, rights = np.broadcast_arrays(left, phone, right)
        codes, inverse = np.unique((lefts * size + phones) * size + rights, return_inverse=True)
        numbers = np.array([self._model(int(code)) for code in codes], dtype=np.int64)
        return numbers[inverse].reshape(lefts.shape)

    def split_models(
        self, left: npt.ArrayLike, phone: npt.ArrayLike, right: npt.ArrayLike
    ) -> tuple[np.ndarray, np.ndarray]:
        """Each triphone as two models, all states but the last, and the last; epsilon and all states for a model with
        one state, or one that may be left early.
        """
        models = self.models(left, phone, right)
        by_number = {number: key for key, number in self._numbers.items()}
        unique, inverse = np.unique(models, return_inverse=True)
        halves = []
        for labels, exits in (by_number[int(m)] for m in unique):
            split = 0 if exits else len(labels) - 1
            halves.append((self._number(labels[:split] or (EPSILON,)), self._number(labels[split:], exits)))
        heads, tails = np.array(halves, dtype=np.int64).reshape(-1, 2).T
        return heads[inverse].reshape(models.shape), tails[inverse].reshape(models.shape)

    def _model(self, code: int) -> int:
        if code not in self._known:
            left_phone, right = divmod(code, self.num_phones)
            left, phone = divmod(left_phone, self.num_phones)
            names = self.phone_names
            name = names[phone] if names[phone] in self.context_free else f"{names[left]}-{names[phone]}+{names[right]}"
            exits: EarlyExits = ()
            if name in self.states:
                labels = self.used[name] = tuple(self._label[f"[{state}]"] for state in self.states[name])
                exits = self._early_exits(name) or ()
            else:
                self.missing.setdefault(name, names[phone])
                labels = (EPSILON,)
            self._known[code] = self._number(labels, exits)
        return self._known[code]

    def _number(self, labels: tuple[int, ...], exits: EarlyExits = ()) -> int:
        return self._numbers.setdefault((labels, exits), len(self._numbers))

    def check(self) -> None:
        """Raise GraphError for models that were asked for and do not exist (the first ten)."""
        if not self.missing:
            return
        raise GraphError(
            f"HMM set: no model for {len(self.missing)} triphones: {listed(self.missing)}; expected one for every "
            "triphone within and across words; decision trees supply those that were never seen"
        )

    @property
    def identifies_phones(self) -> bool:
        """Whether the states of a path determine its phones: no state in two places, one length for each phone."""
        position: dict[int, tuple[str, int]] = {}
        length: dict[str, int] = {}
        for name, labels in self.used.items():
            phone = phone_of(name)
            if length.setdefault(phone, len(labels)) != len(labels):
                return False
            if any(position.setdefault(label, (phone, i)) != (phone, i) for i, label in enumerate(labels)):
                return False
        return True

    def finish(self) -> None:
        """Compute labels, offset, length and costs of all models."""
        rows = [labels for labels, _ in self._numbers]
        self.length = np.array([len(row) for row in rows], dtype=np.int64)
        self.offset = np.cumsum(self.length) - self.length
        total = int(self.length.sum())
        self.labels = np.fromiter(itertools.chain.from_iterable(rows), np.int64, total)
        self.enter_cost = np.zeros(total)
        self.leave_cost = np.full(total, np.inf)
        for (_, exits), offset in zip(self._numbers, self.offset.tolist()):
            for row, (going_on, leaving) in enumerate(exits, start=offset):
                self.enter_cost[row + 1] = round_to_grid(-going_on)
                if leaving > -np.inf:
                    self.leave_cost[row] = round_to_grid(-leaving)
