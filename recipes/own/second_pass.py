"""The second pass of the recipe: a recurrent language model, and what it makes of the lattices of the test set."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decoder import lm
from decoder.lattices import jobs
from recipes.evaluation import Evaluation, rate_line
from recipes.job import RecipeResult
from recipes.packing import SECOND_PASS
from recipes.stages import Stage, call

if TYPE_CHECKING:
    from recipes.own.run import Recipe


class SecondPass:
    """A recurrent language model of the transcripts, or of a text and then the transcripts, that rescores lattices."""

    def __init__(self, recipe: "Recipe"):
        self.recipe = recipe
        self.model = recipe.out / SECOND_PASS.model
        self.home = recipe.out / "second"

    def stages(self) -> list[Stage]:
        return [
            Stage("lm-network", "a recurrent language model", self.train, ("lists",), {"seed": self.recipe.seed},
                  self.model.parent),
            Stage("second-pass", "words of the test set, from the lattices rescored by this model", self.recognise,
                  ("decode", "lm-network")),
        ]  # fmt: skip

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
        from decoder.results.second_pass import SecondPassOptions

        first = self.recipe.final.evaluation
        second = self.evaluation
        options = SecondPassOptions(consensus=SECOND_PASS.consensus)
        lost = 0
        for name in first.language_models:
            rescoring = jobs.RescoreOptions(
                lattices=Path(f"{first.lattice_prefix(name)}.index"), prefix=second.lattice_prefix(name),
                network=lm.NetworkOptions(model=self.model, weight=options.weight),
                histories=lm.HistoryOptions(order=options.order, beam=options.beam),
            )  # fmt: skip
            words = jobs.WordsOptions(
                lattices=rescoring.index, scale=options.consensus, by="consensus", mlf=second.hypotheses(name)
            )
            lost |= call("lattice", rescoring) | call("lattice", words)
        return lost

    def join(self, result: RecipeResult) -> RecipeResult:
        """Return the result of a recipe with the error rates of the second pass after those of the first."""
        evaluation = self.evaluation
        figures = evaluation.figures()
        pictures = (*result.pictures, *evaluation.pictures)
        shown = f"pictures: {' '.join(map(str, pictures))}"
        before = [shown if line.startswith("pictures: ") else line for line in result.lines]
        return replace(
            result, figures=(*result.figures, *figures), pictures=pictures,
            reports=(*result.reports, *evaluation.reports), lines=(*before, *map(rate_line, figures)),
        )  # fmt: skip

    @property
    def evaluation(self) -> Evaluation:
        """What the second pass finds in place of the first."""
        first = self.recipe.final.evaluation
        models = {
            name: replace(model, label=f"{model.label}, second pass") for name, model in first.language_models.items()
        }
        return replace(first, home=self.home, language_models=models)
