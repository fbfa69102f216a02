"""The corpora of the variants, as the recipes an4 and timit prepare them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.variants.lists import Item
from benchmarks.variants.task import Decoding, Task
from recipes.job import RecipeOptions
from recipes.stages import Stage
from recipes.tuning import Grid

CONFIG = Path(__file__).parent / "config"

# Coarser than that of recipe an4, because the networks, which are smaller and have fewer inputs, share one choice.
AN4_GRID = Grid(
    start={"acweight": 0.2, "lm_scale": 1.0, "word_penalty": 0.0, "sil_cost": 0.0},
    values={
        "acweight": (0.1, 0.15, 0.2, 0.3),
        "lm_scale": (0.7, 1.0, 1.5, 2.0),
        "word_penalty": (-1.0, 0.0, 1.0, 2.0),
        "sil_cost": (-1.0, 0.0, 1.0),
    },
    beams=(14.0,),
    fixed={"word_end_beam_frac": 1.0},
)


class Corpus(NamedTuple):
    """A corpus.

    stages: stages of its recipe that prepare it.
    settings: of the configurations.
    """

    stages: Sequence[Stage]
    task: Task
    settings: Sequence[str]


def an4(options: RecipeOptions, size: str) -> Corpus:
    """Return AN4; the second task is speaker identification."""
    from recipes.an4.recipe import Recipe

    recipe = Recipe(options)
    labels = recipe.out / "labels"
    task = Task(
        config=CONFIG / "an4.cntk",
        sets=lambda: {name: [Item(u.name, u.audio, u.speaker) for u in us] for name, us in recipe.sets.items()},
        states=labels / "states.list",
        decoding={
            name: Decoding(recipe.graph_folder(lm), recipe.lm_file(lm), labels / f"{name}.words.mlf")
            for name, lm in (("dev", "tune-trained"), ("test", "trained"))
        },
        grid=AN4_GRID,
        unit="WER",
        data_stage="lists",
    )
    return Corpus(select(recipe.stages(), "lists", "lm", "graph"), task, [f"NumStates={recipe.num_states}"])


def timit(options: RecipeOptions, size: str) -> Corpus:
    """Return TIMIT, or a corpus with its layout; the second task is the dialect region."""
    from readers.tables.timit import read_phone_map
    from recipes.timit.grid import GRID
    from recipes.timit.prepare import PHONE_MAP
    from recipes.timit.run import Recipe

    recipe = Recipe(options, size)
    labels, lm = recipe.out / "labels", recipe.out / "lm.arpa"
    task = Task(
        config=CONFIG / "timit.cntk",
        # Called after the stage `corpus`, which may have to synthesise the utterances.
        sets=lambda: {name: [Item(u.name, u.audio, u.dialect) for u in us] for name, us in recipe.sets.items()},
        states=labels / "states.list",
        decoding={name: Decoding(recipe.out / "graph", lm, labels / f"{name}.phones.mlf") for name in ("dev", "test")},
        grid=GRID,
        unit="PER",
        data_stage="labels",
        fold=read_phone_map(PHONE_MAP),
        fbank=lambda name: recipe.out / "features" / f"{name}.fbank",
    )
    return Corpus(select(recipe.stages(), "corpus", "features", "labels", "lm", "graph"), task, ())


def select(stages: Sequence[Stage], *names: str) -> list[Stage]:
    """Return the stages with these names."""
    return [stage for stage in stages if stage.name in names]


CORPORA = {"an4": an4, "timit": timit}
