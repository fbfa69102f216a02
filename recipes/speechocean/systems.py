"""What the final network of the recipe is compared with, and the figures of all systems."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decoder import grammars
from decoder.graph import GraphOptions
from decoder.scoring import ScoringResult, error_rate_interval, read_words, score
from readers.common.arrays import Float32Array
from readers.corpora.directory import SPEAKERS, read_speakers
from readers.htk.mlf import Label, write_mlf
from recipes.evaluation import Evaluation, language_models
from recipes.job import Figure
from recipes.own.networks import SILENCE, CrossEntropy
from recipes.stages import account, call
from recipes.steps import extract
from recipes.tuning import Grid

if TYPE_CHECKING:
    from recipes.own.run import Recipe

# Beams and steps of systems that are only compared: an hour of tuning would be longer than their training.
COMPARED_GRID = Grid(
    start={"acweight": 0.1, "word_penalty": 0.0},
    values={"acweight": (0.035, 0.05, 0.07, 0.1, 0.15), "word_penalty": (-2.0, 0.0, 2.0)},
    beams=(10.0, 11.0),
    fixed={"lm_scale": 1.0, "sil_cost": 0.0, "word_end_beam_frac": 1.0},
)


class ComparedEvaluation(Evaluation):
    """Of a system that is only compared."""

    def store(self, *chosen: object) -> None:
        """Leave the options of the graph to the final network."""


class FirstNetwork(CrossEntropy):
    """The network that aligns the training set, as a recogniser."""

    tuned_on = "tune"
    evaluated_by = ComparedEvaluation

    def __init__(self, recipe: "Recipe"):
        super().__init__(recipe, first=True)

    @property
    def grid(self) -> Grid:
        return COMPARED_GRID

    def recognise(self) -> int:
        """Choose search options and decode the test set."""
        return self.evaluation.tune() | self.evaluation.decode()


@dataclass(frozen=True)
class GaussianEvaluation(ComparedEvaluation):
    """Gaussian mixtures in place of a network.  model: their MMF, beside the list of the states."""

    def scores(self, name: str) -> dict[str, Float32Array]:
        from decoder.gaussians.models import GaussianModels
        from readers.htk.parameter_file import read_htk
        from readers.htk.scp import read_scp

        models = GaussianModels.load(self.model, self.model.with_name("states.list"))
        entries = read_scp(self.out / "lists" / f"{name}.cepstra.scp")
        return {entry.key: models.log_likelihoods(read_htk(entry.path).frames) for entry in entries}

    def decode(self) -> int:
        from recipes.decoding import open_decoder, read_choice
        from recipes.tuning import Development, decode_and_score

        test = Development(self.scores("test"), read_words(self.references))
        for name, lm in self.language_models.items():
            decoder = open_decoder(lm.graph, lm.file).with_options(**read_choice(self.tuned_file(name)))
            texts = decode_and_score(decoder, test, self.workers).texts
            labels = ([Label(None, None, word) for word in text] for text in texts)
            write_mlf(self.hypotheses(name), zip((f"*/{utterance}.rec" for utterance in test.scores), labels))
        return 0


class FlatStart:
    """The Gaussian mixtures of monophones that the flat start has trained."""

    def __init__(self, recipe: "Recipe"):
        self.recipe = recipe
        self.home = recipe.out / "gaussians"

    @property
    def evaluation(self) -> Evaluation:
        recipe = self.recipe
        models = language_models(recipe.language_models, recipe.lm_file, self.graph_folder, recipe.texts)
        return GaussianEvaluation(
            recipe.out, self.home, recipe.flat / "hmmdefs", 1, models, COMPARED_GRID, recipe.workers, tuned_on="tune"
        )

    def graph_folder(self, name: str) -> Path:
        return self.home / "graph" / name

    def recognise(self) -> int:
        """Extract the cepstra of the test set, make the graph, choose search options and decode."""
        recipe = self.recipe
        lost = self.extract()
        for name in recipe.graph_names:
            options = grammars.GraphFiles(
                mmf=(recipe.flat / "hmmdefs",), hmm_list=recipe.flat / "phones.list", hmms=self.home / "tables",
                dictionary=grammars.GraphDictionary(dict=recipe.dictionary), state_list=recipe.flat / "states.list",
                graph=GraphOptions(silence=SILENCE, drop_missing=True), lm=recipe.lm_file(name),
                out=self.graph_folder(name),
            )  # fmt: skip
            lost |= call("graph", options)
        return lost | self.evaluation.tune() | self.evaluation.decode()

    def extract(self) -> int:
        """Extract the cepstra of the test set; list them and those of the utterances for tuning."""
        from readers.corpora.directory import feature_pairs
        from readers.htk.scp import read_scp, write_feature_list, write_pairs

        out = self.recipe.out
        lists = out / "lists"
        names = {part: [entry.key for entry in read_scp(lists / f"{part}.scp")] for part in ("tune", "test")}
        test = set(names["test"])
        pairs = feature_pairs(lists, out / "features" / "cepstra", "mfc")
        script = lists / "test.cepstra.list"
        write_pairs(script, [(source, file) for source, file in pairs if Path(file).stem in test])
        losses = out / "reports" / "features.test.cepstra"
        lost = extract(out / "config" / "cepstra.hcopy", script, self.recipe.workers, report=losses)
        for part, utterances in names.items():
            files = [(name, out / "features" / "cepstra" / f"{name}.mfc") for name in utterances]
            report = write_feature_list(lists / f"{part}.cepstra.scp", files)
            lost |= account(out, report, f"lists.{part}.cepstra")
        return lost


@dataclass(frozen=True)
class SystemFigures:
    """The errors of a system on the test set, as a row of the table.

    name: what it is called.
    result: its errors.
    interval: of its word error rate, 95 %, in percent.
    groups: word error rates of children and adults.
    """

    name: str
    result: ScoringResult
    interval: tuple[float, float]
    groups: Mapping[str, float]

    @classmethod
    def of(
        cls, name: str, evaluation: Evaluation, speakers: dict[str, str], children: Collection[str]
    ) -> "SystemFigures":
        """Count the errors.  speakers: utterance -> speaker; children: those who are."""
        result = score(read_words(evaluation.references), read_words(evaluation.hypotheses("trained")))
        groups = result.grouped(lambda utterance: "children" if speakers[utterance] in children else "adults")
        rates = {group: groups[group].word_error_rate for group in sorted(groups, reverse=True)}
        return cls(name, result, error_rate_interval(result, speakers.__getitem__), rates)

    def figure(self) -> Figure:
        total = self.result.total
        counts = {"errors": total.num_errors, "utterances": total.num_sentences, "words": total.num_words}
        return Figure("WER", total.word_error_rate, self.name, counts)

    def line(self) -> str:
        low, high = self.interval
        groups = ", ".join(f"{group} {rate:.1f}%" for group, rate in self.groups.items())
        rate = self.result.total.word_error_rate
        return f"{self.name:28} WER {rate:5.1f}%  95% interval {low:.1f}% to {high:.1f}%  {groups}"


def figures_of(systems: Mapping[str, Evaluation], out: Path, children: Collection[str]) -> list[SystemFigures]:
    """Return the rows of the table."""
    speakers = read_speakers(out / "lists" / SPEAKERS)
    return [SystemFigures.of(name, evaluation, speakers, children) for name, evaluation in systems.items()]
