"""What recipes do with a trained network: choose search options, decode the test set, count the errors."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decoder.recognizer.jobs.decoding import options as decoding
from recipes.job import Figure, RecipeResult
from recipes.stages import call
from recipes.tuning import Grid

if TYPE_CHECKING:
    from readers.common.arrays import Float32Array


@dataclass(frozen=True)
class LanguageModel:
    """A language model that the test set is decoded with.

    label: what it is called in results.
    file: in ARPA format.
    graph: directory of `argonaut graph`.
    tuning_file, tuning_graph: those with which the search options are chosen; they do not know the sentences of the
    development set.
    """

    label: str
    file: Path
    graph: Path
    tuning_file: Path
    tuning_graph: Path


def language_models(
    labels: Mapping[str, str],
    file: Callable[[str], Path],
    graph: Callable[[str], Path],
    estimated: Collection[str] = ("tune-trained", "trained"),
) -> dict[str, LanguageModel]:
    """Return the language models of a recipe.

    That of the transcripts, `trained`, is replaced by `tune-trained` while search options are chosen, which does not
    know the sentences of the development set.

    labels: name -> label; file, graph: the paths of a name; estimated: the models that the recipe estimates, without
    `tune-trained` if `trained` does not know these sentences, either.
    """
    models = {}
    for name, label in labels.items():
        tuned = f"tune-{name}" if f"tune-{name}" in estimated else name
        models[name] = LanguageModel(label, file(name), graph(name), file(tuned), graph(tuned))
    return models


@dataclass(frozen=True)
class Evaluation:
    """A trained network with its language models.

    out: directory of the recipe, with lists/dev.scp, lists/test.scp, labels/dev.UNITS.mlf and labels/test.UNITS.mlf.
    home: directory of the results of this network.
    model: the network; window: frames in its input.
    language_models: by name.
    grid: of the search options.
    speakers: mask of the part of an utterance's name that is its speaker, as in HResults.
    ivectors: for a network that takes i-vectors, the path of the list of a set's.
    units: what is recognised, words or phones.
    fold: map of phones with which errors are counted.
    tuned_on: name of the list with which the search options are chosen, of the development set or a part of it.
    """

    out: Path
    home: Path
    model: Path
    window: int
    language_models: Mapping[str, LanguageModel]
    grid: Grid
    workers: int
    speakers: str = ""
    ivectors: Callable[[str], Path] | None = None
    units: str = "words"
    fold: Path | None = None
    tuned_on: str = "dev"

    def tune(self) -> int:
        from decoder.scoring.words import read_words
        from recipes.decoding import choose_options, open_decoder
        from recipes.tuning import Development

        references = read_words(self.out / "labels" / f"dev.{self.units}.mlf")
        development = Development(self.scores(self.tuned_on), references, self.phone_map)
        for name, lm in self.language_models.items():
            decoder = open_decoder(lm.tuning_graph, lm.tuning_file)
            chosen, score = choose_options(decoder, development, self.grid, self.tuned_file(name), self.workers)
            self.store(lm, chosen)
            shown = ", ".join(f"{option} {value:g}" for option, value in chosen.items())
            rate = f"{self.rate} {score.word_error_rate:.1f}%"
            print(f"dev {rate} ({score.num_words} {self.units}, {lm.label}): {shown}", flush=True)
        return 0

    def scores(self, name: str) -> "dict[str, Float32Array]":
        """Return the scaled log-likelihoods of the utterances in a list, (outputs, frames) each."""
        from recipes.decoding import score_utterances

        vectors = self.ivectors and self.ivectors(name)
        return score_utterances(self.model, self.out / "lists" / f"{name}.scp", self.window, ivectors=vectors)

    def store(self, lm: LanguageModel, chosen: dict[str, float]) -> None:
        """Store chosen options in the graph of a language model."""
        from recipes.decoding import store_choice

        store_choice(lm.graph, chosen, self.model, lm.file)

    def decode(self) -> int:
        from recipes.decoding import search_options

        lost = 0
        for name, lm in self.language_models.items():
            options = decoding.DecodeOptions(
                graph=lm.graph / "graph.dg", lm=lm.file,
                acoustic=decoding.AcousticOptions(
                    infiles=self.out / "lists" / "test.scp", ivectors=self.ivectors and self.ivectors("test"),
                    am=self.model, cntkmap=lm.graph / "cntkmap", window=self.window,
                ),
                output=decoding.DecodeOutputOptions(
                    outmlf=self.hypotheses(name), lattice_prefix=self.lattice_prefix(name)
                ),
                search=search_options(self.tuned_file(name)),
            )  # fmt: skip
            lost |= call("argon", options)
        return lost

    def score(self) -> int:
        from recipes.cli.score import Shown

        lost = 0
        for name in self.language_models:
            options = Shown(
                reference=self.references, hypothesis=self.hypotheses(name), speakers=self.speakers or None,
                fold=self.fold, per=self.units == "phones", picture=self.picture(name), report=self.report(name),
            )  # fmt: skip
            lost |= call("score", options)
        return lost

    def figures(self) -> tuple[Figure, ...]:
        """Return the error rates on the test set."""
        from decoder.scoring.error_counts import score
        from decoder.scoring.words import read_words

        figures = []
        references = read_words(self.references)
        for name, lm in self.language_models.items():
            total = score(references, read_words(self.hypotheses(name)), fold=self.phone_map).total
            counts = {"errors": total.num_errors, "utterances": total.num_sentences, self.units: total.num_words}
            figures.append(Figure(self.rate, total.word_error_rate, lm.label, counts))
        return tuple(figures)

    def result(self, bundle: Path | None = None) -> RecipeResult:
        """Return the result of a recipe with this evaluation.  bundle: what was made of it."""
        figures = self.figures()
        pictures = (Path(f"{self.model}.png"), *self.pictures)
        lines = [f"bundle: {bundle}"] if bundle else []
        lines += [f"pictures: {' '.join(map(str, pictures))}", *map(rate_line, figures)]
        return RecipeResult(
            figures=figures, pictures=pictures, reports=self.reports, bundle=bundle, lines=tuple(lines)
        )  # fmt: skip

    @property
    def rate(self) -> str:
        return "PER" if self.units == "phones" else "WER"

    @property
    def references(self) -> Path:
        return self.out / "labels" / f"test.{self.units}.mlf"

    @property
    def phone_map(self) -> dict[str, str | None] | None:
        from readers.tables.timit import read_phone_map

        return read_phone_map(self.fold, -1) if self.fold else None

    @property
    def pictures(self) -> tuple[Path, ...]:
        return tuple(self.picture(name) for name in self.language_models)

    @property
    def reports(self) -> tuple[Path, ...]:
        return tuple(self.report(name) for name in self.language_models)

    def report(self, name: str) -> Path:
        return self.home / "reports" / f"score.{name}"

    def picture(self, name: str) -> Path:
        return self.home / "decode" / name / "confusions.png"

    def tuned_file(self, name: str) -> Path:
        return self.home / "tune" / f"{name}.json"

    def lattice_prefix(self, name: str) -> str:
        return f"{self.home / 'decode' / name / 'lattices' / 'test'}"

    def hypotheses(self, name: str) -> Path:
        return self.home / "decode" / name / "test.mlf"


def rate_line(figure: Figure) -> str:
    """Return an error rate as recipes print it."""
    _, *counts = (f"{number} {unit}" for unit, number in figure.counts.items())
    return f"{figure.name} {figure.value:.1f}% ({', '.join(('test', *counts, figure.of))})"
