"""The demo of the CNTK book, 1.2: a 2-50-50-2 network separates two classes of points in the plane.

worked example:
  argonaut recipe simple2d --out exp/simple2d
ends with the names of its pictures (the book's figures 1.2 and 1.3) and a line `error x.x% (test, 1000 points)`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.job import Figure, RecipeOptions, RecipeResult, overrides
from recipes.stage_settings import cntk_settings
from recipes.stages import Stage
from recipes.steps import cntk

if TYPE_CHECKING:
    from readers.common.arrays import Float64Array

CONFIG = Path(__file__).parent / "config"


@dataclass(frozen=True, kw_only=True)
class Simple2dOptions(RecipeOptions):
    """Options of recipe simple2d."""

    overrides: tuple[str, ...] = overrides("to replace, such as Simple_Demo=[SGD=[maxEpochs=50]]")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("data", self.data is None, f"is {self.data}; expected none, the recipe generates its points")


class Recipe:
    """The stages, and the places of their files, which are all below `out`."""

    def __init__(self, options: Simple2dOptions):
        self.out = options.out
        self.seed = options.seed
        self.overrides = options.overrides
        self.boundary, self.errors = (self.out / "pictures" / f"{name}.png" for name in ("boundary", "errors"))

    def stages(self) -> list[Stage]:
        training = "Simple_Demo"
        output = "Simple_Demo_Output:Simple_Demo_Plane"
        return [
            Stage("data", "points of two classes", self.data, (), {"seed": self.seed}),
            Stage("train", "the network of 2-50x2-2", lambda: self.cntk(training), ("data",),
                  cntk_settings(self.cntk_arguments(training)), self.out / "models"),
            Stage("output", "its outputs for the test set and over the plane", lambda: self.cntk(output),
                  ("data", "train"), cntk_settings(self.cntk_arguments(output))),
            Stage("pictures", "decision boundary and error curve", self.pictures, ("data", "train", "output")),
        ]  # fmt: skip

    def data(self) -> None:
        from recipes.simple2d.data import write_data

        write_data(self.out / "data", self.seed)

    def cntk(self, commands: str) -> int:
        return cntk(self.cntk_arguments(commands))

    def cntk_arguments(self, commands: str) -> list[str]:
        return [
            f"configFile={CONFIG / 'simple2d.cntk'}", f"DataDir={self.out / 'data'}", f"ExpDir={self.out}",
            f"command={commands}", f"randomSeed={self.seed}", "extendTraining=true", *self.overrides,
        ]  # fmt: skip

    def pictures(self) -> None:
        from acoustic.training.reporting.log import read_history
        from recipes.simple2d.data import read_points
        from recipes.simple2d.pictures import draw_boundary, draw_errors

        points, classes = read_points(self.out / "data" / "SimpleDataTrain.txt")
        draw_boundary(self.outputs("SimplePlane"), points, classes, self.boundary)
        draw_errors(read_history(self.out / "models" / "simple.dnn.history.jsonl"), self.errors)

    def outputs(self, name: str) -> "Float64Array":
        """Return (points, 2) as action write stored them."""
        from readers.tables.text_matrix import read_text_matrix

        return read_text_matrix(self.out / "output" / f"{name}.ScaledLogLikelihood")

    def result(self) -> RecipeResult:
        from recipes.simple2d.data import read_points

        _, classes = read_points(self.out / "data" / "SimpleDataTest.txt")
        wrong = self.outputs("SimpleOutput").argmax(axis=1) != classes
        error = Figure("error", 100 * float(wrong.mean()), counts={"errors": int(wrong.sum()), "points": len(classes)})
        return RecipeResult(
            figures=(error,),
            pictures=(self.boundary, self.errors),
            lines=(
                f"pictures: {self.boundary} {self.errors}",
                f"error {error.value:.1f}% (test, {len(classes)} points)",
            ),
        )


RECIPE = Simple2dOptions, Recipe
