"""How fast each stage was: hours of speech and words per time."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.text import parse_json, read_lines
from readers.htk.mlf import read_mlf
from recipes.own.data import FRAMES_PER_SECOND
from recipes.own.sizes import SPEEDS, SUBSAMPLING, WARPED_COPIES
from recipes.stages import seconds_of, was_resumed

if TYPE_CHECKING:
    from recipes.own.run import Recipe


def speed_lines(recipe: "Recipe") -> list[str]:
    """Return a line for each stage that is done, and one for all."""
    seconds = seconds_of(recipe.stages(), recipe.out)
    hours = dict(_hours(recipe))
    words = dict(_words(recipe))
    width = max(map(len, seconds), default=0)
    lines = []
    for stage, duration in seconds.items():
        rates = []
        if was_resumed(recipe.out, stage):
            rates.append("the rest, after an interruption")
        elif stage in hours and duration:
            rates.append(f"{hours[stage]:.2f} hours of speech, {3600 * hours[stage] / duration:.1f} per hour")
        if stage in words and duration:
            rates.append(f"{words[stage]} words, {words[stage] / duration:.0f} per second")
        lines.append(f"{stage:{width}} {duration:8.1f} s" + "".join(f"; {rate}" for rate in rates))
    return [*lines, f"{'all stages':{width}} {sum(seconds.values()):8.1f} s"]


def _hours(recipe: "Recipe") -> Iterator[tuple[str, float]]:
    """Yield the hours of speech that a stage works on; of trainings, those of all epochs together."""
    hours = recipe.facts.hours
    yield "features", hours * WARPED_COPIES
    yield "flatstart", hours
    yield "align", hours
    yield "copies", hours * len(SPEEDS)
    yield "train-first", _trained_hours(recipe.first.trained, 1)
    final = recipe.final
    yield "train", _trained_hours(final.trained, SUBSAMPLING if final.layout.startswith("own-lfmmi") else 1)
    yield "decode", _listed_hours(recipe.out / "lists" / "test.scp")


def _trained_hours(model: Path, subsampling: int) -> float:
    """Return the hours that a network was trained on, epoch by epoch."""
    rows = [parse_json(line) for line in read_lines(f"{model}.history.jsonl")]
    return sum(row["samples"] for row in rows) * subsampling / FRAMES_PER_SECOND / 3600


def _listed_hours(scp: Path) -> float:
    from readers.htk.scp import frame_counts

    return sum(frame_counts(scp).values()) / FRAMES_PER_SECOND / 3600


def _words(recipe: "Recipe") -> Iterator[tuple[str, int]]:
    """Yield the words of sentences that a stage works on."""
    lm = recipe.out / "lm"
    texts = [lm / f"{name}.txt" for name in (*recipe.texts.values(), *(["text"] if recipe.options.text else []))]
    yield "lm", sum(len(line.split()) for path in texts for line in read_lines(path))
    references = read_mlf(recipe.labels("test"))
    yield "decode", sum(len(references[name]) for name in references)
