"""The figure and the tables of the comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acoustic.training.reporting.plots import new_figure, save_figure
from benchmarks.natural_gradient.curves import Point

METHODS = {"plain": "plain SGD", "simple": "simple NG-SGD", "online": "online NG-SGD"}  # in the paper's order
STYLES = {"plain": "--", "simple": ":", "online": "-"}
DEPTH = 3.0  # range of the picture below the best objective
COLOURS = {1: "tab:blue", 2: "tab:orange", 4: "tab:green", 8: "tab:red", 16: "tab:purple"}


@dataclass(frozen=True)
class Run:
    """A training run.

    method, jobs: method and number of jobs.
    curve: its points.
    seconds: time of an outer iteration of its method.
    rates: word or phone error rates of dev and test in percent; None if they were not decoded.
    """

    method: str
    jobs: int
    curve: Sequence[Point]
    iteration_seconds: float
    rates: Mapping[str, float] | None = None

    @property
    def title(self) -> str:
        return f"{METHODS[self.method]}, {self.jobs} {'job' if self.jobs == 1 else 'jobs'}"


def table(runs: Sequence[Run], unit: str) -> str:
    """Return a table with one line per run."""
    headings = ("run", "iterations", "minutes", "train objective", "dev objective", "dev frames",
                f"dev {unit}", f"test {unit}")  # fmt: skip
    lines = [headings, *map(_cells, runs)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(headings))]
    shown = [[line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))]
             for line in lines]  # fmt: skip
    return "".join("  ".join(cells) + "\n" for cells in shown)


def markdown(runs: Sequence[Run]) -> str:
    """Return the rows for RESULTS.md."""
    return "".join(f"| {' | '.join(_cells(run))} |\n" for run in runs)


def _cells(run: Run) -> tuple[str, ...]:
    last = run.curve[-1]
    minutes = last.iterations * run.iteration_seconds / 60
    rates = [f"{run.rates[name]:.1f} %" if run.rates else "-" for name in ("dev", "test")]
    objectives = f"{last.train_objective:.4f}", f"{last.dev_objective:.4f}"
    return run.title, str(last.iterations), f"{minutes:.2f}", *objectives, f"{100 * last.dev_error:.2f} %", *rates


def draw(runs: Sequence[Run], path: Path, title: str) -> None:
    """Write a PNG with the objective against epochs and against simulated clock time, as in Figure 1 of the paper."""
    figure = new_figure(11, 4.6)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, time in zip(panels, (False, True)):
        for run in runs:
            xs = [p.iterations * run.iteration_seconds / 60 if time else p.epochs for p in run.curve]
            ys = [p.train_objective for p in run.curve]
            colour = COLOURS.get(run.jobs, "black")
            axes.plot(xs, ys, STYLES[run.method], color=colour, label=run.title, linewidth=1.3)
            axes.plot(xs[-1:], ys[-1:], "o", color=colour, markersize=4)
        axes.set_xlabel("simulated clock time, minutes" if time else "epochs")
        axes.grid(alpha=0.3)
    panels[1].set_xscale("log")
    panels[0].set_ylabel("log probability per frame, training set")
    # Cut off the first points and diverging runs, which are far below, to show how the runs converge.
    lowest = min(min(p.train_objective for p in run.curve[len(run.curve) // 4 :]) for run in runs)
    best = max(p.train_objective for run in runs for p in run.curve)
    lowest = max(lowest, best - DEPTH)
    panels[0].set_ylim(lowest - 0.05 * (best - lowest) - 0.01, best + 0.05 * (best - lowest) + 0.01)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    figure.suptitle(title, fontsize=10)
    save_figure(figure, path)
