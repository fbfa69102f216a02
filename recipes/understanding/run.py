"""Slot tagging of flight queries with an LSTM (CNTK book, 7.4): origin, destination, time, airline.

worked example:
  argonaut recipe understanding --out exp/slu
makes 5,000 queries from a grammar, trains, tags other queries, some with unseen names, and ends with the names of its
pictures and the phrase-level F1 as computed by conlleval:
  F1 97.1% (test, 900 queries, 5029 phrases, lstm after 9 of 10 epochs)

  argonaut recipe understanding --data ~/corpora/atis --out exp/atis
does the same with your copy of ATIS.
"""

import json
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from readers.common.files import write_content, write_json
from readers.config.options import option
from recipes.job import Figure, RecipeOptions, RecipeResult, overrides
from recipes.stage_settings import cntk_settings
from recipes.stages import Stage
from recipes.steps import cntk

if TYPE_CHECKING:
    from recipes.understanding.conlleval import Score
    from recipes.understanding.grammar import Tagged

CONFIG = Path(__file__).parent / "config"
NETWORKS = {
    "lstm": "the book's LSTM of 300 cells",
    "window": "the same without recurrence",
    "blstm": "a bidirectional LSTM of 150 cells per direction",
    "crf": "the LSTM with a conditional random field on top",
}


@dataclass(frozen=True, kw_only=True)
class UnderstandingOptions(RecipeOptions):
    """Options of recipe understanding."""

    networks: str = option(
        "lstm", "all, or some of " + ", ".join(f"{name} ({text})" for name, text in NETWORKS.items()), metavar="NAMES"
    )
    rare: int = option(
        5, "training words that occur fewer than N times are treated as unknown (default 5; 1: no words)", least=1
    )
    overrides: tuple[str, ...] = overrides("to replace, such as SGD=[maxEpochs=20]")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.names:
            fine = name in NETWORKS
            self.require("networks", fine, f"is {name}; expected all, or some of {','.join(NETWORKS)}")

    @property
    def names(self) -> list[str]:
        """The names that `networks` has."""
        return list(NETWORKS) if self.networks == "all" else self.networks.replace(":", ",").split(",")


