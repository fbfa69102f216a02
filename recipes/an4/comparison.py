"""Several systems on AN4, whose word error rates are shown side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from recipes.an4.recipe import LMS, Recipe
from recipes.job import RecipeResult
from recipes.stages import Stage


@dataclass(frozen=True)
class Comparison:
    """A recipe of several systems.

    all_stages: those of all systems, in order.
    systems: each with its description, in which {states} is the number of its outputs.
    """

    all_stages: list[Stage]
    systems: Sequence[tuple[Recipe, str]]

    @property
    def out(self) -> Path:
        return self.systems[0][0].out

    def stages(self) -> list[Stage]:
        return self.all_stages

    def result(self) -> RecipeResult:
        figures = []
        lines = []
        pictures: list[Path] = []
        reports: list[Path] = []
        for system, description in self.systems:
            evaluation = system.evaluation
            what = description.format(states=count_lines(system.state_list))
            rates = evaluation.figures()
            figures += [replace(rate, of=f"{what}, {rate.of}") for rate in rates]
            shown = "  ".join(f"{rate.value:.1f}%" for rate in rates)
            lines.append(f"WER {shown}  ({', '.join(LMS.values())}): {what}")
            pictures += evaluation.pictures
            reports += evaluation.reports
        return RecipeResult(
            figures=tuple(figures), pictures=tuple(pictures), reports=tuple(reports), lines=tuple(lines)
        )  # fmt: skip


def count_lines(path: Path) -> int:
    """Return the number of states in a list."""
    from readers.htk.frame_labels import read_state_list

    return len(read_state_list(path))
