"""Perplexities of an n-gram and of networks on the same sentences, alone and interpolated, as a table and a picture."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from acoustic.scoring.word_scorer import WordScorer
from acoustic.training.reporting.log import read_history
from acoustic.training.reporting.plots import new_figure, save_figure
from decoder.lm.evaluation import mix_logs, sentence_logs
from decoder.lm.language_model import LanguageModel
from readers.common.files import write_json
from readers.common.text import read_lines
from readers.errors import FormatError
from readers.language.arpa import read_arpa

SETS = ("dev", "test")
WEIGHTS = tuple(k / 10 for k in range(11))  # interpolation weights of a network
NGRAM = "trigram"


@dataclass(frozen=True)
class Measured:
    """A model, or an interpolation of a network with the n-gram, and its perplexities on both sets.

    weight: that of the network in the interpolation, chosen on dev; None for a model alone.
    """

    name: str
    dev: float
    test: float
    weight: float | None = None


@dataclass(frozen=True)
class Perplexities:
    """The perplexities of all models on the same sentences.

    num_predicted: number of words and sentence ends in both sets, which every model predicted; num_unknown: how many
    of them are <unk>.
    """

    models: list[Measured]
    num_predicted: dict[str, int]
    num_unknown: dict[str, int]

    def of(self, name: str) -> Measured:
        return next(measured for measured in self.models if measured.name == name)

    def write(self, path: Path) -> None:
        write_json(path, asdict(self), indent=1)

    @classmethod
    def read(cls, path: Path) -> "Perplexities":
        content = json.loads("\n".join(read_lines(path)))
        return cls(
            [Measured(**fields) for fields in content["models"]], content["num_predicted"], content["num_unknown"]
        )

    def table(self) -> list[str]:
        lines = [f"{'perplexity':<24}{'dev':>10}{'test':>10}"]
        for measured in self.models:
            share = f" ({measured.weight:g})" if measured.weight is not None else ""
            lines.append(f"{measured.name + share:<24}{measured.dev:>10.2f}{measured.test:>10.2f}")
        counts = ", ".join(f"{name} {self.num_predicted[name]} ({self.num_unknown[name]} <unk>)" for name in SETS)
        return [*lines, f"words and sentence ends: {counts}"]


def measure(ngram: Path, scorers: Mapping[str, WordScorer], text: Path) -> Perplexities:
    """Measure the n-gram, each network, and each interpolation with the weight that is best on dev.

    text: directory of dev.txt and test.txt.  Raises FormatError if the vocabularies of the models differ, because their
    perplexities would not be comparable.
    """
    model = LanguageModel.from_arpa(read_arpa(ngram))
    sentences = {name: read_sentences(text / f"{name}.txt") for name in SETS}
    vocabulary = set(model.vocabulary)
    for name, scorer in scorers.items():
        odd = next(
            (
                w
                for s in sentences.values()
                for sentence in s
                for w in sentence
                if (w in vocabulary) != scorer.is_known(w)
            ),
            None,
        )
        if odd is not None:
            raise FormatError(f"{ngram}: only one of it and {name} has the word {odd!r}; expected equal vocabularies")
    logs = {NGRAM: {part: np.concatenate(sentence_logs(model, sentences[part])) for part in SETS}}
    logs |= {
        name: {part: np.concatenate(scorer.score(sentences[part])) for part in SETS} for name, scorer in scorers.items()
    }
    models = [_measured(name, parts) for name, parts in logs.items()]
    for name in scorers:
        mixed = {w: {part: mix_logs(logs[name][part], logs[NGRAM][part], w) for part in SETS} for w in WEIGHTS}
        best = min(WEIGHTS, key=lambda weight: perplexity_of(mixed[weight]["dev"]))
        models.append(_measured(f"{name} + {NGRAM}", mixed[best], best))
    unknown = {part: sum(word not in vocabulary for sentence in sentences[part] for word in sentence) for part in SETS}
    return Perplexities(models, {part: len(logs[NGRAM][part]) for part in SETS}, unknown)


def _measured(name: str, logs: Mapping[str, np.ndarray], weight: float | None = None) -> Measured:
    return Measured(name, perplexity_of(logs["dev"]), perplexity_of(logs["test"]), weight)


def perplexity_of(logs: np.ndarray) -> float:
    """Return exp of the mean of -ln P."""
    return math.exp(-float(logs.mean()))


def read_sentences(path: Path) -> list[list[str]]:
    return [line.split() for line in read_lines(path) if line.strip()]


def epochs_of(model: Path) -> list[dict[str, float]]:
    """Return for each epoch of a training: epoch, train and dev perplexity, learning rate, words per second."""
    rows = []
    for row in read_history(Path(f"{model}.history.jsonl")):
        figures = {part: math.exp(min(next(iter(row[part].values())), 700)) for part in ("training", "validation")}
        speed = row["samples"] / row["seconds"] if row["seconds"] else math.nan
        rows.append(
            {"epoch": row["epoch"], "train": figures["training"], "dev": figures["validation"], "words/s": speed,
             "rate": row["learning_rate_per_sample"]}
        )  # fmt: skip
    return rows


def history_lines(model: Path) -> list[str]:
    """Return one line per epoch with its perplexities."""
    return [
        f"epoch {row['epoch']}: perplexity {row['train']:.2f} (training), {row['dev']:.2f} (dev); "
        f"learning rate {row['rate']:g}; {row['words/s']:.0f} words/s"
        for row in epochs_of(model)
    ]


def draw_perplexities(models: Mapping[str, Path], found: Perplexities, path: Path) -> None:
    """Write a PNG: perplexities of the networks after each epoch, dashed for the training set, and of the n-gram."""
    figure = new_figure(6.4, 4.4)
    axes = figure.add_subplot()
    for number, (name, model) in enumerate(models.items()):
        rows = epochs_of(model)
        epochs = [row["epoch"] for row in rows]
        axes.plot(epochs, [row["dev"] for row in rows], color=f"C{number}", marker=".", label=f"{name}, dev")
        axes.plot(epochs, [row["train"] for row in rows], color=f"C{number}", ls="--", lw=1, label=f"{name}, training")
    level = found.of(NGRAM).dev
    axes.axhline(level, color="black", linewidth=1, label=f"Kneser-Ney {NGRAM}, dev")
    # The perplexities of the first epochs can be outside the interesting range.
    lowest, highest = axes.get_ylim()
    axes.set_ylim(lowest, min(highest, 3 * level))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("epoch")
    axes.set_ylabel("perplexity")
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)
