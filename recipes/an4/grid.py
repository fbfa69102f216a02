"""The search options that the recipe tries on the development set."""

from recipes.tuning import Grid

GRID = Grid(
    start={"acweight": 0.15, "lm_scale": 1.0, "word_penalty": 0.0, "sil_cost": 0.0},
    values={
        "acweight": (0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3),
        "lm_scale": (0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0),
        "word_penalty": (-2.0, -1.0, 0.0, 1.0, 2.0, 4.0),
        "sil_cost": (-1.0, 0.0, 1.0, 2.0),
    },
    beams=(8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0),
    # With such a small acweight, the default word-end beam, a third of the beam, loses words: 18 errors instead of 13.
    fixed={"word_end_beam_frac": 1.0},
)

# For lattice-free MMI: scores without priors, of a third of the frames.
LATTICE_FREE_GRID = Grid(
    start={"acweight": 1.4, "lm_scale": 1.0, "word_penalty": 0.0, "sil_cost": 0.0},
    values={
        "acweight": (0.7, 1.0, 1.4, 2.0, 2.8),
        "lm_scale": (0.7, 0.85, 1.0, 1.2, 1.5, 2.0),
        "word_penalty": (-2.0, -1.0, 0.0, 1.0, 2.0, 4.0),
        "sil_cost": (-1.0, 0.0, 1.0, 2.0),
    },
    beams=(8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0),
    fixed={"word_end_beam_frac": 1.0},
)
