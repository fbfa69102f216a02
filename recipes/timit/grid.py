"""The search options that the recipe tries on the development set, for phones and for words."""

from recipes.tuning import Grid

GRID = Grid(
    start={"acweight": 0.4, "lm_scale": 1.0, "word_penalty": 0.0},
    values={
        "acweight": (0.2, 0.3, 0.4, 0.5, 0.7),
        "lm_scale": (0.7, 1.0, 1.5, 2.0, 3.0),
        "word_penalty": (-1.0, 0.0, 1.0, 2.0),
    },
    beams=(10.0, 15.0),
    # Silence is an ordinary phone here; and the default word-end beam, a third of the beam, loses utterances.
    fixed={"sil_cost": 0.0, "word_end_beam_frac": 1.0},
)

WORD_GRID = Grid(
    start={"acweight": 0.3, "lm_scale": 1.5, "word_penalty": 0.0, "sil_cost": 0.0},
    values={
        "acweight": (0.2, 0.3, 0.4),
        "lm_scale": (1.0, 1.5, 2.0, 3.0),
        "word_penalty": (-1.0, 0.0, 1.0, 2.0),
        "sil_cost": (-1.0, 0.0, 1.0),
    },
    beams=(11.0, 13.0, 15.0),
    fixed={"word_end_beam_frac": 1.0},
)
