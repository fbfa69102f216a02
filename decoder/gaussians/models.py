"""States as mixtures of Gaussians with diagonal covariances, and their HTK model set."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from decoder.gaussians.kernels import MixtureArrays, accumulate, state_scores
from readers.common.faults import listed
from readers.errors import FormatError, ShapeError
from readers.htk.hmm_set import (
    Hmm,
    HmmOptions,
    HmmSet,
    HmmState,
    StreamMixture,
    TransitionMatrix,
    diagonal_component,
)


@dataclass(frozen=True, eq=False)
class GaussianModels:
    """K states whose densities are mixtures of Gaussians, C components in all, of d values.

    Parameters
    ----------
    states : tuple of str
        Names of the K states: the rows of `log_likelihoods`.
    first : (K + 1,) int64
        The components of state k are first[k] .. first[k + 1] - 1.
    weights : (C,) float64
        Mixture weights, which sum to 1 for each state.
    means, variances : (C, d) float64
    kind : str
        HTK's name of the features, such as MFCC_0_D_A_Z.

    Examples
    --------
    >>> import numpy as np
    >>> models = GaussianModels(("a", "b"), np.arange(3), np.ones(2), np.array([[0.0], [3.0]]), np.ones((2, 1)))
    >>> models.log_likelihoods(np.array([[0.0, 3.0]])).round(2)
    array([[-0.92, -5.42],
           [-5.42, -0.92]], dtype=float32)
    """

    states: tuple[str, ...]
    first: np.ndarray
    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    kind: str = "USER"
    _arrays: MixtureArrays = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = (len(self.first) - 1, len(self.weights), len(self.means), self.variances.shape)
        if (
            sizes != (len(self.states), self.first[-1], self.first[-1], self.means.shape)
            or self.first[0] != 0
            or np.any(np.diff(self.first) < 1)
        ):
            raise ShapeError(
                f"Gaussian models: {len(self.states)} states, weights {self.weights.shape}, means {self.means.shape}, "
                f"variances {self.variances.shape}; expected at least one component of each state and equal sizes"
            )
        least = np.finfo(np.float64).tiny  # whose reciprocal is finite
        if not (
            np.all(self.variances >= least) and np.all(np.isfinite(self.variances)) and np.all(np.isfinite(self.means))
        ):
            raise ShapeError("Gaussian models: a mean or variance out of range; expected positive, finite variances")
        if not (np.all(self.weights >= 0) and np.all(np.isfinite(self.weights))):
            raise ShapeError("Gaussian models: a weight out of range; expected positive, finite weights")
        # Sums depend on the order in memory, which must not change the bits: first C order, then the constants.
        for name, values in (
            ("first", np.ascontiguousarray(self.first, np.int64)),
            ("weights", np.ascontiguousarray(self.weights, np.float64)),
            ("means", np.ascontiguousarray(self.means, np.float64)),
            ("variances", np.ascontiguousarray(self.variances, np.float64)),
        ):
            object.__setattr__(self, name, values)
        with np.errstate(divide="ignore"):
            weights = np.log(self.weights)
        norm = 0.5 * (self.dim * math.log(2 * math.pi) + np.log(self.variances).sum(axis=1))
        arrays = MixtureArrays(self.first, weights - norm, self.means, 0.5 / self.variances)
        object.__setattr__(self, "_arrays", arrays)

    @property
    def dim(self) -> int:
        """Values of a frame."""
        return self.means.shape[1]

    @property
    def num_components(self) -> np.ndarray:
        """(K,) int64: number of components of each state."""
        return np.diff(self.first)

    def log_likelihoods(self, features: np.ndarray) -> np.ndarray:
        """ln p(frame | state), in place of a network's scores.

        Parameters
        ----------
        features : (d, T) array
            A column per frame.

        Returns
        -------
        (K, T) float32
            Rows in the order of `states`; Fortran-ordered.

        Raises
        ------
        ShapeError
            For features of another size.
        """
        rows = np.arange(len(self.states), dtype=np.int32)
        return np.asfortranarray(self.scores(features, rows), dtype=np.float32)

    def scores(self, features: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """ln p(frame | state) of some states, (len(rows), T) float64; see `log_likelihoods`."""
        return state_scores(self.checked(features), rows, self._arrays)

    def accumulate(
        self,
        features: np.ndarray,
        visits: tuple[np.ndarray, np.ndarray, np.ndarray],
        sums: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        """Divide visits of states among the components by their posterior probabilities.

        Parameters
        ----------
        features : (d, T) float64, C-ordered
        visits : three (n,) arrays, int64, int32, float64
            Frame, state and posterior probability of each visit.
        sums : (C,), (C, d) and (C, d) float64
            To add to: the components' shares, and their sums of frames and of squares.
        """
        frame, state, share = visits
        occupancy, total, square = sums
        accumulate(features, frame, state, share, self._arrays, occupancy, total, square)

    def checked(self, features: np.ndarray) -> np.ndarray:
        """Features (d, T) as float64 in C order.  Raises ShapeError for another size."""
        if features.ndim != 2 or features.shape[0] != self.dim:
            raise ShapeError(f"features of shape {features.shape}; expected ({self.dim}, frames), as the models have")
        return np.ascontiguousarray(features, dtype=np.float64)

    @classmethod
    def flat(
        cls, states: Sequence[str], mean: np.ndarray, variance: np.ndarray, kind: str = "USER"
    ) -> "GaussianModels":
        """All states with the same Gaussian."""
        size = len(states)
        return cls(
            tuple(states),
            np.arange(size + 1),
            np.ones(size),
            np.tile(mean, (size, 1)),
            np.tile(variance, (size, 1)),
            kind,
        )

    @classmethod
    def load(cls, mmf: str | Path | Sequence[str | Path], states: str | Path | Sequence[str]) -> "GaussianModels":
        """Read the states of HTK models.

        Parameters
        ----------
        mmf : path or sequence of path
            Model definitions.
        states : path or sequence of str
            Names of the states in the order of the scores, or a file with one per line: names of `~s` macros, or
            `model_s2` and so on for states without a macro.

        Returns
        -------
        GaussianModels

        Raises
        ------
        FormatError
            For a damaged file, states that are not in it, several streams, and different sizes.
        """
        from readers.htk.frame_labels import read_state_list
        from readers.htk.mmf import read_mmf

        names = read_state_list(states) if isinstance(states, (str, Path)) else list(states)
        return cls.of_hmm_set(read_mmf(mmf), names, str(mmf) if isinstance(mmf, (str, Path)) else "MMF")

    @classmethod
    def of_hmm_set(cls, hmm_set: HmmSet, states: Sequence[str], where: str = "HMM set") -> "GaussianModels":
        """The states of an HMM set; see `load`."""
        state_of: dict[str, HmmState] = {}
        for hmm in hmm_set.hmms.values():
            state_of |= {hmm_set.state_name(hmm, index): state for index, state in enumerate(hmm.states)}
        state_of |= hmm_set.macros["s"]
        lacking = [name for name in states if name not in state_of]
        if lacking or not states:
            raise FormatError(f"{where}: no state {listed(lacking)}; expected all states of the state list")
        mixtures: list[StreamMixture] = []
        for name in states:
            if len(state_of[name].streams) != 1:
                raise FormatError(f"{where}: state '{name}' has {len(state_of[name].streams)} streams; expected one")
            mixtures.append(state_of[name].streams[0])
        components = [part for mixture in mixtures for part in mixture.components]
        dims = {len(vector.values) for part in components for vector in (part.mean, part.variance)}
        if len(dims) != 1:
            raise FormatError(f"{where}: vectors of {min(dims)} and {max(dims)} values; expected equal sizes")
        weights = np.array([weight for mixture in mixtures for weight in mixture.weights])
        counts = [len(mixture.components) for mixture in mixtures]
        first = np.concatenate(([0], np.cumsum(counts)))
        weights /= np.repeat(np.add.reduceat(weights, first[:-1]), counts)
        means = np.array([part.mean.values for part in components])
        variances = np.array([part.variance.values for part in components])
        return cls(tuple(states), first, weights, means, variances, hmm_set.options.kind or "USER")

    def hmm_set(self, models: Mapping[str, Sequence[str]], matrices: Mapping[str, np.ndarray]) -> HmmSet:
        """An HTK model set.

        Parameters
        ----------
        models : mapping of str to sequence of str
            Model -> its states.
        matrices : mapping of str to (n, n) array
            Model -> transition probabilities, with the entry and the exit.

        Returns
        -------
        HmmSet
            Without shared parts; state i of model m should be named `m_si`.
        """
        result = HmmSet(HmmOptions((self.dim,), self.dim, self.kind, "NULLD", "DIAGC"))
        row = {name: k for k, name in enumerate(self.states)}
        for model, names in models.items():
            states = tuple(HmmState((self._mixture(row[name]),)) for name in names)
            result.hmms[model] = Hmm(model, states, TransitionMatrix(matrices[model]))
        return result

    def _mixture(self, k: int) -> StreamMixture:
        which = range(self.first[k], self.first[k + 1])
        parts = tuple(diagonal_component(self.means[c], self.variances[c]) for c in which)
        return StreamMixture(tuple(float(self.weights[c]) for c in which), parts)


def mixture_arrays(models: GaussianModels) -> MixtureArrays:
    """The components as the kernels read them."""
    return models._arrays
