"""The second pass of the recipe: a recurrent language model, and what it makes of the lattices of the test set."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decoder import lm
from decoder.lattices import jobs
from decoder.results.second_pass import SecondPassOptions
from recipes.evaluation import Evaluation, rate_line
from recipes.job import RecipeResult
from recipes.packing import LAYOUTS
from recipes.stages import call

if TYPE_CHECKING:
    from recipes.own.run import Recipe


class SecondPass:
    """A recurrent language model of the transcripts, or of a text and then the transcripts, that rescores lattices."""

    def __init__(self, recipe: "Recipe"):
        self.recipe = recipe
        layout = LAYOUTS["own"].second_pass
        assert layout is not None
        self.options = SecondPassOptions(consensus=layout.consensus)
        self.model = recipe.out / layout.model
        self.home = recipe.out / "second"

    def train(self) -> int:
        folder = self.recipe.out / "lm"
        transcripts = (folder / "train.txt",)
        text = (folder / "text.txt",) if self.recipe.options.text is not None else ()
        options = lm.LMTrainOptions(
            texts=lm.TextOptions(text=text or transcripts), domain=transcripts if text else (),
            heldout=folder / "dev.txt", vocabulary=folder / "vocabulary", seed=self.recipe.seed, output=self.model,
        )  # fmt: skip
        return call("lm", options)

    def recognise(self) -> int:
        """Rescore the lattices of the final network, and take the words with the fewest expected errors."""
        first = self.recipe.final.evaluation
        options = self.options
        lost = 0
        for name in first.language_models:
            rescoring = jobs.RescoreOptions(
                lattices=Path(f"{first.lattice_prefix(name)}.index"), prefix=self.evaluation.lattice_prefix(name),
                network=lm.NetworkOptions(model=self.model, weight=options.weight),
                histories=lm.HistoryOptions(order=options.order, beam=options.beam),
            )  # fmt: skip
            words = jobs.WordsOptions(
                lattices=rescoring.index, scale=options.consensus, by="consensus", mlf=self.evaluation.hypotheses(name)
            )
            lost |= call("lattice", rescoring) | call("lattice", words)
        return lost

    def join(self, result: RecipeResult) -> RecipeResult:
        """Return the result of a recipe with the error rates of the second pass after those of the first."""
        evaluation = self.evaluation
        figures = evaluation.figures()
        return replace(
            result, figures=(*result.figures, *figures), pictures=(*result.pictures, *evaluation.pictures),
            reports=(*result.reports, *evaluation.reports), lines=(*result.lines, *map(rate_line, figures)),
        )  # fmt: skip

    @property
    def evaluation(self) -> Evaluation:
        """What the second pass finds in place of the first."""
        first = self.recipe.final.evaluation
        models = {
            name: replace(model, label=f"{model.label}, second pass") for name, model in first.language_models.items()
        }
        return replace(first, home=self.home, language_models=models)
