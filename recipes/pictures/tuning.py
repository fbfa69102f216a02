"""The trials of a tuning: error over each option, and error over the real-time factor of the beams."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acoustic.training.reporting.plots import new_figure, save_figure

SPEED = "real_time_factor"
PANEL = (3.6, 3.0)  # inches
TITLES = {
    "acweight": "acoustic weight",
    "lm_scale": "LM scale",
    "word_penalty": "word penalty",
    "sil_cost": "silence cost",
}


def varied(trials: Sequence[Mapping[str, float]], chosen: Mapping[str, float]) -> dict[str, list[Mapping[str, float]]]:
    """Return, for each option with several values, the trials in which every other option was as chosen, by value.

    The beam is tried last, so that trials of other options have the widest beam; it need not be the chosen one.
    """
    widest = max((trial["beam"] for trial in trials if "beam" in trial), default=None)
    trials_by_option: dict[str, list[Mapping[str, float]]] = {}
    for option in chosen:
        fixed: dict[str, float | None] = {name: value for name, value in chosen.items() if name != option}
        if option != "beam" and "beam" in fixed:
            fixed["beam"] = widest
        rows = [trial for trial in trials if all(trial.get(name) == value for name, value in fixed.items())]
        by_value = {trial[option]: trial for trial in rows}
        if len(by_value) > 1:
            trials_by_option[option] = [by_value[value] for value in sorted(by_value)]
    return trials_by_option


def error_rate(trial: Mapping[str, float]) -> float:
    """Return the errors of a trial in percent of the words."""
    return 100 * trial["errors"] / max(trial["words"], 1)


def draw_tuning(record: Mapping[str, Any], path: str | Path) -> None:
    """Write a PNG with one panel for each option that was tried, and one of error over speed.

    Parameters
    ----------
    record : mapping
        Content of a tune.json: `chosen`, the options, and `trials`, the options of each trial with `errors`, `words`
        and, since it is measured, `real_time_factor`.
    path : path
        PNG file.
    """
    chosen = record["chosen"]
    options = varied(record["trials"], record["chosen"])
    beams = [trial for trial in options.get("beam", []) if SPEED in trial]
    num_panels = max(1, len(options) + bool(beams))
    columns = min(num_panels, 3)
    rows = -(-num_panels // columns)
    figure = new_figure(PANEL[0] * columns, PANEL[1] * rows)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (option, trials) in zip(panels, options.items()):
        axes.plot([trial[option] for trial in trials], list(map(error_rate, trials)), marker="o", markersize=4)
        axes.axvline(chosen[option], color="tab:orange", linestyle="dashed", label=f"chosen: {chosen[option]:g}")
        axes.set_xlabel(TITLES.get(option, option.replace("_", " ")))
        axes.legend(fontsize=8)
    if beams:
        axes = panels[len(options)]
        axes.plot([trial[SPEED] for trial in beams], list(map(error_rate, beams)), marker="o", markersize=4)
        for trial in beams:
            point = (trial[SPEED], error_rate(trial))
            axes.annotate(f"{trial['beam']:g}", point, textcoords="offset points", xytext=(4, 4), fontsize=8)
        axes.set_xlabel("real-time factor of the search, by beam")
    for axes in panels[:num_panels]:
        axes.set_ylabel("error (%)")
        axes.grid(alpha=0.3)
    for axes in panels[num_panels:]:
        axes.axis("off")
    save_figure(figure, path)