class Recipe:
    """The stages, and the places of their files: all below `out`, those of a network in its directory."""

    def __init__(self, options: UnderstandingOptions):
        self.corpus = options.data
        self.out = options.out
        self.seed = options.seed
        self.overrides = options.overrides
        self.rare = options.rare
        self.networks = [name for name in NETWORKS if name in options.names]
        self.data = self.out / "data"
        if self.corpus is not None:
            self.parts  # noqa: B018  (reports errors in the corpus before anything is written)

    def stages(self) -> list[Stage]:
        source = {"data": str(self.corpus)} if self.corpus is not None else {"seed": self.seed}
        stages = [Stage("data", "queries, words and labels", self.write_data, (), source | {"rare": self.rare})]
        for name in self.networks:
            tagging = cntk_settings(self.cntk_arguments("command=Tag"))
            stages += [
                Stage(f"{name}-train", NETWORKS[name], partial(self.train, name), ("data",),
                      cntk_settings(self.cntk_arguments(f"command={name.upper()}")), self.out / name / "model"),
                Stage(f"{name}-choose", "F1 on the development queries after every epoch",
                      partial(self.choose, name), ("data", f"{name}-train"), tagging),
                Stage(f"{name}-tag", "slots of the test queries", partial(self.tag, name),
                      ("data", f"{name}-train", f"{name}-choose"), tagging),
                Stage(f"{name}-score", "precision, recall, F1, and pictures", partial(self.score, name),
                      ("data", f"{name}-train", f"{name}-choose", f"{name}-tag")),
            ]  # fmt: skip
        return stages

    @cached_property
    def parts(self) -> "dict[str, list[Tagged]]":
        from recipes.understanding.corpus import read_corpus
        from recipes.understanding.queries import NUM_QUERIES, make_queries

        return make_queries(NUM_QUERIES, self.seed) if self.corpus is None else read_corpus(self.corpus)

    def write_data(self) -> None:
        from recipes.understanding.tables import sizes, write_tables

        write_tables(self.data, self.parts, self.rare)
        counts = ", ".join(f"{part} {len(queries)}" for part, queries in self.parts.items())
        print(f"queries: {counts}; {sizes(self.data)['input']} words, {sizes(self.data)['output']} labels", flush=True)

    def cntk(self, name: str, *settings: str) -> int:
        from recipes.understanding.tables import sizes

        counts = sizes(self.data)
        dims = (f"InputDim={3 * counts['input']}", f"NumWords={counts['input']}", f"LabelDim={counts['output']}")
        return cntk(self.cntk_arguments(*dims, f"modelPath={self.model(name)}", *settings))

    def cntk_arguments(self, *settings: str) -> list[str]:
        return [
            f"configFile={CONFIG / 'understanding.cntk'}", f"ConfigDir={CONFIG}", f"DataDir={self.data}",
            f"ExpDir={self.out}", f"randomSeed={self.seed}", "extendTraining=true", *settings, *self.overrides,
        ]  # fmt: skip

    def model(self, name: str, epoch: int | None = None) -> Path:
        """Return the model of an epoch, or the last one."""
        last = self.out / name / "model" / "slu"
        return last if epoch in (None, self.num_epochs(name)) else Path(f"{last}.{epoch}")

    def history(self, name: str) -> list[dict[str, Any]]:
        from acoustic.training.reporting.log import read_history

        return read_history(f"{self.out / name / 'model' / 'slu'}.history.jsonl")

    def num_epochs(self, name: str) -> int:
        rows = self.history(name)
        return rows[-1]["epoch"] if rows else 0

    def train(self, name: str) -> int:
        return self.cntk(name, f"command={name.upper()}")

    def write_tags(self, name: str, part: str, epoch: int, path: Path) -> int:
        return self.cntk(
            name, "command=Tag", f"Part={part}", f"TagFile={path}", f"Tag=[modelPath={self.model(name, epoch)}]"
        )

    def choose(self, name: str) -> int:
        """Write epochs.json: F1 of the development queries after each epoch, and the selected epoch."""
        lost = 0
        f1 = []
        for epoch in range(1, self.num_epochs(name) + 1):
            path = self.out / name / "dev" / f"tags.{epoch}.txt"
            lost |= self.write_tags(name, "dev", epoch, path)
            f1.append(self.score_of("dev", path).f1)
            print(f"epoch {epoch}: F1 {f1[-1]:.2f}%", flush=True)
        best = f1.index(max(f1)) + 1  # the first of several
        write_json(self.out / name / "epochs.json", {"f1": f1, "best": best})
        return lost

    def chosen(self, name: str) -> dict[str, Any]:
        return json.loads((self.out / name / "epochs.json").read_text(encoding="utf-8"))

    def tag(self, name: str) -> int:
        return self.write_tags(name, "test", self.chosen(name)["best"], self.tags(name))

    def tags(self, name: str) -> Path:
        return self.out / name / "test.tags.txt"

    def score(self, name: str) -> None:
        from recipes.understanding.pictures import draw_confusions, draw_epochs

        score = self.score_of("test", self.tags(name))
        write_content(self.out / name / "test.score.txt", score.report())
        draw_epochs(self.history(name), self.chosen(name)["f1"], self.picture(name, "epochs"))
        draw_confusions(score.labels, self.picture(name, "confusions"))

    def picture(self, name: str, what: str) -> Path:
        return self.out / name / "pictures" / f"{what}.png"

    def score_of(self, part: str, tags: Path, only_unseen: bool = False) -> "Score":
        """Return the score of some tags; only_unseen: only queries with a word that no training query contains."""
        from recipes.understanding.conlleval import score
        from recipes.understanding.tables import known_words, query_file, read_queries, read_tags

        queries = read_queries(query_file(self.data, part))
        training_words = known_words(self.data)
        return score(
            ([label for _, label in query], labels)
            for query, labels in zip(queries, read_tags(tags, queries))
            if not only_unseen or any(word not in training_words for word, _ in query)
        )

    def result(self) -> RecipeResult:
        figures = []
        pictures = []
        lines = []
        for name in self.networks:
            chosen = self.chosen(name)
            score = self.score_of("test", self.tags(name))
            unseen = self.score_of("test", self.tags(name), only_unseen=True)
            drawn = [self.picture(name, what) for what in ("epochs", "confusions")]
            pictures += drawn
            counts = {"queries": score.num_sentences, "phrases": score.total.in_reference, "right": score.total.right}
            figures += [
                Figure("F1", unseen.f1, f"{name}, unseen words", {"queries": unseen.num_sentences}),
                Figure("F1", score.f1, name, counts),
            ]
            lines += [
                f"pictures: {' '.join(map(str, drawn))}",
                f"scores of every slot: {self.out / name / 'test.score.txt'}",
                f"F1 {unseen.f1:.1f}% ({unseen.num_sentences} test queries with unseen words, {name})",
                f"F1 {score.f1:.1f}% (test, {score.num_sentences} queries, {score.total.in_reference} phrases, "
                f"{name} after {chosen['best']} of {len(chosen['f1'])} epochs)",
            ]
        return RecipeResult(figures=tuple(figures), pictures=tuple(pictures), lines=tuple(lines))


RECIPE = UnderstandingOptions, Recipe
